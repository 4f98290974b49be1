"""DNSMOS P.835 (SIG, BAK, OVRL) on onnxruntime alone, on the model file of the speechmos package."""

from __future__ import annotations

import hashlib
import importlib.util
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gate.metrics import level, resample
from synth import pauses

RATE = resample.RATE
WINDOW = 144160  # 9.01 s
#: Clips of up to a minute are scored second by second; of longer ones, which are runaways, as many windows are taken evenly.
MOST_WINDOWS = 60
#: Raw network output -> score, highest power first (dnsmos_local.py, non-personalised).
POLYNOMIALS = {
    "sig": (-0.08397278, 1.22083953, 0.0052439),
    "bak": (-0.13166888, 1.60915514, -0.39604546),
    "ovrl": (-0.06766283, 1.11546468, 0.04602535),
}


class Unscorable(ValueError):
    """This sound has no DNSMOS: the message says why. It becomes a failure, never a substituted value."""


@dataclass(frozen=True)
class Score:
    """Mean over windows, 1 (bad) to about 3.3 (clean speech). English-trained: for comparing, not for judging alone."""

    sig: float
    bak: float
    ovrl: float
    windows: int


@dataclass(frozen=True)
class Dnsmos:
    """`raw_standard`: as published. `levelled`: at -26 dBFS, all windows and the end-aligned one - what the gate uses.

    `tiled`: shorter than a window, so the network heard the clip more than once and the seam is part of the score.
    `sampled`: so long that not every window was scored.
    """

    raw_standard: Score
    levelled: Score
    tiled: bool
    sampled: bool
    gain_db: float


def model_path() -> Path:
    spec = importlib.util.find_spec("speechmos")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("speechmos")
    return Path(spec.origin).parent / "dnsmos_models" / "sig_bak_ovr.onnx"


@cache
def identity() -> str:
    model = hashlib.sha256(model_path().read_bytes()).hexdigest()[:12]
    runtime = f"onnxruntime-{version('onnxruntime')}"
    return f"dnsmos-p835/{model}/{runtime}/level{level.TARGET_DBFS:g}/end-aligned,at-most-{MOST_WINDOWS}/{resample.identity()}"


@cache
def _session() -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(model_path()), options, providers=["CPUExecutionProvider"])


def tile(samples: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The clip, doubled until it fills a window."""
    while len(samples) < WINDOW:
        samples = np.append(samples, samples)
    return samples


def starts(length: int, published: bool) -> list[int]:
    """Where the windows of 9.01 s begin, at most MOST_WINDOWS: every second and one that ends with the clip.

    `published`: as dnsmos_local.py takes them, without the last one, and without those whose end its floating point puts a sample too
    early (in a clip of 31 s, 15 of 22).
    """
    hops = int(np.floor(length / RATE) - 9.01) + 1
    found = [k * RATE for k in range(hops) if k * RATE + WINDOW <= length]
    if published:
        found = [k for k in found if int((k // RATE + 9.01) * RATE) - k >= WINDOW]
    elif found[-1] != length - WINDOW:
        found.append(length - WINDOW)
    if len(found) > MOST_WINDOWS:
        found = [found[k] for k in np.linspace(0, len(found) - 1, MOST_WINDOWS).round().astype(int)]
    return found


def _score(samples: npt.NDArray[np.float32], published: bool) -> Score:
    """One window at a time: on a CPU a batch costs as much a window, and holds eight times the memory (bench/metrics.py)."""
    filled = tile(samples)
    places = starts(len(filled), published)
    raw = np.concatenate([_session().run(None, {"input_1": filled[None, k : k + WINDOW]})[0] for k in places]).astype(np.float64)
    means = {name: float(np.polyval(poly, raw[:, k]).mean()) for k, (name, poly) in enumerate(POLYNOMIALS.items())}
    if not np.isfinite(raw).all():
        raise Unscorable("the network gave no number")
    return Score(**means, windows=len(places))


def score(samples: npt.NDArray[np.float32], sample_rate: int) -> Dnsmos:
    """Scores mono samples in [-1, 1]. Raises Unscorable for empty, non-finite or silent sound, and for sound with nothing in the band."""
    if not len(samples):
        raise Unscorable("there are no samples")
    if not np.isfinite(samples).all():
        raise Unscorable("some samples are not finite")
    found = pauses.analyse(samples, sample_rate)
    if found.no_audible_speech:
        raise Unscorable(f"there is no audible speech ({found.reason})")
    at_16k = np.clip(resample.to_16k(samples, sample_rate), -1.0, 1.0)
    if pauses.analyse(at_16k, RATE).no_audible_speech:  # a whistle above the band, say
        raise Unscorable("there is nothing to hear below 8 kHz")
    levelled, gain_db = level.to_level(at_16k, RATE)
    sampled = len(at_16k) > (MOST_WINDOWS + 9) * RATE
    return Dnsmos(_score(at_16k, published=True), _score(levelled, published=False), len(at_16k) < WINDOW, sampled, gain_db)
