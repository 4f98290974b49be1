import json
import math
from pathlib import Path

import pytest

from gate.decide import Case, Endpoint, Speed, case_from_mapping, decide

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "verdicts.json").read_text())["vectors"]
GOOD = (
    Endpoint("cer", -0.01, 0.01, margin=0.02),
    Endpoint("dnsmos", -0.01, 0.01, margin=0.05),
    Endpoint("length", 0.99, 1.01, low=0.97, high=1.03),
)


@pytest.mark.parametrize("row", VECTORS, ids=[row["id"] for row in VECTORS])
def test_the_vectors(row):
    found = decide(case_from_mapping(row["case"]))
    assert (found.verdict, set(found.reasons)) == (row["verdict"], set(row["reasons"]))


def test_a_limit_on_the_margin_is_open_and_nan_is_open():
    assert Endpoint("cer", -0.01, 0.02, margin=0.02).state == "open"
    assert Endpoint("cer", 0.02, 0.03, margin=0.02).state == "open"
    assert Endpoint("cer", math.nan, math.nan, margin=0.02).state == "open"
    assert Endpoint("length", 0.97, 1.0, low=0.97, high=1.03).state == "open"


def test_below_the_floor_an_endpoint_may_fail_and_never_pass():
    low = Endpoint("cer", -0.01, 0.01, margin=0.02, may_pass=False, why_open="below_floor")
    assert low.state == "open"
    assert Endpoint("cer", 0.03, 0.05, margin=0.02, may_pass=False).state == "fail"
    found = decide(Case(endpoints=(low, *GOOD[1:]), benefit="none", final_look=True))
    assert (found.verdict, found.reasons) == ("inconclusive", ("cer:below_floor", "collect_more"))


def test_a_cap_makes_the_best_verdict_provisional():
    found = decide(Case(endpoints=GOOD, benefit="none", caps=("floor_lowered",)))
    assert (found.verdict, found.reasons, found.evidence) == ("provisional", ("floor_lowered",), "automatic-only")


def test_a_slower_candidate_is_rejected_whatever_its_benefit():
    assert decide(Case(endpoints=GOOD, benefit="none", speed=Speed(wall_speedup=0.9, lower=0.88, upper=0.92))).reasons[0] == "slower"


def test_votes_can_veto_and_not_rescue():
    against = Endpoint("preference", 0.2, 0.6, margin=0.15)
    bad = (Endpoint("cer", 0.03, 0.05, margin=0.02), *GOOD[1:])
    for_it = Endpoint("preference", -0.6, -0.2, margin=0.15)
    assert decide(Case(endpoints=GOOD, benefit="none", human=against, human_required=True)).verdict == "rejected"
    assert decide(Case(endpoints=bad, benefit="none", human=for_it, human_required=True)).verdict == "rejected"
    assert decide(Case(endpoints=GOOD, benefit="none", human=for_it, human_required=True)).evidence == "heard"


def test_missing_evidence_comes_before_everything():
    found = decide(Case(evidence_complete=False, bit_identical=True, missing=("clips_lost:2",)))
    assert (found.verdict, found.reasons) == ("inconclusive", ("evidence_incomplete", "clips_lost:2"))


@pytest.mark.parametrize(
    ("gain", "verdict", "reason"),
    [
        ("shown", "accepted", "evidence:automatic-only"),
        ("absent", "no-benefit", "memory:absent"),
        ("invalid", "inconclusive", "memory:invalid"),
        ("unknown", "inconclusive", "memory:unknown"),
    ],
)
def test_memory_is_a_benefit_of_its_own(gain, verdict, reason):
    found = decide(Case(endpoints=GOOD, benefit="memory", gain=gain))
    assert (found.verdict, found.reasons[0]) == (verdict, reason)


def test_less_memory_must_not_cost_speed():
    slow = Speed(0.9, 0.9, lower=0.85, upper=0.95)
    assert decide(Case(endpoints=GOOD, benefit="memory", gain="shown", speed=slow)).reasons[0] == "slower"


HEARD = Endpoint("preference", -0.10, 0.05, margin=0.15)
BETTER = Endpoint("preference", -0.30, -0.05, margin=0.15)


@pytest.mark.parametrize(
    ("human", "final", "endpoints", "verdict"),
    [
        (None, False, GOOD, "inconclusive"), (HEARD, False, GOOD, "inconclusive"), (HEARD, True, GOOD, "no-benefit"), (BETTER, True, GOOD, "accepted"),
        (HEARD, True, (Endpoint("cer", -0.04, -0.01, margin=0.02), *GOOD[1:]), "accepted"),
    ],
)  # fmt: skip
def test_quality_is_only_shown_by_listeners_or_fewer_errors(human, final, endpoints, verdict):
    found = decide(Case(endpoints=endpoints, benefit="quality", human=human, human_required=True, final_look=final))
    assert found.verdict == verdict
    if human is None:
        assert found.reasons[0] == "human_votes_pending"


def test_the_same_sound_is_no_better():
    assert decide(Case(bit_identical=True, benefit="quality")).reasons[0] == "quality:absent"
