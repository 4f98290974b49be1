"""A streamed clip beside the same clip spoken whole: is what was sent early what it would have become, and do seams click?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from synth import pcm

#: Samples of 16 bits differ by one of these at least.
STEP = 1 / 32768


def compare(order: dict[str, Any]) -> dict[str, Any]:
    """`order`: streamed, whole (FLAC files), seams (first samples of chunks but the first).

    Gives `stable_share` of samples within one step of 16 bits, `largest` difference, `extra_samples` that one has more than the other,
    and `click`: the largest jump at a seam over the 99.9th percentile of all jumps; above 1 a seam stands out. None without seams.
    """
    streamed, whole = (pcm.decode(Path(order[name])).samples.astype(np.float64) for name in ("streamed", "whole"))
    n = min(len(streamed), len(whole))
    difference = np.abs(streamed[:n] - whole[:n])
    jumps = np.abs(np.diff(streamed))
    seams = [s for s in order["seams"] if 0 < s < len(streamed)]
    usual = float(np.quantile(jumps, 0.999)) if len(jumps) else 0.0
    click = max(float(jumps[s - 1]) for s in seams) / max(usual, STEP) if seams else None
    return {
        "stable_share": float((difference <= 1.5 * STEP).mean()) if n else 0.0, "largest": float(difference.max(initial=0.0)),
        "extra_samples": len(streamed) - len(whole), "click": click,
    }  # fmt: skip
