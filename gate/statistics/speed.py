"""The speed-up from A-B-B-A blocks (statistics.md 1.7)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gate.statistics.intervals import t_quantile
from gate.statistics.results import Interval, unknown


@dataclass(frozen=True)
class Speedup(Interval):
    """Parent's time over candidate's (above 1 is faster). `residual_spread` = exp(2 sigma) - 1 of the detrended runs."""

    residual_spread: float = math.nan
    df: int = 0


def speedup(log_wall: Sequence[float], arm: Sequence[int], block: Sequence[int], tail: float = 0.025) -> Speedup:
    """Least squares of log wall time on arm, block and time within block; t with the residual degrees of freedom (2m - 1).

    Args: log_wall, mean log wall seconds of each run, in the order run; arm 0 = parent, 1 = candidate; block, its number.
    Reasons: `no_data`, `one_arm`, `no_residual_freedom`, `not_finite`.
    """
    y = np.asarray(log_wall, dtype=np.float64)
    arms, blocks = np.asarray(arm), np.asarray(block)
    n = y.size
    if n == 0:
        return Speedup(**vars(unknown(0, "no_data")))
    if not np.isfinite(y).all():
        return Speedup(**vars(unknown(n, "not_finite")))
    if len(set(arms.tolist())) < 2:
        return Speedup(**vars(unknown(n, "one_arm")))
    columns = [(arms == 1).astype(np.float64)]
    for number in np.unique(blocks):
        inside = blocks == number
        time = np.zeros(n)
        time[inside] = np.arange(inside.sum()) - (inside.sum() - 1) / 2
        columns += [inside.astype(np.float64), time]
    x = np.stack(columns, axis=1)
    coefficients, _, rank, _ = np.linalg.lstsq(x, y, rcond=None)
    df = n - int(rank)
    estimate = math.exp(-coefficients[0])
    if df < 1 or rank < x.shape[1]:
        return Speedup(estimate, 0.0, math.inf, n, "no_residual_freedom")
    residual = y - x @ coefficients
    sigma2 = float(residual @ residual) / df
    se = math.sqrt(sigma2 * float(np.linalg.inv(x.T @ x)[0, 0]))
    half = t_quantile(df, tail) * se
    effect = -coefficients[0]
    return Speedup(estimate, math.exp(effect - half), math.exp(effect + half), n, "", math.exp(2 * math.sqrt(sigma2)) - 1, df)
