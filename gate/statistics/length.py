"""The length ratio of two systems (statistics.md 1.6)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gate.statistics.intervals import mean_interval
from gate.statistics.results import Interval


def ratio_interval(log_ratios: Sequence[float] | npt.NDArray[np.float64], tail: float = 0.025) -> Interval:
    """exp of the mean of log(candidate's duration / parent's) per sentence, with its interval; a ratio around 1.

    The mean of relative differences is biased by about Var(log p); logs are antisymmetric when the systems are swapped.
    """
    mean = mean_interval(log_ratios, tail)

    def ratio(log: float) -> float:
        return math.exp(log) if log < 700 else math.inf

    return Interval(
        ratio(mean.estimate) if not math.isnan(mean.estimate) else math.nan, ratio(mean.lower), ratio(mean.upper), mean.n, mean.reason
    )
