"""The speed-up of a lever, from its undisturbed timed blocks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gate import policy
from gate.decide import Speed
from gate.models import Lever
from gate.statistics import speed
from gate.statistics.results import finite
from synth.models import Leased, TimedBlock


def blocks_of(lever: Lever):
    return TimedBlock.objects.filter(first=lever.parent, second=lever.candidate, draw_key=lever.draw.key).order_by("number")


#: A candidate must need at least this much less memory, and the interval must lie below 1.
MEMORY_NEEDED = 0.95


def measured_memory(lever: Lever, plan: policy.Plan) -> tuple[str, dict[str, Any]]:
    """(state of the benefit, facts) of the candidate's peak memory over its parent's, from the clean blocks; below 1 is less."""
    clean = [b for b in blocks_of(lever) if b.state == Leased.State.DONE and not b.contended]
    if len(clean) < plan.timing.blocks:
        return "invalid", {}
    peak, arm, block = [], [], []
    for b in clean:
        for p in b.passes.order_by("place"):
            found = [c["peak_memory_bytes"] for c in p.clips if c.get("peak_memory_bytes")]
            if not found:
                return "unknown", {}
            peak.append(math.log(max(found)))
            arm.append(int(p.place in (1, 2)))
            block.append(b.number)
    saved = speed.speedup(peak, arm, block, plan.share)  # parent's over candidate's, as for time
    ratio, lower, upper = (1 / x if x else math.inf for x in (saved.estimate, saved.upper, saved.lower))
    state = "shown" if ratio <= MEMORY_NEEDED and upper < 1 else "absent"
    return state, {"ratio": ratio, "lower": finite(lower), "upper": finite(upper), "runs": saved.n, "df": saved.df}


def measured_speed(lever: Lever, plan: policy.Plan) -> tuple[Speed, dict[str, Any]]:
    """From the clean blocks: S = S_wall x min(1, length ratio). Too few clean blocks make it invalid."""
    blocks = list(blocks_of(lever))
    clean = [b for b in blocks if b.state == Leased.State.DONE and not b.contended]
    facts: dict[str, Any] = {"blocks": len(blocks), "clean": len(clean), "contended": [b.contended for b in blocks if b.contended]}
    if len(clean) < plan.timing.blocks:
        return Speed(contaminated=True), facts
    wall, arm, block, audio = [], [], [], {0: [], 1: []}
    for b in clean:
        for p in b.passes.order_by("place"):
            which = int(p.place in (1, 2))
            wall.append(float(np.mean([math.log(c["wall_s"]) for c in p.clips])))
            audio[which].append(float(np.mean([math.log(c["audio_s"]) for c in p.clips])))
            arm.append(which)
            block.append(b.number)
    found = speed.speedup(wall, arm, block, plan.share)
    ratio = math.exp(float(np.mean(audio[1]) - np.mean(audio[0])))
    shrink = min(1.0, ratio)
    facts |= {
        "wall_speedup": found.estimate, "lower": finite(found.lower * shrink), "upper": finite(found.upper * shrink), "length_ratio": ratio,
        "speedup": found.estimate * shrink, "residual_spread": finite(found.residual_spread), "df": found.df, "runs": found.n,
    }  # fmt: skip
    result = Speed(
        rtf_speedup=found.estimate * ratio, wall_speedup=found.estimate, spread=found.residual_spread,
        lower=found.lower * shrink, upper=found.upper * shrink,
    )  # fmt: skip
    return result, facts
