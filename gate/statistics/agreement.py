"""How far raters agree: Krippendorff's alpha and Gwet's AC1. Shown, never gated on: with one true answer for every sentence,
honest raters agree no better than chance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Agreement:
    """None where undefined: fewer than two votes on every item, or every vote alike. `pairable`: votes on items with at least two."""

    alpha_nominal: float | None
    alpha_ordinal: float | None
    ac1: float | None
    items: int
    pairable: int
    reason: str = ""


def _table(items: Sequence[object], values: Sequence[object]) -> Array:
    """Votes per item and category, shape (items, categories), items with at least two votes, categories in rising order."""
    i = np.unique(np.asarray(items), return_inverse=True)[1]
    found, v = np.unique(np.asarray(values), return_inverse=True)
    table = np.zeros((i.max() + 1, len(found)))
    np.add.at(table, (i, v), 1)
    kept: Array = table[table.sum(axis=1) >= 2]
    return kept


def _alpha(table: Array, distance: Callable[[Array], Array]) -> float | None:
    """Krippendorff (2011), "Computing Krippendorff's alpha-reliability", with the coincidence matrix of its section C."""
    per_item = table.sum(axis=1)
    coincidences = (table / (per_item - 1)[:, None]).T @ table - np.diag((table / (per_item - 1)[:, None]).sum(axis=0))
    margin = coincidences.sum(axis=1)
    n = margin.sum()
    apart = distance(margin)
    expected = float((np.outer(margin, margin) * apart).sum()) / float(n - 1)
    return None if expected == 0 else 1 - float((coincidences * apart).sum()) / expected


def _nominal(margin: Array) -> Array:
    return 1 - np.eye(len(margin))


def _ordinal(margin: Array) -> Array:
    """Squared number of votes between two categories, half of each end counted."""
    middle = np.cumsum(margin) - margin / 2
    return np.subtract.outer(middle, middle) ** 2


def _ac1(table: Array) -> float | None:
    """Gwet (2008): chance agreement from the categories' mean shares."""
    per_item = table.sum(axis=1)
    agreed = float((table * (table - 1) / (per_item * (per_item - 1))[:, None]).sum() / len(table))
    share = (table / per_item[:, None]).mean(axis=0)
    chance = float((share * (1 - share)).sum()) / (len(share) - 1)
    return (agreed - chance) / (1 - chance)


def agreement(items: Sequence[object], values: Sequence[object]) -> Agreement:
    """Args: items and values, shape (N,): what was voted on, and the vote; values sort from one end of the scale to the other.

    Reasons: `no_votes`, `no_pairs`, `one_value`.
    """
    if not len(items):
        return Agreement(None, None, None, 0, 0, "no_votes")
    table = _table(items, values)
    count, pairable = len(table), int(table.sum())
    table = table[:, table.sum(axis=0) > 0]
    if not count:
        return Agreement(None, None, None, 0, 0, "no_pairs")
    if table.shape[1] < 2:
        return Agreement(None, None, None, count, pairable, "one_value")
    return Agreement(_alpha(table, _nominal), _alpha(table, _ordinal), _ac1(table), count, pairable)
