"""The level of active speech, and bringing a clip to a stated one."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from synth import pauses

IDENTITY = "level-1"
TARGET_DBFS = -26.0
PEAK = 0.99


def active_level(samples: npt.NDArray[np.floating], sample_rate: int) -> float:
    """RMS in dBFS over the 10 ms frames that are not silent (pauses.analyse decides); NaN without audible speech."""
    found = pauses.analyse(samples, sample_rate)
    if found.no_audible_speech or found.threshold_dbfs is None:
        return math.nan
    levels = pauses.frame_levels(samples, sample_rate)
    return 10 * math.log10(float(np.mean(10 ** (levels[levels >= found.threshold_dbfs] / 10))))


def to_level(samples: npt.NDArray[np.float32], sample_rate: int) -> tuple[npt.NDArray[np.float32], float]:
    """The clip at -26 dBFS of active speech, its peak at most 0.99, and the gain applied in dB."""
    gain = 10 ** ((TARGET_DBFS - active_level(samples, sample_rate)) / 20)
    peak = float(np.max(np.abs(samples)))
    gain = min(gain, PEAK / peak)
    return (samples * np.float32(gain)).astype(np.float32), 20 * math.log10(gain)
