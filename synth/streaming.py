"""Streamed speech as a listener's player would get it (metrics.md 2.11). Pure: arrival times and durations, no audio, no clock."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

#: Shorter gaps are rounding, not silence.
TINY_S = 1e-9


@dataclass(frozen=True)
class Playback:
    """Times in seconds after the call that asked for speech. A stall is an empty buffer while more is to come."""

    ttfp_s: float
    start_s: float
    stalls: int
    starved_s: float
    longest_stall_s: float
    playback_end_s: float
    gen_lead_s: float
    audio_s: float
    rtf_wall_over_audio: float
    stall_list: tuple[tuple[float, float], ...] = field(default=())


def play(arrivals: Sequence[float], durations: Sequence[float], preroll_s: float, resume_s: float = 0.0) -> Playback:
    """Plays a stream that starts once `preroll_s` of sound are buffered, and after a stall once `resume_s` are, or all of it is there.

    Args: arrivals, rising times in s at which the chunks were there; durations, seconds of sound in each; one chunk at least.
    Raises ValueError where they do not fit together.
    """
    n = len(arrivals)
    if not n or n != len(durations):
        raise ValueError("a stream has as many arrivals as durations, and at least one")
    if any(b < a for a, b in zip(arrivals, arrivals[1:], strict=False)) or min(durations) < 0:
        raise ValueError("arrivals must rise, and durations must not be negative")
    heard = arrived = 0.0
    clock = start = -math.inf
    wanted = preroll_s
    stalls: list[tuple[float, float]] = []
    empty_since: float | None = None
    for k, (at, length) in enumerate(zip(arrivals, durations, strict=True)):
        if empty_since is None and start > -math.inf:
            runs_out = clock + (arrived - heard)
            if runs_out < at - TINY_S:  # nothing to play between then and this chunk
                empty_since, heard, clock, wanted = runs_out, arrived, runs_out, resume_s
            else:
                heard, clock = heard + (at - clock), at
        arrived += length
        playing = start > -math.inf and empty_since is None
        if playing or (arrived - heard < wanted - TINY_S and k < n - 1):
            continue
        if empty_since is None:
            start = at
        else:
            stalls.append((empty_since, at - empty_since))
            empty_since = None
        clock = at
    end = clock + (arrived - heard)
    lengths = [length for _, length in stalls]
    return Playback(
        ttfp_s=arrivals[0], start_s=start, stalls=len(stalls), starved_s=sum(lengths), longest_stall_s=max(lengths, default=0.0),
        playback_end_s=end, gen_lead_s=end - arrivals[-1], audio_s=arrived,
        rtf_wall_over_audio=arrivals[-1] / arrived if arrived else math.inf, stall_list=tuple(stalls),
    )  # fmt: skip


def smallest_preroll(arrivals: Sequence[float], durations: Sequence[float]) -> float:
    """Seconds that must be buffered before playing begins so that this stream never starves, to the next millisecond.

    0 where it may begin with the first chunk. A stream that can't keep up may still be played without a gap: from its end, at the latest.
    """
    before, needed, starts_at = 0.0, -math.inf, []
    for at, length in zip(arrivals, durations, strict=True):
        needed = max(needed, at - before)  # the chunk must be there when everything before it has been played
        starts_at.append((at, before))
        before += length
    at, buffered = next((a, b) for a, b in starts_at if a >= needed - TINY_S)
    return 0.0 if at == arrivals[0] else math.floor(round(buffered * 1000, 6) + 1) / 1000
