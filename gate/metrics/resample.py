"""The one resampler of all metrics; its name is part of their identity."""

from __future__ import annotations

from math import gcd

import numpy as np
import numpy.typing as npt

IDENTITY = "polyphase-kaiser12.9846-64"
RATE = 16000


def to_16k(samples: npt.NDArray[np.floating], sample_rate: int) -> npt.NDArray[np.float32]:
    """Mono samples at 16 kHz, float32. Kaiser-windowed sinc of 64 zero crossings a side, cut off at 0.9475 of Nyquist."""
    if sample_rate == RATE:
        return np.ascontiguousarray(samples, dtype=np.float32)
    from scipy.signal import firwin, resample_poly  # a second of start-up that no page should pay

    divisor = gcd(sample_rate, RATE)
    up, down = RATE // divisor, sample_rate // divisor
    widest = max(up, down)
    taps = firwin(2 * 64 * widest + 1, 0.9475917 / widest, window=("kaiser", 12.9846))
    out: npt.NDArray[np.float32] = resample_poly(np.asarray(samples, dtype=np.float64), up, down, window=taps).astype(np.float32)
    return out
