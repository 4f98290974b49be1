"""Who counts: every rule at its boundary, none that looks at a direction, and controls that are at fault themselves."""

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from listening import ballot, listened, screening
from listening.models import Exclusion, Pair, Trial, Vote
from listening.screening import Record, Rules, judge
from tests import factories

RULES = Rules()
HEARD = {"left": 72_000, "right": 72_000}
ALL_HEARD = {"share": {"left": 1, "right": 1}, "tail": {"left": True, "right": True}}


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (Record(catches=4, caught=0), ""),  # too few to judge: counts
        (Record(catches=5, caught=3), "catches"),
        (Record(catches=5, caught=4), ""),
        (Record(catches=6, caught=4), "catches"),
        (Record(catches=6, caught=5), ""),
        (Record(catches=8, caught=6), "catches"),
        (Record(catches=8, caught=7), ""),
        (Record(left=19, right=0), ""),
        (Record(left=20, right=0), "side_bias"),
        (Record(left=17, right=3), ""),  # p = 0.0026
        (Record(left=18, right=2), "side_bias"),  # p = 0.0004
        (Record(left=2, right=18), "side_bias"),
        (Record(answers=9, doubtful=9), ""),
        (Record(answers=10, doubtful=2), ""),
        (Record(answers=10, doubtful=3), "listening"),
        (Record(answers=400), ""),  # always "same": no rule of its own, or equivalence would be biased against
    ],
)
def test_each_rule_at_its_boundary(record, why):
    assert judge(record, RULES) == why


def test_the_side_rules_probability_is_exact():
    from scipy.stats import binomtest

    for left, right in ((0, 0), (1, 0), (18, 2), (10, 10), (300, 260)):
        expected = binomtest(left, left + right).pvalue if left + right else 1.0
        assert screening.side_p(left, right) == pytest.approx(expected)


def cast(rater, pair, choice, slot, tested_side=1, **log):
    trial = Trial.objects.create(pair=pair, rater=rater, slot=slot, tested_side=tested_side, lease_until=timezone.now())
    Trial.objects.filter(pk=trial.pk).update(created_at=timezone.now() - timedelta(minutes=1))
    good = {"share": {"left": 1, "right": 1}, "tail": {"left": True, "right": True}, "seconds": 20, "frames": HEARD} | log
    ballot.cast(rater.key, uuid.uuid4(), trial.key, ballot.Answer(choice, log=good))


@pytest.fixture
def study(db):
    made = factories.study(pairs=0, votes_per_pair=50)
    factories.controls(made)
    return made


def test_records_count_what_was_answered_and_nothing_of_practice_or_retired_controls(study):
    rater = factories.rater()
    obvious = list(study.pairs.filter(kind="obvious"))
    for k, pair in enumerate(obvious[:4]):
        cast(rater, pair, "left" if k else "right", k)  # the tested one is right: left is the intact one
    cast(rater, study.pairs.filter(kind="practice").first(), "right", 0)
    instruction = study.pairs.filter(kind="instruction").first()
    cast(rater, instruction, instruction.expected, 0, seconds=0.1)
    record = screening.records([rater.pk])[rater.pk]
    assert (record.catches, record.caught, record.answers, record.doubtful, record.followed) == (4, 3, 5, 1, 1)
    Pair.objects.filter(pk=obvious[0].pk).update(retired_at=timezone.now())
    record = screening.records([rater.pk])[rater.pk]
    assert (record.catches, record.caught) == (3, 3)


def test_an_undone_answer_says_nothing(study):
    rater = factories.rater()
    cast(rater, study.pairs.filter(kind="obvious").first(), "right", 0)
    Vote.objects.update(superseded_at=timezone.now())
    assert screening.records([rater.pk]).get(rater.pk, Record()).catches == 0


def test_a_decision_excludes_until_it_is_lifted(study):
    rater = factories.rater()
    made = Exclusion.objects.create(rater=rater, rule="two accounts")
    assert screening.excluded([rater.pk], RULES) == {rater.pk: "two accounts"}
    made.lifted_at = timezone.now()
    made.save()
    assert screening.excluded([rater.pk], RULES) == {}


def test_a_control_that_good_raters_fail_is_retired_and_its_failures_count_for_nobody(study):
    obvious = list(study.pairs.filter(kind="obvious"))
    raters = [factories.rater() for _ in range(6)]
    for slot, rater in enumerate(raters):
        for k, pair in enumerate(obvious[:5]):
            wrong = k == 0 and slot < 3  # half of them fail the first one, and hear all others
            cast(rater, pair, "right" if wrong else "left", slot)
    assert [p.pk for p in screening.retire_faulty(study.panel, RULES)] == [obvious[0].pk]
    assert screening.retire_faulty(study.panel, RULES) == []
    assert screening.excluded([r.pk for r in raters], RULES) == {}


def test_a_control_that_only_poor_raters_fail_stays(study):
    obvious = list(study.pairs.filter(kind="obvious"))
    for slot in range(8):
        rater = factories.rater()
        for pair in obvious[:5]:
            cast(rater, pair, "left" if slot < 6 else "right", slot)
    assert screening.retire_faulty(study.panel, RULES) == []


def test_an_excluded_share_that_jumps_is_told(study):
    obvious = list(study.pairs.filter(kind="obvious"))
    for slot in range(10):
        rater = factories.rater()
        for pair in obvious[:5]:
            cast(rater, pair, "left" if slot < 5 else "right", slot)
    assert "5 of the 10 raters of the last day don't count" in screening.alarm(study.panel, RULES)
    Vote.objects.update(cast_at=timezone.now() - timedelta(days=3))
    assert screening.alarm(study.panel, RULES) == ""


def test_payment_is_another_matter(study):
    assert screening.payable(Record(catches=5, caught=0, answers=50, doubtful=50))
    assert screening.payable(Record(instructions=3, followed=2)) and not screening.payable(Record(instructions=3, followed=1))


@pytest.mark.parametrize(
    ("log", "doubt"),
    [
        ({}, "unheard"),
        ({"share": {"left": 1, "right": 1}, "tail": {"left": True, "right": False}, "seconds": 9}, "unheard"),
        ({"share": {"left": 0.89, "right": 1}, "tail": {"left": True, "right": True}, "seconds": 9}, "unheard"),
        ({"share": {"left": 0.9, "right": 1}, "tail": {"left": True, "right": True}, "seconds": 2.9}, "hasty"),
        ({**ALL_HEARD, "seconds": 9, "frames": {"left": 12_000, "right": 11_999}}, "impossible"),
        ({**ALL_HEARD, "seconds": 9, "frames": {"left": 200_000, "right": 200_000}}, "impossible"),
        ({**ALL_HEARD, "seconds": 9, "frames": {"left": 48_000, "right": 48_000}, "client": {"rate": 48_000}}, ""),
        ({**ALL_HEARD, "seconds": 9, "frames": {"left": 23_999, "right": 40_000}, "client": {"rate": 48_000}}, "impossible"),
        ({"share": {"left": 0.9, "right": 1}, "tail": {"left": True, "right": True}, "seconds": 3.0, "frames": HEARD}, ""),
        ({"share": {"left": 1, "right": 1}, "tail": {"left": True, "right": True}, "seconds": 400}, "impossible"),
        ({"share": "all", "tail": [1], "seconds": "long", "client": 3, "states": {}}, "unheard"),
        ({"share": {"left": True, "right": 9e99}, "tail": {"left": 1, "right": "true"}, "seconds": -5}, "unheard"),
    ],
)
def test_a_log_is_doubted_where_it_can_not_be_true(log, doubt):
    assert listened.doubt(listened.kept(log), (3.0, 2.0), 60.0) == doubt


def test_what_a_log_may_not_hold_is_dropped():
    kept = listened.kept({"evil": "x" * 3000, "client": {"agent": "y" * 3000}, "states": ["z" * 99] * 99, "plays": {"left": 1e99}})
    assert "evil" not in kept and len(kept["client"]["agent"]) == 120 and len(kept["states"]) == 20 and kept["plays"]["left"] == 1e4


@pytest.mark.parametrize(
    ("tags", "ok"),
    [
        ([], True),
        ([{"side": "left", "word": None, "tag": "noise"}], True),
        ([{"side": "right", "word": [0, 4], "tag": "retroflex"}], True),
        ([{"side": "right", "word": [4, 4], "tag": "noise"}], False),
        ([{"side": "right", "word": [0, 99], "tag": "noise"}], False),
        ([{"side": "both", "word": None, "tag": "noise"}], False),
        ([{"side": "left", "word": None, "tag": "<script>"}], False),
        ([{"side": "left", "word": [True, 4], "tag": "noise"}], False),
        ("noise", False),
        ([{"side": "left", "tag": "noise"}] * 25, False),
    ],
)
def test_remarks_are_those_of_the_page_or_none(tags, ok):
    assert (listened.tags(tags, 20) is not None) is ok
