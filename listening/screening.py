"""Who listens, and who does not: rules written down beforehand that never look at which system was preferred, or at agreement."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from listening.models import Exclusion, Pair, Panel, Vote

Kind = Pair.Kind
#: A control that more than this share of otherwise good raters fail is at fault itself.
FAULTY_SHARE, FAULTY_RATERS = 0.3, 5
#: Share of a day's raters excluded that calls for somebody to look, and the raters it takes to say so.
ALARM_SHARE, ALARM_RATERS = 0.2, 5
#: Failed spoken instructions after which a day's work is not accepted for payment.
INSTRUCTIONS_FAILED = 2


@dataclass(frozen=True)
class Rules:
    """From a plan. With less to go by than these numbers, a rater counts."""

    catches: int = 5
    catch_share: float = 0.8
    side_votes: int = 20
    side_p: float = 0.001
    listened_votes: int = 10
    unheard_share: float = 0.2


@dataclass
class Record:
    """What is known of how a rater listens, over all studies. Counts of answers."""

    catches: int = 0
    caught: int = 0
    left: int = 0
    right: int = 0
    answers: int = 0
    doubtful: int = 0
    instructions: int = 0
    followed: int = 0


def caught(vote: Vote) -> bool:
    """Whether the undamaged side was preferred."""
    return vote.score == -1


def followed(vote: Vote) -> bool:
    return vote.choice == vote.trial.pair.expected


def records(raters: Iterable[int]) -> dict[int, Record]:
    """rater -> record, from standing votes; practice and retired controls say nothing."""
    rows = (
        Vote.objects.filter(trial__rater__in=list(raters), superseded_at=None, trial__pair__retired_at=None)
        .exclude(trial__pair__kind=Kind.PRACTICE)
        .select_related("trial__pair")
    )
    found: dict[int, Record] = defaultdict(Record)
    for vote in rows.iterator():
        record, kind = found[vote.trial.rater_id], vote.trial.pair.kind
        record.answers += 1
        record.doubtful += bool(vote.log.get("doubt"))
        record.left += vote.choice == Vote.Choice.LEFT
        record.right += vote.choice == Vote.Choice.RIGHT
        if kind == Kind.OBVIOUS:
            record.catches += 1
            record.caught += caught(vote)
        elif kind == Kind.INSTRUCTION:
            record.instructions += 1
            record.followed += followed(vote)
    return found


def side_p(left: int, right: int) -> float:
    """Exact two-sided binomial probability of sides so uneven, were both as likely."""
    n = left + right
    return min(1.0, 2 * sum(math.comb(n, k) for k in range(min(left, right) + 1)) / 2**n)


def judge(record: Record, rules: Rules) -> str:
    """Why this rater's votes don't count: `catches`, `side_bias`, `listening`; '' when they do."""
    if record.catches >= rules.catches and record.caught < rules.catch_share * record.catches - 1e-9:
        return "catches"
    if record.left + record.right >= rules.side_votes and side_p(record.left, record.right) < rules.side_p:
        return "side_bias"
    if record.answers >= rules.listened_votes and record.doubtful > rules.unheard_share * record.answers:
        return "listening"
    return ""


def excluded(raters: Iterable[int], rules: Rules) -> dict[int, str]:
    """rater -> why their votes don't count; by rule, or by somebody's decision."""
    wanted = list(raters)
    return _excluded(wanted, records(wanted), rules)


def _excluded(raters: list[int], known: dict[int, Record], rules: Rules) -> dict[int, str]:
    found = {rater: why for rater, record in known.items() if (why := judge(record, rules))}
    decided = Exclusion.objects.filter(rater__in=raters, lifted_at=None).values_list("rater_id", "rule")
    return found | dict(decided)


def payable(record: Record) -> bool:
    """Whether the work is accepted for payment: another matter than whether it counts. Only plain instructions can spoil it."""
    return record.instructions - record.followed < INSTRUCTIONS_FAILED


def retire_faulty(panel: Panel, rules: Rules) -> list[Pair]:
    """Retires the obvious controls that otherwise good raters fail: the control is at fault, not they."""
    answers: dict[int, list[tuple[int, bool]]] = defaultdict(list)
    votes = Vote.objects.filter(
        trial__pair__study__panel=panel, trial__pair__kind=Kind.OBVIOUS, trial__pair__retired_at=None, superseded_at=None
    ).select_related("trial__pair")
    for vote in votes:
        answers[vote.trial.pair_id].append((vote.trial.rater_id, caught(vote)))
    known = records({rater for found in answers.values() for rater, _ in found})
    retired = []
    for pair, found in answers.items():
        others = [(right, known[rater]) for rater, right in found]
        good = [
            right for right, r in others if r.catches > rules.catches - 1 and r.caught - right >= rules.catch_share * (r.catches - 1) - 1e-9
        ]
        if len(good) >= FAULTY_RATERS and good.count(False) > FAULTY_SHARE * len(good):
            Pair.objects.filter(pk=pair, retired_at=None).update(retired_at=timezone.now())
            retired.append(pair)
    return list(Pair.objects.filter(pk__in=retired))


def alarm(panel: Panel, rules: Rules) -> str:
    """A sentence when the share of a day's raters that don't count is high, or has jumped; '' otherwise."""

    def share(start: timedelta, end: timedelta) -> tuple[int, int]:
        now = timezone.now()
        who = set(
            Vote.objects.filter(trial__rater__panel=panel, cast_at__gt=now - start, cast_at__lte=now - end).values_list(
                "trial__rater_id", flat=True
            )
        )
        return len(excluded(who, rules)), len(who)

    out, of = share(timedelta(days=1), timedelta(0))
    before, of_before = share(timedelta(days=8), timedelta(days=1))
    if of < ALARM_RATERS or out <= ALARM_SHARE * of:
        return ""
    usual = f"; in the week before it was {before} of {of_before}" if of_before else ""
    return (
        f"{out} of the {of} raters of the last day don't count{usual}. See whether a control, the sound or the invitation is at fault "
        "before you blame the raters."
    )


def summary(panel: Panel, rules: Rules) -> list[dict[str, Any]]:
    """One row for each rater of the panel who has answered: what their record is and whether they count. No directions."""
    who = list(Vote.objects.filter(trial__rater__panel=panel).values_list("trial__rater_id", flat=True).distinct())
    known = records(who)
    out = _excluded(who, known, rules)
    return [
        {"rater": rater, "record": record, "why": out.get(rater, ""), "payable": payable(record)} for rater, record in sorted(known.items())
    ]
