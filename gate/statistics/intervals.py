"""The interval of a mean difference: the union of Student's t and the closed-form ABC (statistics.md 1.2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

from gate.statistics.results import Interval


@dataclass(frozen=True)
class MeanInterval(Interval):
    """Interval with both parts it is made of, and ABC's acceleration (|a| <= 1/6)."""

    t_lower: float = -math.inf
    t_upper: float = math.inf
    abc_lower: float = -math.inf
    abc_upper: float = math.inf
    acceleration: float = 0.0


#: Differences so small are none: their powers would not be numbers any more.
TINY = 1e-300


@lru_cache(maxsize=4096)
def t_quantile(df: float, tail: float) -> float:
    """Upper quantile of Student's t at `tail`."""
    return -float(stdtrit(df, tail))


@lru_cache(maxsize=256)
def z_quantile(tail: float) -> float:
    return -float(ndtri(tail))


def _mean(d: npt.NDArray[np.float64]) -> tuple[float, str]:
    """The mean, and why it has no interval, or ''."""
    if d.size == 0:
        return math.nan, "no_data"
    total = float(d.sum())
    if not math.isfinite(total):
        return math.nan, "not_finite"
    return total / d.size, "one_value" if d.size == 1 else ""


def mean_interval(differences: Sequence[float] | npt.NDArray[np.float64], tail: float = 0.025) -> MeanInterval:
    """Two-sided interval of the mean of per-sentence differences at `tail` on each side. Deterministic: nothing is resampled.

    Args: differences, shape (n,), any unit; tail in (0, 0.5).
    Degenerate data gives an infinite interval with a reason: `no_data`, `one_value`, `not_finite`.
    Source: DiCiccio and Efron's ABC for a mean, where z0 = a and the curvature term vanishes.
    """
    d = np.asarray(differences, dtype=np.float64)
    n, (mean, reason) = d.size, _mean(d)
    if reason:
        return MeanInterval(mean, -math.inf, math.inf, n, reason)
    c = d - mean
    squares = float(c @ c)
    if not math.isfinite(squares) or not math.isfinite(squares**1.5):
        return MeanInterval(mean, -math.inf, math.inf, n, "not_finite")
    if squares**1.5 < TINY:  # all differences equal: there is nothing to vary
        return MeanInterval(mean, mean, mean, n, "", mean, mean, mean, mean, 0.0)
    half = t_quantile(n - 1, tail) * math.sqrt(squares / (n - 1) / n)
    s = math.sqrt(squares) / n
    a = float((c * c) @ c) / (6 * squares**1.5)
    z = z_quantile(tail)

    def abc(side: float) -> float:
        w = a + side
        return float(mean + s * w / (1 - a * w) ** 2)

    low, high = abc(-z), abc(z)
    return MeanInterval(mean, min(mean - half, low), max(mean + half, high), n, "", mean - half, mean + half, low, high, a)


def percentile_display(differences: Sequence[float] | npt.NDArray[np.float64], tail: float = 0.025) -> Interval:
    """The interval "as the percentile bootstrap would show" it, for comparing with published rows; it decides nothing.

    Cornish-Fisher expansion of the bootstrap distribution of a mean (statistics.md 6), so without random resampling.
    Reasons as mean_interval's.
    """
    d = np.asarray(differences, dtype=np.float64)
    n, (mean, reason) = d.size, _mean(d)
    if reason:
        return Interval(mean, -math.inf, math.inf, n, reason)
    c = d - mean
    sigma = math.sqrt(float(c @ c) / n)
    if not math.isfinite(sigma**4):
        return Interval(mean, -math.inf, math.inf, n, "not_finite")
    if sigma**4 < TINY:
        return Interval(mean, mean, mean, n)
    skew = float((c**3).mean()) / sigma**3
    excess = float((c**4).mean()) / sigma**4 - 3

    def end(z: float) -> float:
        w = z + skew * (z * z - 1) / (6 * math.sqrt(n)) + excess * (z**3 - 3 * z) / (24 * n) - skew**2 * (2 * z**3 - 5 * z) / (36 * n)
        return mean + w * sigma / math.sqrt(n)

    z = z_quantile(tail)
    return Interval(mean, end(-z), end(z), n)
