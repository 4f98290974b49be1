"""The size of every endpoint's test at its margin, and its power, in invented studies whose truth is known.

Each cell allows the rate docs/statistics.md gives it and two standard errors of the simulation. `--long` runs more of each.
"""

import math

import numpy as np
import pytest

from gate.statistics import length, rates, speed
from gate.statistics.intervals import mean_interval
from gate.statistics.votes import net_preference
from tests.statistics import worlds

LONG = pytest.mark.long


def studies(quick, long):
    return [pytest.param(quick, id="quick"), pytest.param(long, id="long", marks=LONG)]


def at_most(passed, count, rate):
    found = passed / count
    assert found <= rate + 2 * math.sqrt(rate * (1 - rate) / count), f"{found:.4f} of {count}"


def upper_limits(differences, tail=0.025):
    return np.array([mean_interval(d, tail).upper for d in differences])


@pytest.mark.parametrize("count", studies(3000, 40_000))
@pytest.mark.parametrize(("language", "harm"), [("hi", "diffuse"), ("hi", "sparse"), ("en", "diffuse"), ("en", "sparse")])
def test_a_candidate_at_the_cer_margin_is_rarely_accepted(language, harm, count):
    rng = np.random.default_rng([7, count, ord(language[0]), len(harm)])
    margin = worlds.true_mean(language, harm, np.random.default_rng(1))
    assert margin == pytest.approx(0.02, abs=0.0015)
    passed = sum((upper_limits(worlds.cer_differences(language, harm, 500, 300, 1, rng)) < margin).sum() for _ in range(count // 500))
    at_most(passed, count, 0.035)


@pytest.mark.parametrize("count", studies(3000, 40_000))
def test_a_candidate_at_the_dnsmos_margin_is_rarely_accepted(count):
    rng = np.random.default_rng([8, count])
    passed = sum((upper_limits(worlds.dnsmos_differences(0.05, 500, 300, 1, rng)) < 0.05).sum() for _ in range(count // 500))
    at_most(passed, count, 0.03)


@pytest.mark.parametrize("count", studies(1000, 20_000))
@pytest.mark.parametrize("shift", [-0.03, 0.03])
def test_a_candidate_at_either_length_margin_is_rarely_accepted(shift, count):
    rng = np.random.default_rng([9, count])
    found = [length.ratio_interval(d) for d in worlds.log_ratios(shift, 0.10, count, 300, rng)]
    at_most(sum(i.lower > 0.97 and i.upper < 1.03 for i in found), count, 0.025)


@pytest.mark.parametrize("count", studies(2000, 40_000))
def test_a_candidate_at_the_catastrophe_margin_is_rarely_accepted(count):
    rng = np.random.default_rng([10, count])
    alone, parents = rng.binomial(300, 0.033, count), rng.binomial(300, 0.003, count)
    found = [rates.paired_difference_upper(int(b), int(c), 300).upper for b, c in zip(alone, parents, strict=True)]
    at_most(sum(u < 0.03 for u in found), count, 0.025)


@pytest.mark.parametrize("count", studies(400, 8000))
@pytest.mark.parametrize("panel", worlds.PANELS)
@pytest.mark.parametrize(("raters", "sentences"), [(4, 20), (8, 50), (12, 100)])
def test_a_candidate_at_the_preference_margin_is_rarely_accepted(panel, raters, sentences, count):
    rng = np.random.default_rng([11, count, raters, len(panel)])
    passed = sum(net_preference(*worlds.votes(panel, raters, sentences, -0.10, rng)).lower > -0.10 for _ in range(count))
    at_most(passed, count, 0.035)


@pytest.mark.parametrize("count", studies(800, 10_000))
@pytest.mark.parametrize("drift", [0.0, 0.13])
def test_a_change_that_brings_nothing_is_not_called_faster(drift, count):
    rng = np.random.default_rng([12, count])
    found = [speed.speedup(*worlds.blocks(1.0, 3, drift, 0.01, rng)) for _ in range(count)]
    at_most(sum(f.estimate >= 1.03 and f.lower > 1 for f in found), count, 0.01)
    real = [speed.speedup(*worlds.blocks(1.06, 3, drift, 0.01, rng)) for _ in range(count // 4)]
    assert np.mean([f.estimate >= 1.03 and f.lower > 1 for f in real]) > 0.95


# -- the whole gate ----------------------------------------------------------------------------------------------------


def gate_passes(cer, dnsmos, ratios, alone, parents):
    return (
        mean_interval(cer).upper < 0.02 and mean_interval(dnsmos).upper < 0.05 and rates.paired_difference_upper(alone, parents, len(cer)).upper < 0.03
        and (found := length.ratio_interval(ratios)).lower > 0.97 and found.upper < 1.03
    )  # fmt: skip


@pytest.mark.parametrize("count", studies(1000, 20_000))
@pytest.mark.parametrize("harm", ["diffuse", "sparse"])
@pytest.mark.parametrize("language", ["hi", "en"])
def test_the_whole_gate_rarely_accepts_a_candidate_at_one_margin(language, harm, count):
    """The other endpoints are as good as can be; failures come with sparse harm, as a wholly wrong clip is one."""
    rng = np.random.default_rng([13, count, ord(language[0]), len(harm)])
    cer = worlds.cer_differences(language, harm, count, 300, 1, rng)
    dnsmos = worlds.dnsmos_differences(0.0, count, 300, 1, rng)
    ratios = worlds.log_ratios(0.0, 0.05, count, 300, rng)
    # What is wholly wrong in one arm alone is a failure there; the catastrophe limit sees it as well.
    alone, parents = (cer > 0.9).sum(axis=1), (cer < -0.9).sum(axis=1)
    passed = sum(gate_passes(cer[k], dnsmos[k], ratios[k], int(alone[k]), int(parents[k])) for k in range(count))
    at_most(passed, count, 0.035)


@pytest.mark.parametrize("count", studies(400, 5000))
def test_the_whole_gate_accepts_a_candidate_that_is_not_worse(count):
    rng = np.random.default_rng([14, count])
    cer = worlds.cer_differences("hi", "none", count, 300, 1, rng)
    dnsmos = worlds.dnsmos_differences(0.0, count, 300, 1, rng)
    ratios = worlds.log_ratios(0.0, 0.07, count, 300, rng)
    alone, parents = (cer > 0.9).sum(axis=1), (cer < -0.9).sum(axis=1)
    passed = np.mean([gate_passes(cer[k], dnsmos[k], ratios[k], int(alone[k]), int(parents[k])) for k in range(count)])
    assert passed > 0.80
