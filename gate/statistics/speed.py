"""What a change costs or saves from run to run, from A-B-B-A blocks (statistics.md 1.7)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gate.statistics.intervals import t_quantile
from gate.statistics.results import Interval, unknown


@dataclass(frozen=True)
class Difference(Interval):
    """Candidate minus parent, in the unit of the runs. `residual_sd`: of a run once blocks and drift are taken out."""

    residual_sd: float = math.nan
    df: int = 0


@dataclass(frozen=True)
class Speedup(Interval):
    """Parent's time over candidate's (above 1 is faster). `residual_spread` = exp(2 sigma) - 1 of the detrended runs."""

    residual_spread: float = math.nan
    df: int = 0


def difference(runs: Sequence[float], arm: Sequence[int], block: Sequence[int], tail: float = 0.025) -> Difference:
    """Least squares of a run's mean on arm, block and time within block; t with the residual degrees of freedom (2m - 1).

    Args: runs, one mean for each, in the order run; arm 0 = parent, 1 = candidate; block, its number.
    Reasons: `no_data`, `one_arm`, `no_residual_freedom`, `not_finite`.
    """
    y = np.asarray(runs, dtype=np.float64)
    arms, blocks = np.asarray(arm), np.asarray(block)
    n = y.size
    if n == 0:
        return Difference(**vars(unknown(0, "no_data")))
    if not np.isfinite(y).all():
        return Difference(**vars(unknown(n, "not_finite")))
    if len(set(arms.tolist())) < 2:
        return Difference(**vars(unknown(n, "one_arm")))
    columns = [(arms == 1).astype(np.float64)]
    for number in np.unique(blocks):
        inside = blocks == number
        time = np.zeros(n)
        time[inside] = np.arange(inside.sum()) - (inside.sum() - 1) / 2
        columns += [inside.astype(np.float64), time]
    x = np.stack(columns, axis=1)
    coefficients, _, rank, _ = np.linalg.lstsq(x, y, rcond=None)
    df, estimate = n - int(rank), float(coefficients[0])
    if df < 1 or rank < x.shape[1]:
        return Difference(estimate, -math.inf, math.inf, n, "no_residual_freedom")
    residual = y - x @ coefficients
    sigma2 = float(residual @ residual) / df
    half = t_quantile(df, tail) * math.sqrt(sigma2 * float(np.linalg.inv(x.T @ x)[0, 0]))
    return Difference(estimate, estimate - half, estimate + half, n, "", math.sqrt(sigma2), df)


def speedup(log_wall: Sequence[float], arm: Sequence[int], block: Sequence[int], tail: float = 0.025) -> Speedup:
    """The ratio of times: `difference` of the runs' mean log wall seconds, turned round. Reasons as there."""
    found = difference(log_wall, arm, block, tail)
    if math.isnan(found.estimate):
        return Speedup(**vars(unknown(found.n, found.reason)))
    upper = math.exp(-found.lower) if found.lower > -math.inf else math.inf
    spread = math.exp(2 * found.residual_sd) - 1
    return Speedup(math.exp(-found.estimate), math.exp(-found.upper), upper, found.n, found.reason, spread, found.df)
