"""What a lever was made for, read from its undisturbed timed blocks: time, memory, first sound, streaming."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gate import policy
from gate.decide import Speed
from gate.statistics import speed
from gate.statistics.results import finite
from gate.timing import Blocks, batch_sizes, undisturbed
from synth import streaming
from synth.engine.protocol import YARDSTICK
from synth.models import Pass, TimedBlock

#: A ratio that must be reached, besides an interval below 1.
NEEDED = {"memory": 0.95, "first_audio": 0.97}
#: So much faster, beyond doubt, and it was the machine: a third of what a speed-up needs.
LENT = 1.01


class Unmeasured(Exception):
    """A pass lacks what the benefit is read from."""


def _runs(blocks: list[TimedBlock], value: Callable[[Pass], float]) -> tuple[list[float], list[int], list[int]]:
    """(a value of each pass, its arm, its block), in the order they ran."""
    passes = [(value(p), int(p.place in (1, 2)), b.number) for b in blocks for p in b.passes.order_by("place")]
    values, arms, numbers = zip(*passes, strict=True)
    return list(values), list(arms), list(numbers)


def _present(run: Pass, name: str) -> list[Any]:
    found = [c[name] for c in run.clips if c.get(name)]
    if len(found) < len(run.clips):
        raise Unmeasured(name)
    return found


def _log_peak(run: Pass) -> float:
    return math.log(max(_present(run, "peak_memory_bytes")))


def _mean_log(name: str) -> Callable[[Pass], float]:
    return lambda run: float(np.mean([math.log(v) for v in _present(run, name)]))


def _log_wall(blocks: list[TimedBlock]) -> Callable[[Pass], float]:
    """Mean log of what a sentence took; where a system speaks several at once, of what all took: their own times overlap."""
    if any(batch_sizes(b.first, b.second) for b in blocks):
        return lambda run: math.log(run.figures["total_wall_s"])
    return _mean_log("wall_s")


def _log_yardstick(run: Pass) -> float:
    if YARDSTICK not in run.figures.get("sentinel_s", {}):
        raise Unmeasured(YARDSTICK)
    return float(np.mean(np.log(run.figures["sentinel_s"][YARDSTICK])))


def _lent(blocks: list[TimedBlock], plan: policy.Plan) -> float | None:
    """How many times as fast the machine itself was for the candidate, or None where it was alike for both, as far as can be told.

    No lever touches the yardstick. A machine that was slower for the candidate hides what it gained, one that was faster lends it some.
    """
    if any(b.first.body.get("runtime") != b.second.body.get("runtime") for b in blocks):
        return None  # processes that are set up differently
    try:
        found = speed.speedup(*_runs(blocks, _log_yardstick), plan.share)
    except Unmeasured:
        return None
    faster = found.lower > 1 and found.estimate >= LENT
    slower = found.upper < 1 and found.estimate <= 1 / LENT
    return found.estimate if faster or slower else None


def _sides(blocks: list[TimedBlock], share: float) -> list[float]:
    """The speed-up by the mean of a pass's clips and by their median: a few clips that always stall are in the one and not in the other."""

    def by(average: Callable[[list[float]], Any]) -> float:
        return speed.speedup(*_runs(blocks, lambda run: math.log(average(_present(run, "wall_s")))), share).estimate

    return [by(np.mean), by(np.median)]


def _preroll(run: Pass) -> float:
    streams = zip(_present(run, "arrivals_s"), _present(run, "durations_s"), strict=True)
    return float(np.mean([streaming.smallest_preroll(a, d) for a, d in streams]))


def measured_gain(blocks: Blocks, plan: policy.Plan) -> tuple[str, dict[str, Any]]:
    """(state, facts) of a benefit that is not speed, read from the clean blocks: memory, first_audio or streaming."""
    clean = undisturbed(blocks.rows())
    if len(clean) < plan.timing.blocks:
        return "invalid", {}
    if plan.benefit != "memory" and (lent := _lent(clean, plan)):
        return "invalid", {"lent": lent}
    try:
        if plan.benefit == "streaming":
            return _streaming(clean, plan)
        found = speed.difference(*_runs(clean, _log_peak if plan.benefit == "memory" else _mean_log("first_audio_s")), plan.share)
    except Unmeasured:
        return "unknown", {}
    ratio, lower, upper = (math.exp(x) for x in (found.estimate, found.lower, found.upper))
    needed = NEEDED[plan.benefit]
    state = "shown" if ratio <= needed and upper < 1 else "absent"
    facts = {"ratio": ratio, "lower": finite(lower), "upper": finite(upper), "needed": needed, "runs": found.n, "df": found.df}
    return state, {"name": plan.benefit} | facts


def _streaming(clean: list[TimedBlock], plan: policy.Plan) -> tuple[str, dict[str, Any]]:
    """Mean of the smallest pre-roll that never starves; seconds, below 0 is less than the parent's."""
    values, arms, numbers = _runs(clean, _preroll)
    found = speed.difference(values, arms, numbers, plan.share)
    means = [float(np.mean([v for v, a in zip(values, arms, strict=True) if a == arm])) for arm in (0, 1)]
    facts = {
        "name": "streaming", "estimate": found.estimate, "lower": finite(found.lower), "upper": finite(found.upper),
        "parent_s": means[0], "candidate_s": means[1], "runs": found.n, "df": found.df,
    }  # fmt: skip
    return "shown" if found.upper < 0 else "absent", facts


def measured_speed(blocks: Blocks, plan: policy.Plan) -> tuple[Speed, dict[str, Any]]:
    """From the clean blocks: S = S_wall x min(1, length ratio). Too few clean blocks make it invalid."""
    everything = blocks.rows()
    clean = undisturbed(everything)
    facts: dict[str, Any] = {
        "blocks": len(everything), "clean": len(clean), "contended": [b.contended for b in everything if b.contended],
    }  # fmt: skip
    if len(clean) < plan.timing.blocks:
        return Speed(contaminated=True), facts
    if lent := _lent(clean, plan):
        return Speed(contaminated=True), facts | {"lent": lent}
    wall, arms, numbers = _runs(clean, _log_wall(clean))
    found = speed.speedup(wall, arms, numbers, plan.share)
    audio, _, _ = _runs(clean, _mean_log("audio_s"))
    by_arm = [float(np.mean([v for v, a in zip(audio, arms, strict=True) if a == arm])) for arm in (0, 1)]
    ratio = math.exp(by_arm[1] - by_arm[0])
    shrink = min(1.0, ratio)
    facts |= {
        "wall_speedup": found.estimate, "lower": finite(found.lower * shrink), "upper": finite(found.upper * shrink), "length_ratio": ratio,
        "speedup": found.estimate * shrink, "residual_spread": finite(found.residual_spread), "df": found.df, "runs": found.n,
    }  # fmt: skip
    whole = any(batch_sizes(b.first, b.second) for b in clean)  # a batch's clips have no times of their own
    averages = [] if whole else [side * shrink for side in _sides(clean, plan.share)]
    facts |= {"averages": averages}
    result = Speed(
        rtf_speedup=found.estimate * ratio, wall_speedup=found.estimate, spread=found.residual_spread,
        lower=found.lower * shrink, upper=found.upper * shrink, averages=tuple(averages),
    )  # fmt: skip
    return result, facts
