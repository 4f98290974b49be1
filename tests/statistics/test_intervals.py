import math

import numpy as np
import pytest
from scipy import stats

from gate.statistics.intervals import MeanInterval, mean_interval, percentile_display


def test_the_t_part_is_scipys_confidence_interval():
    d = np.random.default_rng(1).gamma(0.4, 0.1, 120) - 0.03
    found = mean_interval(d)
    low, high = stats.ttest_1samp(d, 0).confidence_interval(0.95)
    assert (found.t_lower, found.t_upper) == pytest.approx((low, high), abs=1e-12)


def test_the_abc_part_is_the_limit_of_the_bca_bootstrap():
    d = np.random.default_rng(7).gamma(0.5, 0.1, 300) - 0.05
    found = mean_interval(d)
    bca = stats.bootstrap((d,), np.mean, n_resamples=40_000, method="BCa", rng=np.random.default_rng(3)).confidence_interval
    se = d.std() / math.sqrt(len(d))
    assert abs(found.abc_lower - bca.low) < 0.06 * se
    assert abs(found.abc_upper - bca.high) < 0.06 * se


def test_the_union_takes_the_worse_end():
    d = np.zeros(100)
    d[:3] = 1.0
    found = mean_interval(d)
    assert found.lower == min(found.t_lower, found.abc_lower)
    assert found.upper == max(found.t_upper, found.abc_upper)
    assert found.abc_upper > found.t_upper  # a right tail pushes the upper end out


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ([], MeanInterval(math.nan, -math.inf, math.inf, 0, "no_data")),
        ([0.5], MeanInterval(0.5, -math.inf, math.inf, 1, "one_value")),
        ([0.25, 0.25, 0.25], MeanInterval(0.25, 0.25, 0.25, 3, "", 0.25, 0.25, 0.25, 0.25, 0.0)),
    ],
)
def test_degenerate_data_says_why(data, expected):
    assert str(mean_interval(data)) == str(expected)


def test_data_that_is_not_finite_says_so():
    assert mean_interval([0.1, math.nan]).reason == "not_finite"


def test_a_smaller_tail_gives_a_wider_interval():
    d = np.random.default_rng(2).normal(size=50)
    wide, narrow = mean_interval(d, 0.0001), mean_interval(d)
    assert wide.lower < narrow.lower < narrow.upper < wide.upper


def test_its_size_at_the_margin_is_what_it_says():
    """False acceptance of a true +.02 with 2 % catastrophes, n = 300: 3.3 to 3.5 % by statistics.md 1.2, not the 5 % of plain t."""
    rng = np.random.default_rng(5)
    trials, passed = 2000, 0
    for _ in range(trials):
        d = np.where(rng.random(300) < 0.02, 1.0, 0.0) + rng.normal(0, 0.03, 300)
        passed += mean_interval(d).upper < 0.02
    assert passed / trials < 0.035 + 2 * math.sqrt(0.035 * 0.965 / trials)


def test_the_display_interval_is_what_the_percentile_bootstrap_shows():
    rng = np.random.default_rng(4)
    d = np.where(rng.random(300) < 0.03, 0.8, 0.0) + rng.normal(0, 0.05, 300)
    found = percentile_display(d)
    means = np.concatenate([d[rng.integers(0, 300, (2000, 300))].mean(axis=1) for _ in range(20)])
    se = d.std() / math.sqrt(300)
    assert (found.lower, found.upper) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=0.04 * se)
    assert found.estimate == pytest.approx(d.mean())


@pytest.mark.parametrize(("data", "reason"), [([], "no_data"), ([0.1], "one_value"), ([0.1, math.nan], "not_finite"), ([0.1, 0.1], "")])
def test_the_display_interval_of_degenerate_data(data, reason):
    assert percentile_display(data).reason == reason
