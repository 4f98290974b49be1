"""The planner against the tables of docs/statistics.md, section 5."""

import numpy as np
import pytest

from gate.statistics import planner
from gate.statistics.intervals import mean_interval

POWERS = (0.8, 0.9, 0.95)


@pytest.mark.parametrize(
    ("margin", "sd", "table"),
    [
        (0.02, 0.064, [83, 110, 136, 145, 194, 239, 324, 433, 535]),
        (0.02, 0.088, [154, 206, 254, 273, 364, 450, 610, 816, 1009]),
        (0.02, 0.12, [285, 381, 470, 505, 675, 834, 1133, 1515, 1874]),
        (0.05, 0.15, [73, 97, 119, 128, 171, 210, 285, 381, 470]),
        (0.05, 0.20, [128, 171, 210, 226, 301, 372, 505, 675, 834]),
        (0.05, 0.30, [285, 381, 470, 505, 675, 834, 1133, 1515, 1874]),
    ],
)
def test_sentences_for_a_mean(margin, sd, table):
    harms = (0.0, margin / 4, margin / 2)
    assert [planner.needed(lambda n, h=h: planner.power(n, sd, margin, h), p) for h in harms for p in POWERS] == table


@pytest.mark.parametrize(
    ("sd", "table"), [(0.05, [32, 39, 45, 54, 72, 88]), (0.10, [121, 148, 175, 208, 277, 343]), (0.15, [265, 329, 390, 471, 617, 773])]
)
def test_sentences_for_a_length(sd, table):
    found = [planner.needed(lambda n, s=s: planner.length_power(n, sd, 0.03, s), p) for s in (0.0, 0.01) for p in POWERS]
    assert found == pytest.approx(table, rel=0.025)


@pytest.mark.parametrize(
    ("raters", "sentences", "votes", "low", "both", "heavy"),
    [
        (4, 50, 200, [0.14, 0.25, 0.39, 0.55], [0.08, 0.13, 0.20, 0.29], [0.06, 0.09, 0.12, 0.16]),
        (8, 50, 400, [0.26, 0.51, 0.75, 0.91], [0.14, 0.27, 0.43, 0.61], [0.10, 0.16, 0.26, 0.37]),
        (12, 50, 600, [0.35, 0.65, 0.88, 0.98], [0.19, 0.37, 0.58, 0.77], [0.13, 0.24, 0.39, 0.55]),
        (12, 100, 1200, [0.47, 0.80, 0.96, 1.0], [0.22, 0.44, 0.67, 0.85], [0.14, 0.25, 0.41, 0.57]),
        (20, 100, 2000, [0.63, 0.93, 1.0, 1.0], [0.32, 0.62, 0.85, 0.96], [0.21, 0.40, 0.63, 0.82]),
        (24, 100, 300, [None, 0.71, 0.92, None], [None, 0.52, 0.76, None], [None] * 4),
    ],
)
def test_power_of_a_panel(raters, sentences, votes, low, both, heavy):
    for kind, row in (("low", low), ("both", both), ("rater-heavy", heavy)):
        parts = planner.Components(*planner.TYPICAL[kind])
        for margin, expected in zip((0.10, 0.15, 0.20, 0.25), row, strict=True):
            if expected is not None:
                assert planner.votes_power(raters, sentences, votes, margin, parts) == pytest.approx(expected, abs=0.015)


def test_the_planned_power_is_what_the_interval_has():
    rng = np.random.default_rng(5)
    passed = np.mean([mean_interval(rng.normal(0, 0.2, 128)).upper < 0.05 for _ in range(1500)])
    assert passed == pytest.approx(planner.power(128, 0.2, 0.05), abs=0.03)


def test_when_nothing_is_enough_it_says_so():
    assert planner.needed(lambda n: planner.power(n, 1.0, 0.02, harm=0.02), 0.8) is None
    assert planner.power(1, 0.1, 0.02) == 0.0 and planner.power(10, 0.0, 0.02) == 1.0 and planner.power(10, 0.0, 0.02, 0.02) == 0.0
    assert planner.votes_power(1, 50, 100, 0.15, planner.Components(0.1, 0.1, 0.5)) == 0.0


def test_with_few_raters_who_differ_only_raters_help():
    assert planner.advice(4, 100, 400, 0.15, planner.Components(0.128, 0.032, 0.527)) == "raters"
    assert planner.advice(40, 10, 400, 0.15, planner.Components(0.01, 0.2, 0.5)) == "sentences"
    assert planner.advice(60, 200, 4000, 0.15, planner.Components(0.01, 0.01, 0.5)) == "enough"


def test_components_are_found_again():
    rng = np.random.default_rng(1)
    rater, sentence = rng.normal(0, 0.4, 60), rng.normal(0, 0.6, 80)
    r, s = np.divmod(np.arange(60 * 80), 80)
    found = planner.components_of(r, s, rater[r] + sentence[s] + rng.normal(0, 0.7, len(r)))
    assert (found.rater, found.sentence, found.vote) == pytest.approx((np.var(rater), np.var(sentence), 0.49), rel=0.2)
    assert planner.components_of([1, 1, 1], [1, 2, 3], [0, 1, 0]) is None
    assert planner.components_of([], [], []) is None
