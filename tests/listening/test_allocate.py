import random
import uuid
from collections import Counter

import pytest
from django.db.models import Count
from django.utils import timezone

from listening import allocate, ballot
from listening.models import Pair, Rater, Trial, Vote
from tests import factories


def vote(rater, trial):
    ballot.cast(rater.key, uuid.uuid4(), trial.key, ballot.Answer(random.choice(["left", "same", "right"])))


def sit(rater, answers=1000):
    """Answers until nothing is left, or `answers` are given."""
    given = 0
    while given < answers and (trial := allocate.next_trial(rater)) is not None:
        vote(rater, trial)
        given += 1
    return given


def test_votes_per_pair_stay_within_one_of_each_other(db):
    study = factories.study(pairs=5, votes_per_pair=6)
    for _ in range(10):
        sit(factories.rater(), answers=2)
        counts = [p.trials.filter(state="voted").count() for p in study.pairs.all()]
        assert max(counts) - min(counts) <= 1


def test_sides_are_balanced_within_a_pair_that_is_full(db):
    study = factories.study(pairs=6, votes_per_pair=4)
    assert [sit(factories.rater()) for _ in range(4)] == [6] * 4
    for pair in study.pairs.all():
        assert sorted(pair.trials.values_list("tested_side", flat=True)) == [0, 0, 1, 1]


def test_sides_are_balanced_within_a_rater_while_there_is_a_choice(db):
    factories.study(pairs=6, votes_per_pair=20)
    for _ in range(4):
        rater = factories.rater()
        assert sit(rater) == 6
        assert abs(2 * sum(rater.trials.values_list("tested_side", flat=True)) - 6) <= 2


def test_a_rater_never_hears_a_pair_twice_and_a_quota_is_never_passed(db):
    study = factories.study(pairs=3, votes_per_pair=2)
    assert [sit(factories.rater()) for _ in range(4)] == [3, 3, 0, 0]
    assert Trial.objects.filter(pair__study=study).count() == 6


def test_a_recording_shared_by_two_pairs_is_heard_once(db):
    study = factories.study(pairs=1)
    pair = study.pairs.get()
    Pair.objects.create(
        study=factories.study(pairs=0), sentence=pair.sentence, reference=pair.reference, tested=factories.clip(77), first_side=0
    )
    assert sit(factories.rater()) == 1


def test_a_reload_gives_the_same_trial_with_the_same_sides(db):
    factories.study()
    rater = factories.rater()
    one, two = allocate.next_trial(rater), allocate.next_trial(rater)
    assert (one.pk, one.tested_side, one.left_key) == (two.pk, two.tested_side, two.left_key)


def test_a_trial_left_lying_comes_back_first_with_the_same_sides(db):
    factories.study()
    rater = factories.rater()
    old = allocate.next_trial(rater)
    Trial.objects.update(state="lapsed", lease_until=timezone.now())
    again = allocate.next_trial(rater)
    assert (again.pk, again.tested_side, again.state) == (old.pk, old.tested_side, "open")


def test_a_trial_whose_place_was_taken_does_not_come_back(db):
    factories.study(pairs=1, votes_per_pair=1)
    slow, quick = factories.rater(), factories.rater()
    allocate.next_trial(slow)
    Trial.objects.update(state="lapsed")
    vote(quick, allocate.next_trial(quick))
    assert allocate.next_trial(slow) is None


def test_raters_of_another_language_hear_nothing_of_it(db):
    factories.study(language="en")
    assert allocate.next_trial(factories.rater("hi")) is None


def test_a_sitting_ends_with_a_break_and_a_day_with_a_thank_you(db, monkeypatch):
    monkeypatch.setattr(allocate, "SITTING", 4)
    monkeypatch.setattr(allocate, "SITTINGS_A_DAY", 2)
    factories.study(pairs=12)
    rater = factories.rater()
    assert sit(rater) == 4 and allocate.why_over(rater) == "break"
    Rater.objects.update(breaks=1)
    rater.refresh_from_db()
    assert sit(rater) == 4 and allocate.why_over(rater) == "today"
    Vote.objects.update(cast_at=timezone.now() - timezone.timedelta(hours=13))
    Rater.objects.update(breaks=2)
    rater.refresh_from_db()
    assert sit(rater) == 4


def test_an_invitation_may_ask_for_so_many_answers_and_no_more(db):
    factories.study(pairs=5)
    rater = factories.rater(answers_wanted=2)
    assert allocate.next_trial(rater) and allocate.progress(rater) == (0, 2)
    assert sit(rater) == 2 and allocate.why_over(rater) == "done"


@pytest.mark.parametrize("sittings", [150, pytest.param(10_000, marks=pytest.mark.long)])
def test_sittings_with_drop_outs_keep_every_rule(db, sittings):
    """Raters come and go, leave trials lying, take answers back; whatever they do, every balance holds."""
    chance = random.Random(sittings)
    studies = [factories.study(pairs=12, votes_per_pair=max(4, sittings // 16), first_clip=40 * k) for k in range(2)]
    factories.controls(studies[0])
    for _ in range(sittings):
        rater = factories.rater()
        for _ in range(chance.randrange(1, 7)):
            trial = allocate.next_trial(rater)
            if trial is None:
                break
            fate = chance.random()
            if fate < 0.15:
                Trial.objects.filter(pk=trial.pk).update(state="lapsed")  # what tend does to one that was left
                break
            if fate < 0.25:
                allocate.trial_ahead(rater)
            vote(rater, trial)
            if fate > 0.95 and trial.pair.kind == "test":
                ballot.undo(rater, trial.key)
    for study in studies:
        served = []
        for pair in study.pairs.filter(kind="test"):
            standing = pair.trials.filter(state__in=Trial.HELD)
            sides = list(standing.values_list("tested_side", flat=True))
            served.append(len(sides))
            assert len(sides) <= study.votes_per_pair and len({t.slot for t in standing}) == len(sides)
            assert len(sides) < study.votes_per_pair or abs(2 * sum(sides) - len(sides)) <= study.votes_per_pair % 2
        assert max(served) - min(served) <= 2  # within one, but for what was left lying and not taken up yet
    twice = Trial.objects.values("rater", "pair").annotate(n=Count("pk")).filter(n__gt=1)
    assert not twice.exists()
    sides = Counter(Trial.objects.exclude(state="lapsed").values_list("tested_side", flat=True))
    assert abs(sides[0] - sides[1]) < 4 * (sides[0] + sides[1]) ** 0.5


def test_a_rater_can_not_foretell_the_sides(db):
    """Over many sittings the next side is the other one about half the time, and no side leads by more than three."""
    factories.study(pairs=8, votes_per_pair=90)
    turns = same = 0
    first = []
    for _ in range(30):
        rater = factories.rater()
        sit(rater)
        sides = list(rater.trials.order_by("pk").values_list("tested_side", flat=True))
        assert abs(2 * sum(sides) - len(sides)) <= 3
        first.append(sides[0] == rater.key.int % 2)
        turns += sum(a != b for a, b in zip(sides, sides[1:], strict=False))
        same += sum(a == b for a, b in zip(sides, sides[1:], strict=False))
    assert 0.2 < same / (turns + same) < 0.6
    assert 2 <= sum(first) <= 28
