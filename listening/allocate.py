"""Which pair a rater hears next, and on which side. Least-served first; a unique constraint keeps every quota."""

from __future__ import annotations

from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import Count, Exists, F, OuterRef, Q
from django.utils import timezone

from listening.models import Pair, Rater, Trial

LEASE = timedelta(minutes=30)
BUDGET = 60
LEAD = 2
TRIES = 12


def standing(rater: Rater) -> Trial | None:
    """The rater's unanswered trial, if any."""
    return Trial.objects.filter(rater=rater, state=Trial.State.OPEN).select_related("pair__sentence").first()


def _servable(rater: Rater):
    """Pairs this rater has not heard, of open studies of their panel, least-served first.

    A recording shared by two pairs - one parent under two levers - is heard once, or the second pair would be recognised.
    """
    heard = Trial.objects.filter(rater=rater)
    known = heard.filter(Q(pair__reference=OuterRef("reference")) | Q(pair__tested=OuterRef("tested")))
    return (
        Pair.objects.filter(study__panel_id=rater.panel_id, study__open=True)
        .filter(~Exists(known))
        .annotate(served=Count("trials", filter=Q(trials__state__in=["open", "voted"])))
        .filter(served__lt=F("study__votes_per_pair"))
        .order_by("served", "?")
    )


def _free_slots(pair: Pair) -> list[int]:
    taken = set(pair.trials.filter(state__in=["open", "voted"]).values_list("slot", flat=True))
    return [slot for slot in range(pair.study.votes_per_pair) if slot not in taken]


def side_of(pair: Pair, slot: int) -> int:
    """Sides alternate over a pair's slots, so that they are balanced within it by construction."""
    return (pair.first_side + slot) % 2


def _side_owed(rater: Rater) -> int | None:
    """None mostly: which side comes next is the lot of the pair. A rater who has had one side twice more than the other is owed the other.

    Strict alternation would give the whole sitting away to whoever hears one pair for sure.
    """
    sides = list(Trial.objects.filter(rater=rater).exclude(state=Trial.State.LAPSED).values_list("tested_side", flat=True))
    lead = 2 * sum(sides) - len(sides)
    return 0 if lead >= LEAD else 1 if lead <= -LEAD else None


def _options(rater: Rater) -> list[tuple[Pair, int]]:
    """(pair, slot) to try: least-served first; in a pair its next slot, or the first with the side the rater is owed."""
    owed = _side_owed(rater)
    found = [
        (pair.served, owed is not None and side_of(pair, slot) != owed, order, slot, pair)
        for order, pair in enumerate(_servable(rater).select_related("study")[:TRIES])
        for slot in _free_slots(pair)
    ]
    return [(pair, slot) for _, _, _, slot, pair in sorted(found, key=lambda f: f[:4])]


def _reopen(rater: Rater) -> bool:
    """A comparison this rater left lying comes back first, same sides, if its slot is still free."""
    for trial in rater.trials.filter(state=Trial.State.LAPSED, pair__study__open=True).order_by("pk"):
        try:
            with transaction.atomic():
                if Trial.objects.filter(pk=trial.pk, state=Trial.State.LAPSED).update(
                    state=Trial.State.OPEN, lease_until=timezone.now() + LEASE
                ):
                    return True
        except IntegrityError:
            continue
    return False


def next_trial(rater: Rater) -> Trial | None:
    """The rater's standing trial or a new one; None when there is nothing (more) for them."""
    for _ in range(3):
        known = standing(rater)
        if known:
            if known.lease_until < timezone.now() + LEASE / 2:
                Trial.objects.filter(pk=known.pk, state=Trial.State.OPEN).update(lease_until=timezone.now() + LEASE)
            return known
        if _reopen(rater):
            continue
        if rater.trials.exclude(state=Trial.State.LAPSED).count() >= BUDGET:
            return None
        options = _options(rater)
        if not options:
            return None
        for pair, slot in options:
            try:
                with transaction.atomic():
                    return Trial.objects.create(
                        pair=pair, rater=rater, slot=slot, tested_side=side_of(pair, slot), lease_until=timezone.now() + LEASE
                    )
            except IntegrityError:
                # Another request took the slot, or gave this very rater a trial: look again or try the next.
                if standing(rater):
                    break
    return standing(rater)


def progress(rater: Rater) -> tuple[int, int]:
    """(answered, to be answered in all as far as can be said now)."""
    done = rater.trials.filter(state=Trial.State.VOTED).count()
    ahead = _servable(rater).count() + rater.trials.filter(state=Trial.State.OPEN).count()
    return done, min(BUDGET, done + ahead)
