"""Which pair a rater hears next, and on which side. Least-served first; a unique constraint keeps every quota."""

from __future__ import annotations

from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import Count, F, Max, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.crypto import salted_hmac

from listening.models import Pair, Rater, Study, Trial
from listening.schedule import SITTING, SITTINGS_A_DAY, kind_at, places_for

LEASE = timedelta(minutes=30)
LEAD = 2
TRIES = 12
PRACTICE = 3
#: So many comparisons whose sound did not arrive are not bad luck: the rater is asked to come back from another network.
UNDELIVERED, UNDELIVERED_WITHIN = 6, timedelta(hours=1)
#: How often what is free is looked up again when everything on the list was taken meanwhile, as when a hundred arrive at once.
ROUNDS = 20
Kind, State = Pair.Kind, Trial.State


def standing(rater: Rater) -> Trial | None:
    """The rater's unanswered trial, if any."""
    return rater.trials.filter(state=State.OPEN).select_related("pair__sentence", "pair__study").first()


def _secret(rater: Rater) -> str:
    return salted_hmac("schedule", str(rater.key)).hexdigest()


def place(rater: Rater) -> int:
    """How many trials, practice aside, the rater has had or holds."""
    return rater.trials.exclude(state=State.LAPSED).exclude(pair__kind=Kind.PRACTICE).count()


def _unheard(rater: Rater, kind: str) -> QuerySet[Pair]:
    """Pairs of this kind that the rater has not heard, of open studies of their panel, least-served first.

    A recording shared by two pairs - one parent under two levers - is heard once, or the second pair would be recognised.
    """
    heard = Trial.objects.filter(rater__in=rater.visits())
    return (
        Pair.objects.filter(study__panel_id=rater.panel_id, study__open=True, kind=kind, retired_at=None)
        .exclude(reference__in=heard.values("pair__reference"))
        .exclude(tested__in=heard.values("pair__tested"))
        .annotate(served=Count("trials", filter=Q(trials__state__in=Trial.HELD, trials__slot__lt=Trial.BESIDE)))
        .order_by("served", "?")
    )


def _servable(rater: Rater) -> QuerySet[Pair]:
    """Test pairs with a free place."""
    return _unheard(rater, Kind.TEST).filter(served__lt=F("study__votes_per_pair"))


def _free_slots(pairs: list[Pair]) -> dict[int, list[int]]:
    """pair -> its free places, lowest first."""
    taken: dict[int, set[int]] = {pair.pk: set() for pair in pairs}
    for pair, slot in Trial.objects.filter(pair__in=taken, state__in=Trial.HELD).values_list("pair", "slot"):
        taken[pair].add(slot)

    def free(pair: Pair) -> list[int]:
        held = taken[pair.pk]
        if pair.kind != Kind.TEST:  # a control has a place for everybody
            return [next(slot for slot in range(len(held) + 1) if slot not in held)]
        return [slot for slot in range(pair.study.votes_per_pair) if slot not in held]

    return {pair.pk: free(pair) for pair in pairs}


def side_of(pair: Pair, slot: int) -> int:
    """Sides alternate over a pair's slots, so that they are balanced within it by construction."""
    return (pair.first_side + slot) % 2


def _side_owed(rater: Rater) -> int | None:
    """None mostly: which side comes next is the lot of the pair. A rater who has had one side twice more than the other is owed the other.

    Strict alternation would give the whole sitting away to whoever hears one pair for sure.
    """
    sides = list(rater.trials.exclude(state=State.LAPSED).values_list("tested_side", flat=True))
    lead = 2 * sum(sides) - len(sides)
    return 0 if lead >= LEAD else 1 if lead <= -LEAD else None


def _options(rater: Rater, pairs: QuerySet[Pair]) -> list[tuple[Pair, int]]:
    """(pair, slot) to try: least-served first; in a pair its next slot, or the first with the side the rater is owed."""
    owed, tried = _side_owed(rater), list(pairs.select_related("study")[:TRIES])
    free = _free_slots(tried)
    found = [
        (pair.served, owed is not None and side_of(pair, slot) != owed, order, slot, pair)  # type: ignore[attr-defined]
        for order, pair in enumerate(tried)
        for slot in free[pair.pk]
    ]
    return [(pair, slot) for _, _, _, slot, pair in sorted(found, key=lambda f: f[:4])]


def _next_options(rater: Rater) -> list[tuple[Pair, int]]:
    """What may come now: practice first; then what the schedule says, or a test where no such control is left."""
    if rater.practised_at is None:
        if rater.trials.filter(pair__kind=Kind.PRACTICE).exclude(state=State.LAPSED).count() < PRACTICE:
            practice = _options(rater, _unheard(rater, Kind.PRACTICE))
            if practice:
                return practice
        Rater.objects.filter(pk=rater.pk, practised_at=None).update(practised_at=timezone.now())
        rater.practised_at = timezone.now()
    tests = _options(rater, _servable(rater))
    kind = kind_at(_secret(rater), place(rater))
    # Controls are looked up for a test, too: what takes longer for one of them would tell it by the time of the answer.
    known = _options(rater, _unheard(rater, Kind.IDENTICAL if kind == Kind.TEST else kind))
    if not tests or kind == Kind.TEST:
        return tests  # controls alone ask nobody's time
    return known + tests


def _left_lying(rater: Rater) -> QuerySet[Trial]:
    """Comparisons that lapsed and may still be answered, the oldest first."""
    lapsed = rater.trials.filter(state=State.LAPSED, undeliverable=0, pair__study__open=True, pair__retired_at=None, slot__lt=Trial.BESIDE)
    return lapsed.select_related("pair__study").order_by("pk")


def _reopen(rater: Rater) -> bool:
    """A comparison this rater left lying comes back first, same sides, if its slot is still free."""
    return any(_move(trial, State.LAPSED, State.OPEN) for trial in _left_lying(rater))


def _move(trial: Trial, old: str, new: str) -> bool:
    """Compare-and-set with a fresh lease; False when somebody was faster, or the slot is taken."""
    try:
        with transaction.atomic():
            return bool(Trial.objects.filter(pk=trial.pk, state=old).update(state=new, lease_until=timezone.now() + LEASE))
    except IntegrityError:
        return False


def _make(rater: Rater, state: str) -> Trial | None:
    """A new trial in the first place that is free; None when there is none, or this rater got one by another request."""
    if not Rater.objects.filter(first=rater.person).exists():
        return _made(rater, state)
    with transaction.atomic():  # one person on two visits at once: what one is given, the other must see
        Rater.objects.select_for_update().get(pk=rater.person)
        return _made(rater, state)


def _made(rater: Rater, state: str) -> Trial | None:
    for _ in range(ROUNDS):
        options = _next_options(rater)
        if not options:
            return None
        for pair, slot in options:
            try:
                with transaction.atomic():
                    return Trial.objects.create(
                        pair=pair, rater=rater, slot=slot, tested_side=side_of(pair, slot), state=state, lease_until=timezone.now() + LEASE
                    )
            except IntegrityError:
                # Another request took the slot, or gave this very rater a trial: try the next, and then look again.
                if rater.trials.filter(state=state).exists():
                    return None
    return None


def _has_all_wanted(rater: Rater, done: int) -> bool:
    wanted = rater.invitation.answers_wanted
    return bool(wanted) and done >= wanted


def why_over(rater: Rater) -> str:
    """Why this rater gets no further trial now: `done`, `today`, `sound`, `break`; '' when nothing speaks against one."""
    done = place(rater)
    if _has_all_wanted(rater, done):
        return "done"
    since = timezone.now() - timedelta(hours=12)
    if (
        Trial.objects.filter(rater__in=rater.visits(), votes__cast_at__gt=since, votes__superseded_at=None).count()
        >= SITTING * SITTINGS_A_DAY
    ):
        return "today"
    if rater.trials.filter(undeliverable__gt=0, created_at__gt=timezone.now() - UNDELIVERED_WITHIN).count() >= UNDELIVERED:
        return "sound"
    return "break" if rater.breaks < done // SITTING else ""


def something_left(rater: Rater) -> bool:
    """Whether a comparison waits for this rater, now, after a break or tomorrow. A test that is over is over today, too."""
    if rater.trials.filter(state__in=Trial.WAITING, pair__study__open=True).exists():
        return True
    if _has_all_wanted(rater, place(rater)):
        return False
    lying = list(_left_lying(rater))
    free = _free_slots([trial.pair for trial in lying])
    return any(trial.slot in free[trial.pair_id] for trial in lying) or _servable(rater).exists()


def next_trial(rater: Rater) -> Trial | None:
    """The rater's standing trial or a new one; None when there is nothing (more) for them."""
    # What was opened at the moment its study closed can't be answered any more, and must not stand in the way.
    rater.trials.filter(state__in=Trial.WAITING, pair__study__open=False).update(state=State.LAPSED)
    for _ in range(3):
        known = standing(rater)
        if known:
            if known.lease_until < timezone.now() + LEASE / 2:
                Trial.objects.filter(pk=known.pk, state=State.OPEN).update(lease_until=timezone.now() + LEASE)
            return known
        ahead = rater.trials.filter(state=State.AHEAD).first()
        if ahead and _move(ahead, State.AHEAD, State.OPEN):
            continue
        if not _has_all_wanted(rater, place(rater)) and _reopen(rater):
            continue
        if why_over(rater):
            return None
        made = _make(rater, State.OPEN)
        if made is None and not rater.trials.filter(state=State.OPEN).exists():
            return None
    return standing(rater)


def trial_ahead(rater: Rater) -> Trial | None:
    """The trial after the standing one, so that its sound is there when it begins; None where none is to come."""
    known = rater.trials.filter(state=State.AHEAD).select_related("pair__sentence", "pair__study").first()
    if known or not standing(rater) or why_over(rater):
        return known
    return _make(rater, State.AHEAD)


def give_back(trial: Trial) -> None:
    """Its sound could not be loaded: the place is free again, and this rater is not asked for it once more."""
    Trial.objects.filter(pk=trial.pk, state__in=Trial.WAITING).update(state=State.LAPSED, undeliverable=F("undeliverable") + 1)


def stand_in(study: Study, out: set[int], glitches: int) -> int:
    """Answers of persons who don't count, or whose sound stuttered more often than this, leave their places to others; and come back.

    They stay beside the quota, for the analysis of everybody. Returns how many moved. Sides stay balanced: a place is left, and
    taken again, on the side it was heard on.
    """
    answered = Trial.objects.filter(pair__study=study, pair__kind=Kind.TEST, state=State.VOTED).annotate(
        person=Coalesce("rater__first", "rater")
    )
    stuttered = answered.filter(votes__superseded_at=None, votes__glitches__gt=glitches).values("pk")
    unwanted, inside = Q(person__in=out) | Q(pk__in=stuttered), Q(slot__lt=Trial.BESIDE)
    moved = 0
    for trial in answered.filter((unwanted & inside) | (~unwanted & ~inside)).select_related("pair__study").order_by("pk"):
        leaves = trial.slot < Trial.BESIDE
        slot = _beside(trial) if leaves else next((s for s in _free_slots([trial.pair])[trial.pair_id] if s % 2 == trial.slot % 2), None)
        if slot is None:
            continue  # somebody else was asked meanwhile
        try:
            with transaction.atomic():
                moved += Trial.objects.filter(pk=trial.pk, slot=trial.slot, state=State.VOTED).update(slot=slot)
        except IntegrityError:
            continue  # taken at this very moment
    return moved


def _beside(trial: Trial) -> int:
    last = trial.pair.trials.filter(slot__gte=Trial.BESIDE).aggregate(last=Max("slot"))["last"]
    return (Trial.BESIDE if last is None else last + 2 - last % 2) + trial.slot % 2


def progress(rater: Rater) -> tuple[int, int]:
    """(answered, to be answered) of this sitting. Says the same whatever kind the trials were."""
    done = rater.trials.filter(state=State.VOTED).exclude(pair__kind=Kind.PRACTICE).count()
    held = rater.trials.filter(state__in=Trial.WAITING, pair__kind=Kind.TEST).count()
    at = done // SITTING * SITTING
    kinds = set(
        Pair.objects.filter(study__panel_id=rater.panel_id, study__open=True).exclude(kind=Kind.TEST).values_list("kind", flat=True)
    )
    ahead = places_for(_secret(rater), done, min(SITTING, _servable(rater).count() + held), kinds)
    wanted = rater.invitation.answers_wanted or done + ahead
    return done - at, min(SITTING, done - at + ahead, wanted - at)
