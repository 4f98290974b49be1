"""Whether a host measures the same thing twice the same way. A metric that does not may decide nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from gate.metrics.battery import Scores

CALLS = 5
#: A metric may wander by this share of its margin.
SHARE = 0.2
READ: dict[str, Callable[[Scores], float]] = {
    "cer": lambda s: s.cer,
    "dnsmos": lambda s: s.dnsmos,
    "length": lambda s: s.duration_s,
    "level": lambda s: math.nan if s.level_dbfs is None else s.level_dbfs,
}


def spreads(measure: Callable[[], Scores]) -> dict[str, float]:
    """Range of each metric over five calls on the same clip, in the metric's unit (length: share of the duration)."""
    taken = [measure() for _ in range(CALLS)]
    found = {name: float(np.ptp([read(s) for s in taken])) for name, read in READ.items()}  # NaN in, NaN out
    found["length"] /= max(taken[0].duration_s, 1e-9)
    return found


def unsteady(found: Mapping[str, float], margins: Mapping[str, float]) -> list[str]:
    """Metrics whose range is a fifth of their margin or more, or not a number. Both mappings go by the metrics' names."""
    return [name for name, spread in found.items() if name in margins and not spread < SHARE * margins[name]]
