"""Leases: one UPDATE with the expected old state in its WHERE clause for every transition of a unit of work."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

from django.db import transaction
from django.db.models import F, Q, QuerySet

from synth.models import Leased

LEASE = timedelta(seconds=30)
ATTEMPTS = 5
RING_AGAIN = timedelta(seconds=60)

Unit = TypeVar("Unit", bound=Leased)


class Lost(Exception):
    """The lease is not mine any more: whatever I bring changes nothing."""


def available(now: datetime) -> Q:
    """Queued and due, or leased to someone who fell silent; never more than ATTEMPTS times."""
    return Q(attempts__lt=ATTEMPTS) & (Q(state=Leased.State.QUEUED, due_at__lte=now) | Q(state=Leased.State.LEASED, lease_until__lt=now))


def claim(rows: QuerySet[Unit], now: datetime, **owner: object) -> Unit | None:
    """Leases the first row of the ordered queryset that is still available; None when there is none."""
    for pk in rows.filter(available(now)).values_list("pk", flat=True)[:16]:
        lease = uuid.uuid4()
        # Two workers may read the same row; only one finds it still available here.
        taken = rows.model.objects.filter(available(now), pk=pk).update(
            state=Leased.State.LEASED, lease=lease, lease_until=now + LEASE, attempts=F("attempts") + 1, **owner
        )
        if taken:
            return rows.model.objects.get(pk=pk)
    return None


def beat(model: type[Unit], lease: uuid.UUID, now: datetime) -> None:
    """Extends my lease. Raises Lost when somebody else has it or the unit is settled."""
    if not model.objects.filter(lease=lease, state=Leased.State.LEASED).update(lease_until=now + LEASE):
        raise Lost


def finish(model: type[Unit], lease: uuid.UUID, now: datetime, store: Callable[[Unit], None]) -> Unit:
    """Settles my unit and lets `store` write its results in the same transaction. Raises Lost."""
    with transaction.atomic():
        if not model.objects.filter(lease=lease, state=Leased.State.LEASED).update(
            state=Leased.State.DONE, settled_at=now, error="", lease_until=None
        ):
            raise Lost
        unit = model.objects.get(lease=lease)
        store(unit)
    return unit


def fail(model: type[Unit], lease: uuid.UUID, now: datetime, error: str, final: bool = False) -> Unit:
    """Gives my unit back, to be tried after 10 s x 2^n and a little, or for the last time. Raises Lost."""
    unit = model.objects.filter(lease=lease).first()
    if unit is None:
        raise Lost
    if final or unit.attempts >= ATTEMPTS:
        change: dict[str, object] = {"state": Leased.State.FAILED, "settled_at": now}
    else:
        wait = 10 * 2 ** (unit.attempts - 1) * random.uniform(1.0, 1.25)  # noqa: S311 - jitter, not a secret
        change = {"state": Leased.State.QUEUED, "due_at": now + timedelta(seconds=wait), "rung_at": None}
    if not model.objects.filter(lease=lease, state=Leased.State.LEASED).update(error=error[:4000], lease=None, lease_until=None, **change):
        raise Lost
    unit.refresh_from_db()
    return unit


def give_back(model: type[Unit], lease: uuid.UUID, error: str) -> Unit:
    """Puts my unit back as if I had never taken it; for a worker that can't do it at all. Raises Lost."""
    unit = model.objects.filter(lease=lease).first()
    if unit is None or not model.objects.filter(lease=lease, state=Leased.State.LEASED).update(
        state=Leased.State.QUEUED, attempts=F("attempts") - 1, lease=None, lease_until=None, error=error[:4000], rung_at=None
    ):
        raise Lost
    unit.refresh_from_db()
    return unit


def release(model: type[Unit], **owner: object) -> None:
    """Gives back what an owner holds that is known to be gone, without a wait and without counting the attempt."""
    model.objects.filter(state=Leased.State.LEASED, **owner).update(
        state=Leased.State.QUEUED, attempts=F("attempts") - 1, lease=None, lease_until=None, rung_at=None
    )


def give_up_lapsed(model: type[Unit], now: datetime) -> list[Unit]:
    """Fails the units whose workers fell silent on every attempt; returns them."""
    lapsed = Q(attempts__gte=ATTEMPTS, state=Leased.State.LEASED, lease_until__lt=now)
    ended = []
    for unit in model.objects.filter(lapsed):
        text = unit.error or f"the worker fell silent {ATTEMPTS} times while it worked on this"
        if model.objects.filter(lapsed, pk=unit.pk).update(
            state=Leased.State.FAILED, settled_at=now, error=text, lease=None, lease_until=None
        ):
            unit.refresh_from_db()
            ended.append(unit)
    return ended


def due(rows: QuerySet[Unit], now: datetime) -> int:
    """How many units want a message now: available, and not rung in the last minute. Marks them as rung.

    Messages expire after the same minute, so the broker holds about one per waiting unit however long a worker is busy.
    """
    waiting = rows.filter(available(now)).filter(
        Q(rung_at=None) | Q(rung_at__lt=now - RING_AGAIN) | Q(rung_at__lt=F("due_at"), due_at__lte=now)
    )
    return rows.model.objects.filter(pk__in=list(waiting.values_list("pk", flat=True)[:500])).update(rung_at=now)
