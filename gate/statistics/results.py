"""What every interval looks like."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """An estimate with its two-sided interval. `reason` says why, where a limit is infinite or the estimate NaN; else ''."""

    estimate: float
    lower: float
    upper: float
    n: int
    reason: str = ""


def unknown(n: int, reason: str) -> Interval:
    """Nothing can be said: no estimate, an interval that covers everything."""
    return Interval(math.nan, -math.inf, math.inf, n, reason)


def finite(value: float | None) -> float | None:
    """JSON has no infinity: an open end is null."""
    return None if value is None or not math.isfinite(value) else float(value)
