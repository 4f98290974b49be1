"""Who listens, and who does not: rules written down beforehand that never look at which system was preferred, or at agreement."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import BooleanField, Case, Count, F, Q, QuerySet, When
from django.utils import timezone

from listening import allocate
from listening.models import Exclusion, Pair, Panel, Study, Vote
from listening.pairs import PERSON

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
    glitches: int = 3


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


def _is_caught() -> Case:
    """Whether the undamaged side was preferred, as a column."""
    return Case(When(_caught(), then=True), default=False, output_field=BooleanField())


def _caught(vote: str = "", trial: str = "trial__") -> Q:
    """The undamaged side was preferred. Args: the lookups that lead to the vote and to its trial."""
    return Q(**{f"{vote}choice": "left", f"{trial}tested_side": 1}) | Q(**{f"{vote}choice": "right", f"{trial}tested_side": 0})


def _telling() -> QuerySet[Vote]:
    """Standing votes that say how somebody listens: practice and retired controls say nothing."""
    return Vote.objects.filter(superseded_at=None, trial__pair__retired_at=None).exclude(trial__pair__kind=Kind.PRACTICE)


def records(raters: Iterable[int]) -> dict[int, Record]:
    """person -> record, over all studies and visits."""
    who, of_kind = list(raters), "trial__pair__kind"
    obvious, instruction = Q(**{of_kind: Kind.OBVIOUS}), Q(**{of_kind: Kind.INSTRUCTION})
    rows = (
        _telling().filter(Q(trial__rater__in=who) | Q(trial__rater__first__in=who)).annotate(person=PERSON).values("person").annotate(
            answers=Count("pk"), doubtful=Count("pk", filter=~Q(doubt="")),
            left=Count("pk", filter=Q(choice="left")), right=Count("pk", filter=Q(choice="right")),
            catches=Count("pk", filter=obvious), caught=Count("pk", filter=obvious & _caught()),
            instructions=Count("pk", filter=instruction),
            followed=Count("pk", filter=instruction & Q(choice=F("trial__pair__expected"))),
        ).order_by()
    )  # fmt: skip
    return {row.pop("person"): Record(**row) for row in rows}


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
    """person -> why their votes don't count; by rule, or by somebody's decision."""
    wanted = list(raters)
    return _excluded(wanted, records(wanted), rules)


def _excluded(raters: list[int], known: dict[int, Record], rules: Rules) -> dict[int, str]:
    found = {rater: why for rater, record in known.items() if (why := judge(record, rules))}
    decided = Exclusion.objects.filter(Q(rater__in=raters) | Q(rater__first__in=raters), lifted_at=None).select_related("rater")
    return found | {e.rater.person: e.rule for e in decided}


def payable(record: Record) -> bool:
    """Whether the work is accepted for payment: another matter than whether it counts. Only plain instructions can spoil it."""
    return record.instructions - record.followed < INSTRUCTIONS_FAILED


def retire_faulty(panel: Panel, rules: Rules) -> list[Pair]:
    """Retires the obvious controls that otherwise good raters fail: the control is at fault, not they."""
    answers: dict[int, list[tuple[int, bool]]] = defaultdict(list)
    rows = _telling().filter(trial__pair__study__panel=panel, trial__pair__study__open=True, trial__pair__kind=Kind.OBVIOUS)
    for pair, person, right in rows.annotate(person=PERSON, right=_is_caught()).values_list("trial__pair", "person", "right"):
        answers[pair].append((person, right))
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


def controls_answered(panel: Panel) -> list[dict[str, Any]]:
    """Per obvious control of the open studies: how many answered it, and how many it caught."""
    kept = Pair.objects.filter(study__panel=panel, study__open=True, kind=Kind.OBVIOUS).select_related("sentence")
    stands = Q(trials__votes__superseded_at=None, trials__votes__isnull=False)
    right = _caught("trials__votes__", "trials__")
    rows = kept.annotate(answers=Count("trials__votes", filter=stands), right=Count("trials__votes", filter=stands & right))
    return [{"pair": pair, "answers": pair.answers, "right": pair.right} for pair in rows.order_by("pk") if pair.answers]


def answering(panel: Panel, since: datetime, until: datetime | None = None) -> set[int]:
    """Who answered in this time."""
    rows = Vote.objects.filter(trial__rater__panel=panel, cast_at__gt=since, cast_at__lte=until or timezone.now())
    return set(rows.annotate(person=PERSON).values_list("person", flat=True))


def stand_in(study: Study, rules: Rules) -> int:
    """Has others asked in place of who doesn't count under these rules, and takes back who does again. Returns the answers moved."""
    votes = Vote.objects.filter(trial__pair__study=study, trial__pair__kind=Kind.TEST, superseded_at=None)
    who = set(votes.annotate(person=PERSON).values_list("person", flat=True))
    return allocate.stand_in(study, set(excluded(who, rules)), rules.glitches) if who else 0


def alarm(panel: Panel, rules: Rules) -> str:
    """A sentence when the share of a day's raters that don't count is high, or has jumped; '' otherwise."""

    def share(start: timedelta, end: timedelta) -> tuple[int, int]:
        now = timezone.now()
        who = answering(panel, now - start, now - end)
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


#: A panel's page shows who answered in so many days; records reach back over all time.
SHOWN_DAYS = 30


def summary(panel: Panel, rules: Rules) -> list[dict[str, Any]]:
    """One row for each person of the panel who answered lately: what their record is and whether they count. No directions."""
    who = list(answering(panel, timezone.now() - timedelta(days=SHOWN_DAYS)))
    known = records(who)
    out = _excluded(who, known, rules)
    return [
        {"rater": rater, "record": record, "why": out.get(rater, ""), "payable": payable(record)} for rater, record in sorted(known.items())
    ]
