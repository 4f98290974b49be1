"""What a system costs before it runs as it was timed: loading, the first call, and after how many calls a costlier start has paid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from synth.models import Configuration, Pass


@dataclass(frozen=True)
class Start:
    """Means over passes, seconds. `first_s` is the very first call, `warm_s` the same sentences once warm."""

    load_s: float
    first_s: float
    warm_s: float

    @property
    def extra_s(self) -> float:
        """What the first call takes more than a warm one: compiling, filling caches."""
        return max(0.0, self.first_s - self.warm_s)


def of(passes: Sequence[Pass]) -> Start | None:
    """None where a pass does not say, as those of before it was noted."""
    figures: list[dict[str, Any]] = [p.figures for p in passes]
    if not figures or any(f.get(name) is None for f in figures for name in ("load_s", "first_s", "warm_s")):
        return None
    load, first, warm = (sum(f[name] for f in figures) / len(figures) for name in ("load_s", "first_s", "warm_s"))
    return Start(load, first, warm)


def break_even(parent: Start, candidate: Start) -> int | None:
    """Calls after which the candidate has made up for its costlier start; 0 if it starts no later, None if it never does."""
    later = (candidate.load_s + candidate.extra_s) - (parent.load_s + parent.extra_s)
    if later <= 0:
        return 0
    gain = parent.warm_s - candidate.warm_s
    return math.ceil(later / gain) if gain > 0 else None


def rows(parent: Configuration, candidate: Configuration, blocks: Sequence[Any]) -> dict[str, Any] | None:
    """For a page: both systems' starts and the break-even; None without passes that say."""
    found = [of(list(Pass.objects.filter(block__in=blocks, configuration=c))) for c in (parent, candidate)]
    if found[0] is None or found[1] is None:
        return None
    return {"systems": [(parent.name, found[0]), (candidate.name, found[1])], "calls": break_even(found[0], found[1])}
