"""Speech and silence in a clip: level, leading and trailing silence, internal pauses (metrics.md 2.6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IDENTITY = "pauses-1"
FRAME_MS = 10
AUDIBLE_DBFS = -60.0
BELOW_LEVEL_DB = 35.0
LOUDEST = 50
AUDIBLE_MS = 100
PAUSE_MS = 200


@dataclass(frozen=True)
class Pauses:
    """Times in ms on a 10 ms grid, levels in dBFS RMS. With `no_audible_speech` only `reason` and `duration_s` mean anything."""

    duration_s: float
    no_audible_speech: bool
    reason: str = ""
    level_dbfs: float | None = None
    threshold_dbfs: float | None = None
    leading_ms: int | None = None
    trailing_ms: int | None = None
    span_ms: int | None = None
    internal_pauses: tuple[tuple[int, int], ...] = ()
    internal_pause_count: int | None = None
    internal_pause_total_ms: int | None = None
    speech_ms: int | None = None


def frame_levels(samples: npt.NDArray[np.floating], sample_rate: int) -> npt.NDArray[np.float64]:
    """RMS of each whole 10 ms frame, dBFS; silence is -inf."""
    x = np.asarray(samples)
    if sample_rate % (1000 // FRAME_MS) == 0:
        size = sample_rate * FRAME_MS // 1000
        frames = x[: len(x) // size * size].reshape(-1, size)
        means = np.einsum("ij,ij->i", frames, frames, dtype=np.float64, casting="safe") / size  # no copy in double precision
    else:  # at 22,050 Hz a frame has 220 or 221 samples
        edges = frame_edges(len(x), sample_rate)
        squares = np.square(x[: edges[-1]], dtype=np.float64)
        means = np.add.reduceat(squares, edges[:-1]) / np.diff(edges) if len(edges) > 1 else np.zeros(0)
    with np.errstate(divide="ignore"):
        levels: npt.NDArray[np.float64] = 10 * np.log10(means)
    return levels


def frame_edges(length: int, sample_rate: int) -> npt.NDArray[np.int64]:
    """First sample of every whole 10 ms frame, and the end of the last one."""
    count = length * 1000 // (FRAME_MS * sample_rate)
    edges: npt.NDArray[np.int64] = np.arange(count + 1) * sample_rate * FRAME_MS // 1000
    return edges


def analyse(samples: npt.NDArray[np.floating], sample_rate: int) -> Pauses:
    """Args: mono samples in [-1, 1], finite; sample_rate in Hz. Invariant to gain (above the audible floor) and to appended zeros."""
    duration = len(samples) / sample_rate
    levels = frame_levels(samples, sample_rate)
    if not len(levels):
        return Pauses(duration, True, "shorter than one frame")
    audible = levels[levels >= AUDIBLE_DBFS]
    if len(audible) * FRAME_MS < AUDIBLE_MS:
        return Pauses(duration, True, f"{len(audible) * FRAME_MS} ms above {AUDIBLE_DBFS:.0f} dBFS")
    level = float(np.median(np.sort(audible)[-LOUDEST:]))
    threshold = level - BELOW_LEVEL_DB
    voiced = np.flatnonzero(levels >= threshold)
    first, last = int(voiced[0]), int(voiced[-1])
    gaps = np.diff(voiced)
    pauses = tuple(
        ((int(voiced[i]) + 1) * FRAME_MS, (int(gaps[i]) - 1) * FRAME_MS) for i in np.flatnonzero((gaps - 1) * FRAME_MS >= PAUSE_MS)
    )
    total, span = sum(length for _, length in pauses), (last - first + 1) * FRAME_MS
    return Pauses(
        duration, False, "", round(level, 2), round(threshold, 2), first * FRAME_MS, (len(levels) - 1 - last) * FRAME_MS,
        span, pauses, len(pauses), total, span - total,
    )  # fmt: skip
