"""A neighbour that no process list shows: the same work, timed before and after each pass, tells."""

import pytest

from synth import contention
from synth.engine.protocol import YARDSTICK


def passes(*readings, name=YARDSTICK):
    return [
        {"place": place, "figures": {"sentinel_s": {name: list(pair)}} if pair else {}, "contended": {}}
        for place, pair in enumerate(readings)
    ]


def test_a_pass_on_a_slowed_machine_is_stamped_and_its_block_is_void():
    block = passes((0.10, 0.10), (0.10, 0.101), (0.102, 0.14), (0.10, 0.10))
    contention.stamp_slow(block)
    assert [bool(p["contended"]) for p in block] == [False, False, True, False]
    assert block[2]["contended"] == {contention.SENTINEL: {"slower": 1.4}}


def test_a_parent_that_was_slowed_is_stamped_too():
    block = passes((0.13, 0.13), (0.10, 0.10), (0.10, 0.10), (0.10, 0.10))
    contention.stamp_slow(block)
    assert [bool(p["contended"]) for p in block] == [True, False, False, False]


def test_slow_drift_is_left_to_the_order_of_the_passes():
    """A-B-B-A cancels a drift; a stamp for 13 % over hours would void every block of a warm laptop."""
    block = passes((0.100, 0.103), (0.103, 0.107), (0.107, 0.110), (0.110, 0.113))
    contention.stamp_slow(block)
    assert not any(p["contended"] for p in block)


def test_a_component_is_compared_with_its_own_in_the_other_pass_of_its_system():
    """A lever may have made it twice as fast; that is no neighbour."""
    block = passes((0.2, 0.2), (0.1, 0.1), (0.1, 0.1), (0.2, 0.2), name="codec")
    contention.stamp_slow(block)
    assert not any(p["contended"] for p in block)
    block = passes((0.2, 0.2), (0.1, 0.1), (0.1, 0.1), (0.4, 0.2), name="codec")
    contention.stamp_slow(block)
    assert [bool(p["contended"]) for p in block] == [False, False, False, True]
    assert "codec" in next(iter(block[3]["contended"]))


def test_processes_that_are_set_up_differently_have_yardsticks_of_their_own():
    block = passes((0.2, 0.2), (0.1, 0.1), (0.1, 0.1), (0.2, 0.2))
    contention.stamp_slow(block, same_process=False)
    assert not any(p["contended"] for p in block)
    contention.stamp_slow(block)
    assert [bool(p["contended"]) for p in block] == [True, False, False, True]


def test_a_machine_that_swaps_is_stamped():
    block = passes(None, None, None, None)
    block[1]["figures"]["swap_bytes"] = 300 << 20
    contention.stamp_slow(block)
    assert [p["contended"] for p in block] == [{}, {"memory swapped to disk": {"mb": 300}}, {}, {}]


def test_an_engine_without_such_work_is_not_judged_by_it():
    block = passes(None, None, None, None)
    contention.stamp_slow(block)
    assert not any(p["contended"] for p in block)


@pytest.mark.slow
def test_the_engine_times_work_of_its_own(tiny, spoken):
    _, child = spoken(tiny)
    readings = child.sentinels()
    assert sorted(readings) == ["codec", YARDSTICK] and all(0 < r < 5 for r in readings.values())
