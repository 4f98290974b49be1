"""How systems grew out of one another: each configuration below its parent, with the lever that made it and its verdict."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from gate import cumulative
from gate.models import Lever
from synth.models import Configuration


@dataclass(frozen=True)
class Rung:
    """A configuration on a ladder. `lever` made it, or is None for a root; `depth` counts the levers below it."""

    depth: int
    configuration: Configuration
    lever: Lever | None
    verdict: str
    evidence: str
    speed: float | None
    from_root: float | None = None


def _rung(depth: int, lever: Lever) -> Rung:
    verdict = lever.verdict
    if verdict is None:
        return Rung(depth, lever.candidate, lever, lever.state, "", None)
    speed = verdict.look.evidence.get("speed", {}).get("speedup") if verdict.look else None
    timed = cumulative.facts(lever) or {}
    return Rung(depth, lever.candidate, lever, verdict.verdict, verdict.evidence, speed, timed.get("speedup"))


def ladders() -> list[list[Rung]]:
    """One list for every root, parents before what grew from them, in the order the levers were registered."""
    levers = list(Lever.objects.select_related("parent", "candidate").order_by("pk"))
    below: dict[int, list[Lever]] = defaultdict(list)
    for lever in levers:
        below[lever.parent_id].append(lever)
    made = {lever.candidate_id for lever in levers}
    roots = {lever.parent_id: lever.parent for lever in levers if lever.parent_id not in made}
    found = []
    for root in roots.values():
        rungs, todo, seen = [Rung(0, root, None, "", "", None)], [(lever, 1) for lever in reversed(below[root.pk])], {root.pk}
        while todo:
            lever, depth = todo.pop()
            rungs.append(_rung(depth, lever))
            if lever.candidate_id not in seen:  # two levers may make one configuration; what grew from it is shown once
                seen.add(lever.candidate_id)
                todo += [(x, depth + 1) for x in reversed(below[lever.candidate_id])]
        found.append(rungs)
    return found
