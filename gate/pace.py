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
