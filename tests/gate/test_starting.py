"""What a start costs, and when it has paid: rows of their own, never part of the speed."""

import pytest

from gate import starting
from gate.starting import Start


@pytest.mark.parametrize(
    ("candidate", "calls"),
    [
        (Start(1.0, 2.0, 1.0), 0),  # the same start
        (Start(1.0, 9.0, 0.5), 15),  # compiling takes 7.5 s more, each call half a second less
        (Start(1.0, 9.0, 1.0), None),  # and never pays where a call is no quicker
        (Start(26.0, 2.0, 0.75), 101),  # a longer load, and a quarter of a second gained a call
    ],
)
def test_when_a_costlier_start_has_paid(candidate, calls):
    assert starting.break_even(Start(1.0, 2.0, 1.0), candidate) == calls


def test_a_first_call_that_was_quicker_than_a_warm_one_costs_nothing():
    assert Start(1.0, 0.9, 1.0).extra_s == 0
