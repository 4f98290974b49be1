"""Which look of the automatic evidence comes next, how many sentences it covers, and how strict it is."""

from __future__ import annotations

from gate import policy
from gate.models import Lever, Look
from gate.statistics import looks
from synth.models import Sentence


def counts(plan: policy.Plan, drawn: int) -> list[int]:
    """Sentences each look covers: the first so many of the draw."""
    return [max(1, round(share * drawn)) for share in plan.looks]


def tails(plan: policy.Plan, covered: list[int]) -> list[float]:
    """One-sided error of each look's intervals; together they spend this attempt's share."""
    return looks.tails([n / covered[-1] for n in covered], plan.share)


def taken(lever: Lever) -> int:
    return Look.objects.filter(plan__lever=lever, kind=Look.Kind.AUTOMATIC).count()


def current(lever: Lever) -> int:
    """From 0: the look that is being prepared; once listeners are asked or a verdict is there, the last one taken."""
    done = taken(lever)
    over = lever.state in (Lever.State.LISTENING, Lever.State.SETTLED)
    return max(done - 1, 0) if over else min(done, len(lever.plan.body.get("looks", [1.0])) - 1)


def covered(lever: Lever) -> list[Sentence]:
    """The sentences that the current look judges, in the draw's order."""
    sentences = lever.draw.sentences()
    return sentences[: counts(policy.of(lever.plan.body), len(sentences))[current(lever)]]
