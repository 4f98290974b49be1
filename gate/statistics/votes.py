"""Net preference with two-way clustered error, effective clusters and Satterthwaite's degrees of freedom (statistics.md 2.3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gate.statistics.intervals import t_quantile
from gate.statistics.results import Interval


@dataclass(frozen=True)
class NetPreference(Interval):
    """P(candidate preferred) - P(parent preferred), "same" counted as no preference; in [-1, 1]. `error`: its standard error."""

    votes: int = 0
    raters: int = 0
    sentences: int = 0
    effective_raters: float = 0.0
    effective_sentences: float = 0.0
    df: float = math.nan
    driver: str = ""
    error: float = math.nan


def _codes(labels: Sequence[object] | npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], int]:
    """Labels as small numbers from 0 up, and how many different ones there are. Whole numbers close together need no sorting."""
    given = np.asarray(labels)
    if given.dtype.kind in "iu":
        codes = given - given.min()
        if codes.max() <= 8 * len(codes) + 1024:
            return codes.astype(np.int64), int(np.count_nonzero(np.bincount(codes)))
    values, codes = np.unique(given, return_inverse=True)
    return codes, len(values)


def _nobody(labels: Sequence[object] | npt.NDArray[np.int64]) -> bool:
    given = np.asarray(labels)
    return given.dtype.kind == "O" and any(x is None for x in given)


def net_preference(raters: Sequence[object], sentences: Sequence[object], scores: Sequence[int], tail: float = 0.025) -> NetPreference:
    """Args: raters, sentences, scores, each shape (N,): who, on what, and -1 (parent), 0 (same) or +1 (candidate).

    Reasons: `no_votes`; `not_votes` (a score that is no number, a rater or sentence nobody knows); `one_cluster` (one rater or one
    sentence: the interval is all of [-1, 1]).
    """
    y = np.asarray(scores, dtype=np.float64)
    n = y.size
    if n == 0:
        return NetPreference(math.nan, -1.0, 1.0, 0, "no_votes")
    if not np.isfinite(y).all() or _nobody(raters) or _nobody(sentences):
        return NetPreference(math.nan, -1.0, 1.0, n, "not_votes")
    r, n_raters = _codes(raters)
    s, n_sentences = _codes(sentences)
    mean = float(y.mean())
    r_eff = n * n / float((np.bincount(r).astype(float) ** 2).sum())
    s_eff = n * n / float((np.bincount(s).astype(float) ** 2).sum())
    if n_raters < 2 or n_sentences < 2:
        return NetPreference(mean, -1.0, 1.0, n, "one_cluster", n, n_raters, n_sentences, r_eff, s_eff)
    e = y - mean
    v_r = r_eff / (r_eff - 1) * float((np.bincount(r, e) ** 2).sum()) / n**2
    v_s = s_eff / (s_eff - 1) * float((np.bincount(s, e) ** 2).sum()) / n**2
    cells, _ = _codes(r * (int(s.max()) + 1) + s)
    v_i = n / (n - 1) * float((np.bincount(cells, e) ** 2).sum()) / n**2
    plus, minus = (float((y > 0).sum()) + 1) / (n + 3), (float((y < 0).sum()) + 1) / (n + 3)
    v_f = (plus + minus - (plus - minus) ** 2) / n
    options = {"both": v_r + v_s - v_i, "raters": v_r, "sentences": v_s, "votes": v_i, "floor": v_f}
    driver = max(options, key=lambda name: options[name])
    variance = options[driver]
    if driver == "raters":
        df = r_eff - 1
    elif driver == "sentences":
        df = s_eff - 1
    else:
        below = v_r**2 / (r_eff - 1) + v_s**2 / (s_eff - 1)
        df = max(v_r + v_s - v_i, 0.0) ** 2 / below if below > 0 else 0.0
    df = max(df, min(r_eff, s_eff) - 1, 0.5)
    error = math.sqrt(variance)
    half = t_quantile(df, tail) * error
    lower, upper = max(-1.0, mean - half), min(1.0, mean + half)
    return NetPreference(mean, lower, upper, n, "", n, n_raters, n_sentences, r_eff, s_eff, df, driver, error)
