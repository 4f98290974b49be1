"""Damage of a known size, done to a good recording: what a panel must be able to hear. Pure: samples in, samples out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from synth import pauses

Samples = npt.NDArray[np.float32]

#: Signal to modulated noise in dB (ITU-T P.810). 5 is plainly broken, 15 a damage that careful listeners hear.
STRONG_Q_DB = 5.0
FADE_S = 0.005
CUT_SHARE = 0.35
DROP_S = 0.45


def mnru(samples: Samples, q_db: float, seed: int) -> Samples:
    """Modulated noise reference unit of ITU-T P.810: noise in proportion to the signal, the standard's calibrated degradation."""
    noise = np.random.default_rng(seed).standard_normal(len(samples))
    out: Samples = np.clip(samples * (1 + 10 ** (-q_db / 20) * noise), -1.0, 1.0).astype(np.float32)
    return out


def _speech(samples: Samples, rate: int) -> tuple[int, int]:
    """First and last frame of speech, in samples; all of it where none is found."""
    found = pauses.analyse(samples, rate)
    if found.leading_ms is None or found.span_ms is None:
        return 0, len(samples)
    first = found.leading_ms * rate // 1000
    return first, min(len(samples), first + found.span_ms * rate // 1000)


def _faded(samples: Samples, rate: int, start: bool, end: bool) -> Samples:
    out = samples.copy()
    n = min(int(FADE_S * rate), len(out) // 2)
    ramp = ((1 - np.cos(np.pi * np.arange(n) / max(1, n))) / 2).astype(np.float32)
    if start:
        out[:n] *= ramp
    if end:
        out[len(out) - n :] *= ramp[::-1]
    return out


def cut_tail(samples: Samples, rate: int) -> Samples:
    """The last third of the speech is missing."""
    first, last = _speech(samples, rate)
    return _faded(samples[: last - int(CUT_SHARE * (last - first))], rate, start=False, end=True)


def dropped_word(samples: Samples, rate: int) -> Samples:
    """About a word is missing from the middle, joined without a click."""
    first, last = _speech(samples, rate)
    gap = min(int(DROP_S * rate), (last - first) // 3)
    middle = first + (last - first - gap) // 2
    return np.concatenate([_faded(samples[:middle], rate, False, True), _faded(samples[middle + gap :], rate, True, False)])


def interrupted(carrier: Samples, instruction: Samples, rate: int) -> Samples:
    """A sentence that breaks off after a second, and a spoken instruction after it."""
    first, _ = _speech(carrier, rate)
    opening = _faded(carrier[: first + int(1.2 * rate)], rate, start=False, end=True)
    return np.concatenate([opening, np.zeros(int(0.25 * rate), np.float32), instruction])


OBVIOUS = ("cut tail", "modulated noise", "dropped word")


def obvious(samples: Samples, rate: int, what: str, seed: int) -> Samples:
    """One of OBVIOUS, done to the samples."""
    if what == "modulated noise":
        return mnru(samples, STRONG_Q_DB, seed)
    return cut_tail(samples, rate) if what == "cut tail" else dropped_word(samples, rate)
