"""The human endpoint: what it takes to pass, what keeps it open, and what is only told."""

import uuid

import pytest
from django.utils import timezone

from gate import ears, policy
from gate.decide import FAIL, OPEN, PASS
from listening import ballot
from listening.models import Qualification, Trial
from tests import factories

PLAN = policy.parse({
    "panel": {"raters": 4, "sentences": 4, "votes": 20}, "listening": {"votes_per_pair": 20, "looks": [1.0], "assay": False},
    "margins": {"preference": 0.3}, "screening": {"listened_votes": 5},
})  # fmt: skip
ASSAY = PLAN.model_copy(update={"listening": PLAN.listening.model_copy(update={"assay": True})})
GOOD = {
    "share": {"left": 1, "right": 1},
    "tail": {"left": True, "right": True},
    "seconds": 20,
    "first": "left",
    "frames": {"left": 72000, "right": 72000},
}


@pytest.fixture
def study(db):
    made = factories.study(pairs=8, votes_per_pair=20)
    factories.controls(made, 22)
    return made


def vote(rater, pair, score, slot, **answer):
    """Score as the gate counts it: +1 for the tested recording."""
    side = slot % 2
    trial = Trial.objects.create(pair=pair, rater=rater, slot=slot, tested_side=side, lease_until=timezone.now())
    Trial.objects.filter(pk=trial.pk).update(created_at=timezone.now() - timezone.timedelta(minutes=1))
    choice = "same" if score == 0 else ("left", "right")[side if score == 1 else 1 - side]
    ballot.cast(rater.key, uuid.uuid4(), trial.key, ballot.Answer(choice, log=answer.pop("log", GOOD), **answer))


def panel(study, score_of, raters=6, kind="test"):
    made = [factories.rater() for _ in range(raters)]
    for slot, rater in enumerate(made):
        for k, pair in enumerate(study.pairs.filter(kind=kind)):
            vote(rater, pair, score_of(slot, k), slot)
    return made


def endpoint(study, plan=PLAN):
    return ears.human(study, plan, len(plan.listening.looks) - 1, True)


def test_no_difference_passes_and_a_clear_loss_fails(study):
    panel(study, lambda r, k: (0, 0, 1, -1)[(r + k) % 4])
    found, facts = endpoint(study)
    assert found.state == PASS and facts["counts"] == {"candidate": 12, "same": 24, "parent": 12} and facts["net"]["votes"] == 48


def test_a_clear_loss_fails(study):
    panel(study, lambda r, k: -1)
    assert endpoint(study)[0].state == FAIL


def test_a_small_panel_describes_and_decides_nothing(study):
    panel(study, lambda r, k: 0, raters=2)
    found, _ = endpoint(study)
    assert (found.state, found.why_open) == (OPEN, "panel_too_small")


def test_equality_counts_only_for_a_panel_that_hears_a_moderate_damage(study):
    raters = panel(study, lambda r, k: (0, 0, 1, -1)[(r + k) % 4])
    found, facts = endpoint(study, ASSAY)
    assert (found.state, found.why_open, facts["assay"]["votes"]) == (OPEN, "assay_not_met", 0)
    for slot, rater in enumerate(raters):
        for k, pair in enumerate(study.pairs.filter(kind="assay")):
            vote(rater, pair, -1 if (k + slot) % 5 else 0, slot)
    found, facts = endpoint(study, ASSAY)
    assert found.state == PASS and facts["assay"]["met"] and facts["assay"]["lower"] > 0.3
    assert facts["counts"] == {"candidate": 12, "same": 24, "parent": 12}  # controls are no votes


def test_a_deaf_panel_proves_nothing(study):
    raters = panel(study, lambda r, k: 0)
    for slot, rater in enumerate(raters):
        for pair in study.pairs.filter(kind="assay"):
            vote(rater, pair, 0, slot)
    assert endpoint(study, ASSAY)[0].why_open == "assay_not_met"


def test_an_assay_answered_by_others_or_before_says_nothing_of_this_panel(study):
    panel(study, lambda r, k: 0)
    panel(study, lambda r, k: -1, kind="assay")  # raters who judged nothing of this study
    assert endpoint(study, ASSAY)[1]["assay"]["votes"] == 0


def deaf(study, rater, slot):
    """Misses every obvious damage."""
    for pair in study.pairs.filter(kind="obvious"):
        vote(rater, pair, 0, slot)


def test_raters_who_miss_what_is_obvious_do_not_count(study):
    raters = panel(study, lambda r, k: (0, 0, 1, -1)[(r + k) % 4], raters=8)
    deaf(study, raters[0], 0)
    found, facts = endpoint(study)
    assert facts["excluded"] == {"catches": 1} and facts["votes_excluded"] == 8 and facts["net"]["raters"] == 7
    assert found.state == PASS and not facts["exclusions_matter"]


def test_an_exclusion_that_would_turn_a_failure_into_a_pass_leaves_it_open(study):
    raters = panel(study, lambda r, k: (0, 0, 1, -1)[(r + k) % 4] if r < 6 else -1, raters=26)
    for slot, rater in list(enumerate(raters))[6:]:
        deaf(study, rater, slot)
    found, facts = endpoint(study)
    assert facts["state_with_all"] == FAIL and (found.state, found.why_open) == (OPEN, "exclusions_decide")


def test_sides_and_what_was_heard_first_are_told(study):
    panel(study, lambda r, k: (1, -1)[r % 2])  # always the right side: rater r has the tested recording on side r % 2
    _, facts = endpoint(study)
    assert facts["sides"]["left"] + facts["sides"]["right"] == 48 and facts["sides"]["uneven"]
    assert facts["first_heard"]["first"] + facts["first_heard"]["second"] == 48


def test_remarks_are_counted_once_a_trial_and_drawn_on_the_sentence(study):
    rater, pair = factories.rater(), study.pairs.filter(kind="test").first()
    tags = [
        {"side": "left", "word": [0, 8], "tag": "noise"}, {"side": "left", "word": None, "tag": "noise"},
        {"side": "right", "word": [9, 15], "tag": "pace"},
    ]  # fmt: skip
    vote(rater, pair, 1, 0, tags=tags)  # slot 0: the tested recording is left
    _, facts = endpoint(study)
    assert facts["tags"] == [{"tag": "noise", "parent": 0, "candidate": 1}, {"tag": "pace", "parent": 1, "candidate": 0}]
    [row] = facts["defects"]
    assert row["sentence"] == pair.sentence.text
    assert row["words"] == [{"start": 0, "end": 8, "parent": 0, "candidate": 1}, {"start": 9, "end": 15, "parent": 1, "candidate": 0}]


def test_who_was_never_tested_is_told(study):
    raters = panel(study, lambda r, k: 0)
    Qualification.objects.create(rater=raters[0], method="tested", passed=True, right=8, asked=8)
    assert endpoint(study)[1]["self_declared"] == 5
