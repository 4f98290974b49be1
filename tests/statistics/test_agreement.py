import numpy as np
import pytest

from gate.statistics.agreement import Agreement, agreement

CANONICAL = ["1,2,3,3,2,1,4,1,2,.,.,.", "1,2,3,3,2,2,4,1,2,5,.,3", ".,3,3,3,2,3,4,2,2,5,1,.", "1,2,3,3,2,4,4,1,2,5,1,."]


def canonical():
    cells = [(k, int(x)) for row in CANONICAL for k, x in enumerate(row.split(",")) if x != "."]
    return [k for k, _ in cells], [v for _, v in cells]


def test_the_canonical_data():
    found = agreement(*canonical())
    assert (found.alpha_nominal, found.alpha_ordinal, found.ac1) == pytest.approx((0.743, 0.815, 0.775), abs=5e-4)
    assert (found.items, found.pairable, found.reason) == (11, 40, "")


@pytest.mark.parametrize(
    ("items", "values", "expected"),
    [
        ([], [], Agreement(None, None, None, 0, 0, "no_votes")), ([1, 2, 3], [0, 1, 0], Agreement(None, None, None, 0, 0, "no_pairs")),
        ([1, 1, 2, 2], [0, 0, 0, 0], Agreement(None, None, None, 2, 4, "one_value")),
    ],
)  # fmt: skip
def test_where_it_is_undefined_it_is_none(items, values, expected):
    assert agreement(items, values) == expected


def test_perfect_and_chance_agreement():
    perfect = agreement([1, 1, 2, 2, 3, 3], [-1, -1, 0, 0, 1, 1])
    assert (perfect.alpha_nominal, perfect.alpha_ordinal, perfect.ac1) == (1.0, 1.0, 1.0)
    rng = np.random.default_rng(0)
    chance = agreement(np.repeat(np.arange(2000), 2), rng.integers(-1, 2, 4000))
    assert abs(chance.alpha_nominal) < 0.06 and abs(chance.ac1) < 0.06


def test_many_ties_are_no_disagreement_for_ac1():
    rng = np.random.default_rng(2)
    values = rng.choice([-1, 0, 1], 8000, p=[0.025, 0.95, 0.025])
    found = agreement(np.repeat(np.arange(1000), 8), values)
    assert abs(found.alpha_nominal) < 0.03 and found.ac1 > 0.85
