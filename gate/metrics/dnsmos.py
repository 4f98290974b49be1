"""DNSMOS P.835 (SIG, BAK, OVRL) on onnxruntime alone, on the model file of the speechmos package."""

from __future__ import annotations

import hashlib
import importlib.util
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gate.metrics import level, pauses, resample

RATE = resample.RATE
WINDOW = 144160  # 9.01 s
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
    """`raw_standard`: as published. `levelled`: at -26 dBFS, all windows and the end-aligned one - what the gate uses."""

    raw_standard: Score
    levelled: Score
    tiled: bool
    gain_db: float


def model_path() -> Path:
    spec = importlib.util.find_spec("speechmos")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("speechmos")
    return Path(spec.origin).parent / "dnsmos_models" / "sig_bak_ovr.onnx"


@cache
def identity() -> str:
    return f"dnsmos-p835/{hashlib.sha256(model_path().read_bytes()).hexdigest()[:12]}/{resample.IDENTITY}/level{level.TARGET_DBFS:g}"


@cache
def _session() -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(model_path()), options, providers=["CPUExecutionProvider"])


def windows(samples: npt.NDArray[np.float32], end_aligned: bool) -> npt.NDArray[np.float32]:
    """The clip, doubled until it fills a window, cut into windows of 9.01 s every second; shape (n, 144160)."""
    while len(samples) < WINDOW:
        samples = np.append(samples, samples)
    hops = int(np.floor(len(samples) / RATE) - 9.01) + 1
    starts = [k * RATE for k in range(hops) if k * RATE + WINDOW <= len(samples)]
    if end_aligned and starts[-1] != len(samples) - WINDOW:
        starts.append(len(samples) - WINDOW)
    return np.stack([samples[start : start + WINDOW] for start in starts]).astype(np.float32)


def _score(samples: npt.NDArray[np.float32], end_aligned: bool) -> Score:
    batch = windows(samples, end_aligned)
    raw = np.concatenate([_session().run(None, {"input_1": batch[i : i + 8]})[0] for i in range(0, len(batch), 8)]).astype(np.float64)
    means = {name: float(np.polyval(poly, raw[:, k]).mean()) for k, (name, poly) in enumerate(POLYNOMIALS.items())}
    return Score(**means, windows=len(batch))


def score(samples: npt.NDArray[np.float32], sample_rate: int) -> Dnsmos:
    """Scores mono samples in [-1, 1]. Raises Unscorable for empty, non-finite or silent sound."""
    if not len(samples):
        raise Unscorable("there are no samples")
    if not np.isfinite(samples).all():
        raise Unscorable("some samples are not finite")
    found = pauses.analyse(samples, sample_rate)
    if found.no_audible_speech:
        raise Unscorable(f"there is no audible speech ({found.reason})")
    at_16k = np.clip(resample.to_16k(samples, sample_rate), -1.0, 1.0)
    levelled, gain_db = level.to_level(at_16k, RATE)
    return Dnsmos(_score(at_16k, False), _score(levelled, True), len(at_16k) < WINDOW, gain_db)
