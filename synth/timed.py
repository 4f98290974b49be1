"""One timed pass: a configuration in a fresh process, warmed up, speaking sentences while everything that could disturb it is watched."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from synth import contention, telemetry
from synth.batches import in_batches
from synth.engine.supervise import Child, ChildFailed

#: What is kept of each timed clip.
KEPT = ("tokens", "peak_memory_bytes", "held_memory_bytes", "first_audio_s", "arrivals_s", "durations_s")


def run(child: Child, configuration: dict[str, Any], sentences: Sequence[dict[str, Any]], scratch: Path) -> dict[str, Any]:
    """{"clips", "figures", "contended"} of a pass. `sentences`: {sentence, text, language, seed}. Raises ChildFailed for a failed clip."""
    batches = in_batches(sentences, configuration.get("batching"), lambda s: s["text"])
    # At least as long as the median, so that every shape is reached: a short warm-up warms nothing.
    warm = max(batches, key=lambda batch: sum(len(s["text"]) for s in batch))
    begin = time.perf_counter()
    first = speak(child, configuration, warm, scratch)
    for _ in range(max(1, configuration.get("warmup_clips", 1)) - 1):
        speak(child, configuration, warm, scratch)
    warmup_s = time.perf_counter() - begin
    watch, macmon, swap = contention.Watch(child.process.pid), telemetry.Macmon(), telemetry.swap_bytes()
    watch.start()
    macmon.start()
    try:
        before = child.sentinels()
        said = [speak(child, configuration, batch, scratch) for batch in batches]
        after = child.sentinels()
    finally:  # neither goes on beside whatever comes next
        contended, gpu = watch.end(), macmon.end()
    clips = [clip for batch in said for clip in batch["clips"]]
    figures = {
        "load_s": child.report["notes"].get("load_s"), "warmup_s": warmup_s, "first_s": first["wall_s"],
        "warm_s": said[batches.index(warm)]["wall_s"], "total_wall_s": sum(batch["wall_s"] for batch in said), "calls": len(batches),
        "swap_bytes": telemetry.swap_bytes() - swap, "hottest_c": telemetry.hottest(), "battery": telemetry.on_battery(),
        "memory_slope_bytes": slope([c["held_memory_bytes"] for c in clips]), "gpu": gpu,
        "sentinel_s": {name: [before[name], after[name]] for name in before if name in after},
    }  # fmt: skip
    if configuration.get("batching"):
        needed, computed = sum(b["needed"] for b in said), sum(b["computed"] for b in said)
        figures |= {"steps": sum(b["steps"] for b in said), "useful_share": needed / computed if computed else None}
    return {"clips": clips, "figures": figures, "contended": contended}


def speak(child: Child, configuration: dict[str, Any], batch: Sequence[dict[str, Any]], scratch: Path) -> dict[str, Any]:
    """One call: {"wall_s", "clips", "steps", "needed", "computed"}; the last three are a batch's."""
    first = batch[0]
    order = {"language": first["language"], "seed": first["seed"], "out": str(scratch)}
    if configuration.get("batching"):
        said = child.batch(order | {"rows": [{"id": k, "text": s["text"]} for k, s in enumerate(batch)]})
        made, figures = said["clips"], said["figures"]
    else:
        made = [child.clip(order | {"id": 0, "text": first["text"]})]
        figures = made[0]["figures"]
    for clip in made:
        if clip["outcome"] != "made":
            raise ChildFailed(f"a timed clip failed: {clip['error']}")
    clips = [
        {
            "sentence": s["sentence"], "wall_s": clip["figures"]["wall_s"], "audio_s": clip["figures"]["audio_s"],
            "pcm_sha256": clip["pcm_sha256"], **{name: kept(clip, name) for name in KEPT},
        }
        for s, clip in zip(batch, made, strict=True)
    ]  # fmt: skip
    return {"wall_s": figures["wall_s"], "clips": clips} | {name: figures.get(name, 0) for name in ("steps", "needed", "computed")}


def kept(clip: dict[str, Any], name: str) -> Any:
    """A figure of the clip, or of all that were spoken together with it."""
    return clip["figures"].get(name, clip["figures"].get("together", {}).get(name))


def slope(values: Sequence[float | None]) -> float | None:
    """Least-squares growth from one clip to the next; None with fewer than three clips, or an engine that doesn't say."""
    found = [v for v in values if v is not None]
    n = len(found)
    if n < 3 or n < len(values):
        return None
    middle, mean = (n - 1) / 2, sum(found) / n
    return sum((k - middle) * (v - mean) for k, v in enumerate(found)) / sum((k - middle) ** 2 for k in range(n))
