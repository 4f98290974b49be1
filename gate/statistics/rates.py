"""The difference of two paired rates (Tango 1998)."""

from __future__ import annotations

import math

from scipy.optimize import brentq

from gate.statistics.intervals import z_quantile
from gate.statistics.results import Interval


def _score(b: int, c: int, n: int, difference: float) -> float:
    """Tango's score statistic for p_b - p_c = difference: eq. (6), with q21 of eq. (9)."""
    a_ = 2 * n
    b_ = -b - c + (2 * n - b + c) * difference
    c_ = -c * difference * (1 - difference)
    q21 = (math.sqrt(max(b_ * b_ - 4 * a_ * c_, 0.0)) - b_) / (2 * a_)
    variance = n * (2 * q21 + difference * (1 - difference))
    if variance <= 0:
        return math.copysign(math.inf, b - c - n * difference) if b - c != n * difference else 0.0
    return (b - c - n * difference) / math.sqrt(variance)


def paired_difference_upper(b: int, c: int, n: int, tail: float = 0.025) -> Interval:
    """(b - c)/n with its score interval at `tail` on each side.

    Args: b sentences where only the candidate fails, c where only the parent does, n sentences in all.
    Reason `no_data` for n = 0.
    """
    if n == 0:
        return Interval(math.nan, -1.0, 1.0, 0, "no_data")
    z, estimate = z_quantile(tail), (b - c) / n
    edge = 1 - 1e-12
    lower = -1.0 if _score(b, c, n, -edge) <= z else brentq(lambda d: _score(b, c, n, d) - z, -edge, estimate, xtol=1e-12)
    upper = 1.0 if _score(b, c, n, edge) >= -z else brentq(lambda d: _score(b, c, n, d) + z, estimate, edge, xtol=1e-12)
    return Interval(estimate, float(lower), float(upper), n)
