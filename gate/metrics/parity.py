"""How near two recordings are that *should* be near-identical: another codec, a compiled graph, another runtime.

It says nothing about speech that was sampled anew: another take of the same sentence fails, a take cut short can look alike
(metrics.md 2.8). Nothing here decides anything.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy import fft

WARNING = "Made for output that should be near-identical. It does not judge speech that was sampled anew, and decides nothing."
#: Beyond these the two are not takes of one thing, and no number is given.
DURATION_SHARE, WIDEST_SHIFT_S = 0.01, 0.25
FFT, HOP, MELS = 1024, 256, 80
FLOOR = 1e-5
BLOCK = 4096

Samples = npt.NDArray[np.floating]


@dataclass(frozen=True)
class Parity:
    """Figures over the part both have after alignment; None with `reason` where there is none.

    log_mel_mae: mean absolute difference of natural-log mel power. spectral_cosine: of the time-averaged log spectra; near 1 even for
    another sentence. envelope_correlation: Pearson's. snr_db: None for equal sound. shift_s: how much later the second one is.
    """

    reason: str
    shift_s: float | None = None
    log_mel_mae: float | None = None
    spectral_cosine: float | None = None
    envelope_correlation: float | None = None
    snr_db: float | None = None
    equal: bool = False
    warning: str = WARNING


def shift_between(first: Samples, second: Samples, widest: int) -> int:
    """By how many samples the second is later, at the peak of the cross-correlation within +-`widest`."""
    size = fft.next_fast_len(max(len(first), len(second)) + widest + 1, real=True)  # circular: only lags up to `widest` must not wrap
    a, b = (fft.rfft(np.asarray(x, dtype=np.float32), size) for x in (first, second))
    correlation = fft.irfft(np.conj(a) * b, size)
    lags = np.concatenate([np.arange(0, widest + 1), np.arange(-widest, 0)])
    return int(lags[int(np.argmax(correlation[lags]))])


@cache
def _filters(sample_rate: int) -> npt.NDArray[np.float64]:
    """Triangular mel filters (HTK scale, no normalisation), shape (MELS, FFT // 2 + 1)."""
    top = 2595 * math.log10(1 + sample_rate / 2 / 700)
    edges = 700 * (10 ** (np.linspace(0, top, MELS + 2) / 2595) - 1)
    bins = np.linspace(0, sample_rate / 2, FFT // 2 + 1)
    rising = (bins - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - bins) / (edges[2:] - edges[1:-1])[:, None]
    shape: npt.NDArray[np.float64] = np.maximum(0, np.minimum(rising, falling))
    return shape


def mel_power(samples: Samples, sample_rate: int) -> npt.NDArray[np.float64]:
    """Mel power spectrogram, shape (frames, MELS): FFT 1024, hop 256, periodic Hann window, centred with reflection."""
    padded = np.pad(np.asarray(samples, dtype=np.float64), FFT // 2, mode="reflect")
    window = np.hanning(FFT + 1)[:-1]
    frames = np.lib.stride_tricks.sliding_window_view(padded, FFT)[::HOP]
    mels = np.empty((len(frames), MELS))
    for k in range(0, len(frames), BLOCK):  # half an hour of frames at once would be gigabytes
        spectrum = fft.rfft(frames[k : k + BLOCK] * window, axis=1)
        mels[k : k + BLOCK] = (spectrum.real**2 + spectrum.imag**2) @ _filters(sample_rate).T
    return mels


def _cosine(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> float:
    return float(a @ b / math.sqrt((a @ a) * (b @ b)))


def _pearson(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> float | None:
    a, b = a - a.mean(), b - b.mean()
    norm = math.sqrt((a @ a) * (b @ b))
    return float(a @ b) / norm if norm > 0 else None


def compare(first: Samples, first_rate: int, second: Samples, second_rate: int) -> Parity:
    """Compares two mono recordings of one rate. Never raises for sound that can occur: `reason` says why there are no figures.

    Reasons: different_rates, too_short, not_finite, silent, different_durations (beyond 1 % or two hops).
    """
    if first_rate != second_rate:
        return Parity("different_rates")
    if min(len(first), len(second)) < FFT:
        return Parity("too_short")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return Parity("not_finite")
    if not (np.any(first) and np.any(second)):
        return Parity("silent")
    if abs(len(first) - len(second)) > max(DURATION_SHARE * len(first), 2 * HOP):
        return Parity("different_durations")
    if len(first) == len(second) and np.array_equal(first, second):
        return Parity("", 0.0, 0.0, 1.0, 1.0, None, True)
    shift = shift_between(first, second, min(int(WIDEST_SHIFT_S * first_rate), min(len(first), len(second)) - FFT))
    a, b = first[max(0, -shift) :], second[max(0, shift) :]
    common = min(len(a), len(b))
    if common < FFT:
        return Parity("too_short")
    a, b = (np.asarray(x[:common], dtype=np.float64) for x in (a, b))
    left, right = mel_power(a, first_rate), mel_power(b, first_rate)
    logs = np.log(left + FLOOR), np.log(right + FLOOR)
    noise = float(np.mean((b - a) ** 2))
    return Parity(
        "", shift / first_rate, float(np.mean(np.abs(logs[0] - logs[1]))),
        _cosine(np.log(left.mean(axis=0) + FLOOR), np.log(right.mean(axis=0) + FLOOR)),
        _pearson(left.sum(axis=1), right.sum(axis=1)), 10 * math.log10(float(np.mean(a**2)) / noise) if noise else None,
    )  # fmt: skip
