"""The lease machine: whatever order workers, losses and clocks come in, a unit is done once."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from synth import queue
from synth.models import Leased, RenderGroup
from tests import factories

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def take(now=NOW, **owner):
    return queue.claim(RenderGroup.objects.order_by("pk"), now, **owner)


def later(seconds):
    return NOW + timedelta(seconds=seconds)


@pytest.fixture
def unit(db):
    return factories.group(due_at=NOW)


def test_a_unit_is_claimed_by_one(unit):
    assert take().pk == unit.pk
    assert take() is None


def test_a_lapsed_lease_goes_to_the_next_and_the_late_result_changes_nothing(unit):
    first = take()
    second = take(later(31))
    assert second.lease != first.lease and second.attempts == 2
    with pytest.raises(queue.Lost):
        queue.finish(RenderGroup, first.lease, later(32), lambda u: None)
    assert queue.finish(RenderGroup, second.lease, later(33), lambda u: None).state == Leased.State.DONE


def test_a_beat_keeps_the_lease(unit):
    mine = take()
    queue.beat(RenderGroup, mine.lease, later(25))
    assert take(later(40)) is None


def test_a_result_whose_storing_fails_leaves_the_unit_mine(unit):
    mine = take()

    def broken(_):
        raise RuntimeError

    with pytest.raises(RuntimeError):
        queue.finish(RenderGroup, mine.lease, NOW, broken)
    queue.beat(RenderGroup, mine.lease, NOW)


def test_failures_wait_longer_each_time_and_the_fifth_is_the_last(unit):
    now, waits = NOW, []
    for _ in range(queue.ATTEMPTS):
        mine = take(now)
        failed = queue.fail(RenderGroup, mine.lease, now, "no luck")
        waits.append((failed.due_at - now).total_seconds())
        now = failed.due_at
    assert failed.state == Leased.State.FAILED and failed.error == "no luck"
    assert [w >= 10 * 2**k for k, w in enumerate(waits[:-1])] == [True] * 4
    assert take(now + timedelta(days=1)) is None


def test_a_worker_that_falls_silent_every_time_is_given_up(unit):
    for k in range(queue.ATTEMPTS):
        assert take(later(31 * k))
    assert take(later(31 * 5)) is None
    (ended,) = queue.give_up_lapsed(RenderGroup, later(31 * 5))
    assert ended.state == Leased.State.FAILED and "fell silent 5 times" in ended.error


def test_a_stranger_can_do_nothing(unit):
    take()
    for act in (
        lambda: queue.beat(RenderGroup, uuid.uuid4(), NOW),
        lambda: queue.finish(RenderGroup, uuid.uuid4(), NOW, lambda u: None),
        lambda: queue.fail(RenderGroup, uuid.uuid4(), NOW, "x"),
    ):
        with pytest.raises(queue.Lost):
            act()


def test_each_waiting_unit_is_rung_for_once_a_minute(unit):
    rows = RenderGroup.objects.all()
    assert [queue.due(rows, later(s)) for s in (0, 5, 59, 61, 62)] == [1, 0, 0, 1, 0]


def test_a_unit_whose_pause_is_over_is_rung_for_at_once(unit):
    mine = take()
    queue.due(RenderGroup.objects.all(), NOW)
    failed = queue.fail(RenderGroup, mine.lease, NOW, "x")
    assert queue.due(RenderGroup.objects.all(), NOW) == 0
    assert queue.due(RenderGroup.objects.all(), failed.due_at) == 1


class Leases(RuleBasedStateMachine):
    """Workers claim, beat, finish, fail and vanish in any order while the clock runs."""

    def __init__(self):
        super().__init__()
        RenderGroup.objects.all().delete()
        self.now, self.stored, self.held = NOW, [], []
        for place in range(3):
            factories.group(place=place, due_at=NOW)

    @rule(seconds=st.integers(0, 200))
    def time_passes(self, seconds):
        self.now += timedelta(seconds=seconds)

    @rule()
    def claim(self):
        unit = take(self.now)
        if unit:
            assert unit.attempts <= queue.ATTEMPTS
            self.held.append(unit)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), act=st.sampled_from(["beat", "finish", "fail"]))
    def act(self, data, act):
        unit = data.draw(st.sampled_from(self.held))
        try:
            if act == "beat":
                queue.beat(RenderGroup, unit.lease, self.now)
            elif act == "finish":
                queue.finish(RenderGroup, unit.lease, self.now, lambda u: self.stored.append(u.pk))
            else:
                queue.fail(RenderGroup, unit.lease, self.now, "x")
        except queue.Lost:
            row = RenderGroup.objects.get(pk=unit.pk)
            assert row.lease != unit.lease or row.state != Leased.State.LEASED

    @rule()
    def give_up(self):
        queue.give_up_lapsed(RenderGroup, self.now)

    @invariant()
    def nothing_is_done_twice(self):
        assert len(self.stored) == len(set(self.stored))
        assert RenderGroup.objects.filter(state=Leased.State.DONE).count() == len(self.stored)

    @invariant()
    def nothing_is_lost(self):
        assert RenderGroup.objects.count() == 3


def test_the_lease_machine(db):
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(
        Leases, settings=settings(max_examples=40, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck))
    )
