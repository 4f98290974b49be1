"""Lan-DeMets boundaries with O'Brien-Fleming spending for planned looks (statistics.md 3.1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

Array = npt.NDArray[np.float64]

POINTS = 1201
#: A boundary no score reaches.
NEVER = 38.0


def spent(fraction: float, alpha: float) -> float:
    """One-sided error spent by this share of the information: 2 - 2 Phi(z_{1 - alpha/2} / sqrt(fraction))."""
    return 2 * float(ndtr(float(ndtri(alpha / 2)) / math.sqrt(fraction)))


def boundaries(fractions: Sequence[float], alpha: float = 0.025) -> list[float]:
    """Critical z of each look, one-sided at `alpha` in all. fractions: rising shares of the information, the last one 1.

    Source: Armitage, McPherson and Rowe's recursion on the density of the score not yet stopped.
    """
    return list(_boundaries(tuple(float(f) for f in fractions), alpha))


def tails(fractions: Sequence[float], alpha: float = 0.025) -> list[float]:
    """One-sided error of the interval read at each look, so that all of them together keep `alpha`."""
    return [float(ndtr(-z)) for z in boundaries(fractions, alpha)] if len(fractions) > 1 else [alpha]


def chance_to_pass(z: float, fraction: float, last_z: float, planned_z: float) -> float:
    """Chance that the last look will pass, seen from this one: the larger of two views, so that nobody is sent home too early.

    Args: z, distance from the margin in standard errors now; fraction of the information that is in, below 1; last_z, what the last
    look must exceed; planned_z, the distance it will have if nothing is wrong. The first view goes on as it went, the second as planned.
    Stopping on it needs no adjustment: it can only take acceptances away.
    """
    rest = 1.0 - fraction
    drifts = (z / math.sqrt(fraction), planned_z)
    return max(float(ndtr((z * math.sqrt(fraction) + drift * rest - last_z) / math.sqrt(rest))) for drift in drifts)


@lru_cache(maxsize=64)
def _boundaries(fractions: tuple[float, ...], alpha: float) -> tuple[float, ...]:
    result: list[float] = []
    grid, density, before, already = np.zeros(1), np.ones(1), 0.0, 0.0
    for fraction in fractions:
        step, target = math.sqrt(fraction - before), spent(fraction, alpha) - already
        weights = density if len(grid) == 1 else density * _simpson(grid)

        args = (target, grid, weights, step, fraction)
        z = brentq(_excess, -8.0, NEVER, args=args, xtol=1e-10) if target > 1e-300 else NEVER  # so early, nothing may be spent
        result.append(float(z))
        top = z * math.sqrt(fraction)
        new = np.linspace(min(-8.0 * math.sqrt(fraction), top - 1), top, POINTS)
        kernel = np.exp(-0.5 * ((new[:, None] - grid[None, :]) / step) ** 2) / (step * math.sqrt(2 * math.pi))
        grid, density, before, already = new, kernel @ weights, fraction, already + target
    return tuple(result)


def _excess(z: float, target: float, grid: Array, weights: Array, step: float, fraction: float) -> float:
    """Probability of first crossing z at this look, less what it may spend."""
    return float(weights @ ndtr(-(z * math.sqrt(fraction) - grid) / step)) - target


def _simpson(grid: Array) -> Array:
    weights: Array = np.ones(len(grid))
    weights[1:-1:2], weights[2:-1:2] = 4, 2
    weights *= (grid[1] - grid[0]) / 3
    return weights
