import math

import pytest

from gate.metrics import repeatability
from gate.metrics.battery import Scores

MARGINS = {"cer": 0.02, "dnsmos": 0.05, "length": 0.03, "level": 1.0, "preference": 0.15}


def scores(**changes):
    return Scores(**{"failed": "", "cer": 0.1, "dnsmos": 3.0, "level_dbfs": -26.0, "duration_s": 2.0} | changes)


def spreads(*changes):
    taken = iter([scores(**c) for c in changes] + [scores()] * 5)
    return repeatability.spreads(lambda: next(taken))


def test_a_metric_that_gives_the_same_five_times_is_steady():
    assert repeatability.unsteady(spreads(), MARGINS) == []


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"dnsmos": 3.009}, []),
        ({"dnsmos": 3.011}, ["dnsmos"]),
        ({"cer": 0.105}, ["cer"]),
        ({"level_dbfs": -26.3}, ["level"]),
        ({"duration_s": 2.02}, ["length"]),
        ({"level_dbfs": None}, ["level"]),
        ({"dnsmos": math.nan}, ["dnsmos"]),
    ],
)
def test_a_fifth_of_the_margin_is_too_much(change, names):
    assert repeatability.unsteady(spreads({}, change), MARGINS) == names
