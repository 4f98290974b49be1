"""What a plan can detect: power of every endpoint, sentences and votes needed (statistics.md 5). Pure arithmetic, nothing is simulated."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import nctdtr

from gate.statistics.intervals import t_quantile

MOST = 1_000_000
#: Net-preference variance components typical of panels, on the score scale: rater, sentence, vote (statistics.md 5).
TYPICAL = {"low": (0.017, 0.068, 0.569), "both": (0.054, 0.122, 0.517), "rater-heavy": (0.128, 0.032, 0.527)}


def _upper(df: float, ncp: float, tail: float) -> float:
    """P(T' > t) for a noncentral t with this df and noncentrality, t the central quantile at `tail`."""
    return 1.0 - float(nctdtr(df, ncp, t_quantile(df, tail)))


def difference_sd(sd_sentence: float, sd_seed: float, replicates: int) -> float:
    """SD of a sentence's candidate-less-parent difference of means over replicates."""
    return math.sqrt(sd_sentence**2 + 2 * sd_seed**2 / replicates)


def power(n: int, sd: float, margin: float, harm: float = 0.0, tail: float = 0.025) -> float:
    """Chance that n sentences show an endpoint to be within its margin when the true harm is `harm`.

    Args: sd of the per-sentence differences, margin > 0 and harm in the endpoint's unit, on the badness scale.
    """
    if n < 2:
        return 0.0
    if sd <= 0:
        return float(harm < margin)
    return _upper(n - 1, (margin - harm) * math.sqrt(n) / sd, tail)


def equivalence_power(n: int, sd: float, low: float, high: float, shift: float = 0.0, tail: float = 0.025) -> float:
    """Chance that the whole interval falls inside (low, high) when the truth is `shift`: both one-sided tests pass."""
    both = power(n, sd, high, shift, tail) + power(n, sd, -low, -shift, tail) - 1.0
    return max(0.0, both)


def length_power(n: int, sd_log: float, margin: float, shift: float = 0.0, tail: float = 0.025) -> float:
    """As equivalence_power, for the mean of log length ratios inside (1 - margin, 1 + margin); `shift` as a ratio less 1."""
    return equivalence_power(n, sd_log, math.log1p(-margin), math.log1p(margin), math.log1p(shift), tail)


def needed(chance: Callable[[int], float], wanted: float) -> int | None:
    """Smallest n with chance(n) >= wanted, for a chance that rises with n; None when a million don't do."""
    low, high = 1, 2
    while chance(high) < wanted:
        low, high = high, high * 2
        if high > MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if chance(middle) >= wanted else (middle, high)
    return high


@dataclass(frozen=True)
class Components:
    """Variance of a vote's score: of raters, of sentences, and of what is left."""

    rater: float
    sentence: float
    vote: float


def votes_power(
    raters: float, sentences: float, votes: float, margin: float, components: Components, preference: float = 0.0, tail: float = 0.025
) -> float:
    """Chance that a panel shows the net preference above -margin when it is `preference`. Satterthwaite's df, as the interval's own."""
    if raters < 2 or sentences < 2 or votes < 2:
        return 0.0
    filled = min(1.0, votes / (raters * sentences))
    spread = components.rater / raters + components.sentence / sentences + components.vote / votes
    if spread <= 0:
        return float(preference > -margin)
    by_rater = components.rater / raters + (components.vote + components.sentence * (1 - filled)) / votes
    by_sentence = components.sentence / sentences + (components.vote + components.rater * (1 - filled)) / votes
    df = spread**2 / (by_rater**2 / (raters - 1) + by_sentence**2 / (sentences - 1))
    df = max(df, min(raters, sentences) - 1)
    return _upper(df, (preference + margin) / math.sqrt(spread), tail)


def components_of(raters: Sequence[object], sentences: Sequence[object], scores: Sequence[float]) -> Components | None:
    """Variance components of a pilot's votes by moments; None for fewer than two raters or sentences. Negative parts are zero.

    Over pairs of votes: same rater and another sentence share the rater's part, same sentence and another rater the sentence's.
    """
    y = np.asarray(scores, dtype=np.float64)
    if y.size < 3:
        return None
    r, s = (np.unique(np.asarray(x), return_inverse=True)[1] for x in (raters, sentences))
    if r.max() < 1 or s.max() < 1:
        return None
    e = y - y.mean()

    def shared(codes: np.ndarray) -> float:
        count, total, squares = np.bincount(codes), np.bincount(codes, e), np.bincount(codes, e * e)
        pairs = float((count * (count - 1)).sum())
        return float((total**2 - squares).sum()) / pairs if pairs else 0.0

    rater, sentence = max(0.0, shared(r)), max(0.0, shared(s))
    return Components(rater, sentence, max(0.0, float(e @ e) / (y.size - 1) - rater - sentence))


def advice(raters: int, sentences: int, votes: int, margin: float, components: Components, tail: float = 0.025) -> str:
    """Which of raters, sentences and votes would help most; 'raters', 'sentences', 'votes' or 'enough'.

    Doubles each in turn (votes with them, as each rater or pair brings its own) and takes what gains most.
    """
    now = votes_power(raters, sentences, votes, margin, components, 0.0, tail)
    if now >= 0.9:
        return "enough"
    more = {
        "raters": votes_power(2 * raters, sentences, votes, margin, components, 0.0, tail),
        "sentences": votes_power(raters, 2 * sentences, votes, margin, components, 0.0, tail),
        "votes": votes_power(raters, sentences, min(2 * votes, raters * sentences), margin, components, 0.0, tail),
    }
    return max(more, key=lambda name: more[name])
