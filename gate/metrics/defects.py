"""Defects of a clip that no mean shows: nothing to hear, a runaway, an end cut off, clicks where chunks meet."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from synth import pauses

IDENTITY = "defects-1"

SHORTEST_S = 0.1
#: A clip is implausibly long for its text beyond this: three to ten times the slowest of speakers.
LONGEST_S, LONGEST_S_PER_CHARACTER = 5.0, 0.6
FULL_SCALE, CLIPPED_SHARE = 0.999, 1e-3
OFFSET = 0.02
CUT_WITHIN_MS, CUT_BELOW_LEVEL_DB = 10, 15.0
#: A step at a seam is a click when it is this many times what the sound does within 5 ms of it, and above -50 dBFS.
CLICK_RATIO, CLICK_FLOOR, CLICK_AROUND_S = 4.0, 10 ** (-50 / 20), 0.005


def failure(samples: npt.NDArray[np.floating], sample_rate: int) -> str:
    """Why nothing can be measured on the clip - empty, not_finite, too_short, no_audible_speech - or ''. Mono samples in [-1, 1]."""
    if not len(samples):
        return "empty"
    if not np.isfinite(samples).all():
        return "not_finite"
    if len(samples) < SHORTEST_S * sample_rate:
        return "too_short"
    if pauses.analyse(samples, sample_rate).no_audible_speech or _moving_ms(samples, sample_rate) < pauses.AUDIBLE_MS:
        return "no_audible_speech"
    return ""


def _moving_ms(samples: npt.NDArray[np.floating], sample_rate: int) -> int:
    """How long the sound is audible once each 10 ms frame's own mean is taken out: a constant is loud, and nothing to hear."""
    edges = pauses.frame_edges(len(samples), sample_rate)
    x = np.asarray(samples[: edges[-1]], dtype=np.float64)
    size = np.diff(edges)
    power = np.add.reduceat(x * x, edges[:-1]) / size - (np.add.reduceat(x, edges[:-1]) / size) ** 2
    return int((power >= 10 ** (pauses.AUDIBLE_DBFS / 10)).sum()) * pauses.FRAME_MS


def clipped(samples: npt.NDArray[np.floating]) -> bool:
    """More than one sample in a thousand stands at full scale."""
    return float(np.mean(np.abs(samples) >= FULL_SCALE)) > CLIPPED_SHARE


def offset(samples: npt.NDArray[np.floating]) -> bool:
    """The mean is away from zero by more than 2 % of full scale: levels and DNSMOS can't be trusted."""
    return abs(float(np.mean(samples, dtype=np.float64))) > OFFSET


def cut_off(samples: npt.NDArray[np.floating], sample_rate: int, found: pauses.Pauses) -> bool:
    """The sound ends at speech level: no silence after it, and its last 10 ms within 15 dB of the clip's level."""
    if found.level_dbfs is None or found.trailing_ms is None or found.trailing_ms > CUT_WITHIN_MS:
        return False
    last = samples[-sample_rate * CUT_WITHIN_MS // 1000 :]
    rms = float(np.sqrt(np.mean(np.asarray(last, dtype=np.float64) ** 2)))
    return rms > 0 and 20 * float(np.log10(rms)) > found.level_dbfs - CUT_BELOW_LEVEL_DB


def too_long(seconds: float, characters: int) -> bool:
    """Longer than `characters` of normalised text can take to say."""
    return seconds > LONGEST_S + LONGEST_S_PER_CHARACTER * characters


def seam_clicks(samples: npt.NDArray[np.floating], sample_rate: int, seams: Sequence[int]) -> int:
    """At how many of the places where chunks were joined the sound jumps.

    `seams`: index of the first sample of every chunk but the first. The jump is compared with the steps around it, so that neither
    the rate nor the gain matters (above -50 dBFS).
    """
    steps = np.abs(np.diff(np.asarray(samples, dtype=np.float64)))
    around = max(8, int(CLICK_AROUND_S * sample_rate))
    found = 0
    for seam in seams:
        if not 1 <= seam < len(samples):
            continue
        near = np.concatenate([steps[max(0, seam - 1 - around) : seam - 1], steps[seam : seam + around]])
        usual = float(near.max()) if len(near) else 0.0
        found += bool(steps[seam - 1] > max(CLICK_RATIO * usual, CLICK_FLOOR))
    return found
