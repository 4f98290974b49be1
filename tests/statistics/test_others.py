import math

import numpy as np
import pytest

from gate.statistics import length, looks, rates, speed, votes


def test_length_is_antisymmetric_when_the_systems_are_swapped():
    logs = np.random.default_rng(3).normal(0.01, 0.1, 80)
    there, back = length.ratio_interval(logs), length.ratio_interval(-logs)
    assert (there.lower * back.upper, there.upper * back.lower) == pytest.approx((1, 1), abs=1e-9)


def test_length_without_data_says_so():
    found = length.ratio_interval([])
    assert (found.n, found.reason, found.lower, found.upper) == (0, "no_data", 0.0, math.inf)


def test_tangos_interval_solves_its_own_score_equation():
    for b, c, n in [(5, 1, 300), (0, 0, 100), (12, 4, 60), (1, 9, 40)]:
        found = rates.paired_difference_upper(b, c, n)
        for limit in (found.lower, found.upper):
            q = constrained_q21(b, c, n, limit)
            z = abs(b - c - n * limit) / math.sqrt(n * (2 * q + limit * (1 - limit)))
            assert z == pytest.approx(1.959964, abs=1e-3)  # the grid's step


def constrained_q21(b, c, n, d):
    """The restricted maximum by brute force: p12 = q + d, p21 = q."""
    grid = np.linspace(max(0, -d) + 1e-12, (1 - d) / 2 - 1e-12, 400_001)
    likelihood = (n - b - c) * np.log1p(-2 * grid - d) + np.where(b, b * np.log(grid + d), 0) + np.where(c, c * np.log(grid), 0)
    return grid[np.argmax(likelihood)]


def test_no_failures_in_300_pass_a_margin_of_three_percent_and_not_in_100():
    assert rates.paired_difference_upper(0, 0, 300).upper < 0.03 < rates.paired_difference_upper(0, 0, 100).upper


def test_rates_without_sentences_say_so():
    assert rates.paired_difference_upper(0, 0, 0).reason == "no_data"


ABBA = [0, 1, 1, 0]


def test_a_linear_drift_leaves_no_trace_in_the_speedup():
    wall = [math.log(2) - math.log(1.06) * arm + 0.03 * k for k, arm in enumerate(ABBA * 3)]
    found = speed.speedup(wall, ABBA * 3, [0] * 4 + [1] * 4 + [2] * 4)
    assert (found.estimate, found.df, found.n) == (pytest.approx(1.06), 5, 12)
    assert found.lower == pytest.approx(1.06) == found.upper


def test_noise_widens_the_speedup_and_shows_in_its_spread():
    rng = np.random.default_rng(4)
    wall = [-0.06 * arm + rng.normal(0, 0.01) for arm in ABBA * 3]
    found = speed.speedup(wall, ABBA * 3, [0] * 4 + [1] * 4 + [2] * 4)
    assert found.lower < 1.0618 < found.upper
    assert 0.005 < found.residual_spread < 0.05


@pytest.mark.parametrize(
    ("wall", "arm", "reason"),
    [
        ([], [], "no_data"),
        ([0.1, 0.1], [0, 0], "one_arm"),
        ([0.1, math.nan], [0, 1], "not_finite"),
        ([0.1, 0.2], [0, 1], "no_residual_freedom"),
    ],
)
def test_speed_that_cannot_be_said_says_why(wall, arm, reason):
    assert speed.speedup(wall, arm, [0] * len(wall)).reason == reason


def full(raters, sentences, score):
    pairs = [(r, s) for r in range(raters) for s in range(sentences)]
    return votes.net_preference([r for r, _ in pairs], [s for _, s in pairs], [score(r, s) for r, s in pairs])


def test_votes_as_the_specification_works_them_out():
    ties = full(8, 50, lambda r, s: 0)
    assert (ties.estimate, round(ties.upper, 3), ties.driver) == (0, 0.008, "floor")
    assert round(full(8, 50, lambda r, s: -1).upper, 3) == -0.987
    assert round(full(4, 5, lambda r, s: 0).upper, 2) == 0.21
    split = full(8, 50, lambda r, s: 1 if r < 4 else -1)
    assert (round(split.upper, 2), split.driver) == (0.89, "raters")
    assert round(full(8, 50, lambda r, s: 1 if s < 25 else -1).upper, 2) == 0.29


def test_one_rater_or_none_gives_no_interval():
    one = votes.net_preference([1, 1], [1, 2], [0, 1])
    assert (one.estimate, one.lower, one.upper, one.reason) == (0.5, -1.0, 1.0, "one_cluster")
    assert votes.net_preference([], [], []).reason == "no_votes"


def test_effective_raters_count_a_busy_one_less():
    uneven = votes.net_preference([0] * 90 + [1] * 5 + [2] * 5, list(range(100)), [0, 1] * 50)
    assert (uneven.raters, round(uneven.effective_raters, 2)) == (3, 1.23)


def test_boundaries_are_the_published_ones():
    assert looks.boundaries([0.2, 0.4, 0.6, 0.8, 1]) == pytest.approx([4.8769, 3.3570, 2.6803, 2.2898, 2.0310], abs=2e-4)
    assert looks.boundaries([1.0]) == pytest.approx([1.959964], abs=1e-5)


def test_a_chance_to_pass_is_near_what_simulation_gives_and_never_below_both_views():
    random = np.random.default_rng(3)
    last = looks.boundaries([0.5, 1.0])[1]
    for z, planned in ((0.2, 1.0), (1.0, 3.0), (2.0, 2.5), (-1.0, 3.0)):
        drift = max(z / math.sqrt(0.5), planned)
        increments = drift * 0.5 + math.sqrt(0.5) * random.standard_normal(40_000)
        simulated = float((z * math.sqrt(0.5) + increments > last).mean())
        assert looks.chance_to_pass(z, 0.5, last, planned) == pytest.approx(simulated, abs=0.01)
    assert looks.chance_to_pass(-2.0, 0.5, last, 1.0) < 0.01 < looks.chance_to_pass(1.5, 0.5, last, 3.0)


def test_levels_of_looks_spend_what_one_look_would():
    assert looks.tails([1.0], 0.01) == [0.01]
    found = looks.tails([0.25, 0.5, 0.75, 1.0], 0.025)
    assert found == sorted(found) and found[-1] < 0.025 and found[0] < 1e-4
