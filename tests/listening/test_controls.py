"""Controls: what they are made of, when they come, and that nothing on the wire sets them apart."""

import uuid
from collections import Counter

import numpy as np
import pytest

from gate import controls as texts
from listening import allocate, ballot, blind, controls, damage, schedule
from listening.models import Pair, Rater, Trial
from synth import clips, pauses
from tests import factories

RATE = 24000


def speech(seconds=2.0):
    t = np.arange(int(seconds * RATE)) / RATE
    loud = (t > 0.2) & (t < seconds - 0.2)
    return (0.3 * loud * np.sin(2 * np.pi * 200 * t)).astype(np.float32)


def test_damages_are_of_the_size_they_say():
    x = speech()
    noise = damage.mnru(x, 15.0, 1) - x
    measured = 10 * np.log10(np.sum(x**2) / np.sum(noise**2))
    assert measured == pytest.approx(15.0, abs=0.2)
    assert np.array_equal(damage.mnru(x, 15.0, 1), damage.mnru(x, 15.0, 1)) and damage.mnru(x, 0.0, 2).max() <= 1
    spans = [pauses.analyse(y, RATE).span_ms for y in (x, damage.cut_tail(x, RATE), damage.dropped_word(x, RATE))]
    assert spans[0] == 1600 and spans[1] == pytest.approx(1600 * 0.65, abs=15) and spans[2] == pytest.approx(1600 - 450, abs=15)
    for y in (damage.cut_tail(x, RATE), damage.dropped_word(x, RATE)):
        assert np.abs(np.diff(y)).max() < 0.03  # no click where it was cut


def test_sound_without_speech_can_be_damaged_too():
    for x in (np.zeros(RATE, np.float32), speech(0.45)):
        for what in damage.OBVIOUS:
            assert np.isfinite(damage.obvious(x, RATE, what, 1)).all()


@pytest.mark.parametrize("count", [0, 1, 4, 7, 22])
def test_a_small_set_has_one_of_each_that_matters(db, count):
    study = factories.study(pairs=0)
    factories.controls(study, count)
    kinds = Counter(study.pairs.values_list("kind", flat=True))
    assert sum(kinds.values()) == count
    if count >= 4:
        assert {"obvious", "assay", "practice", "identical"} <= set(kinds)
    if count == 22:
        assert (kinds["obvious"], kinds["assay"], kinds["identical"], kinds["practice"], kinds["instruction"]) == (6, 8, 3, 3, 2)


def test_without_instructions_there_are_none(db):
    good = [(factories.sentence(f"Number {chr(97 + k)}.").pk, factories.clip(900 + k)) for k in range(8)]
    made = controls.make(good, {}, 15.0)
    assert len(made) == 8 and {p.kind for p in made}.isdisjoint({"instruction"})


def test_an_instruction_is_on_both_sides_and_says_what_is_expected(db):
    study = factories.study(pairs=0)
    factories.controls(study)
    for pair in study.pairs.filter(kind="instruction"):
        assert pair.reference_id == pair.tested_id and pair.expected in ("left", "same", "right")
        assert clips.samples(pair.reference).samples.size > 2 * RATE


def test_every_sitting_has_its_share_and_no_two_raters_the_same_places():
    plans = [[schedule.kind_at(str(k), place) for place in range(80)] for k in range(50)]
    for plan in plans:
        for sitting in (plan[:40], plan[40:]):
            assert Counter(k for k in sitting if k != "test") == Counter(schedule.MIXED_IN)
    assert len({tuple(p) for p in plans}) == 50
    share = np.mean([[k != "test" for k in plan] for plan in plans], axis=0)
    assert share.min() > 0.02 and share.max() < 0.55  # any place may hold one


def answered(rater, number=1000):
    kinds = []
    while len(kinds) < number and (trial := allocate.next_trial(rater)):
        kinds.append(trial.pair.kind)
        ballot.cast(rater.key, uuid.uuid4(), trial.key, ballot.Answer("same"))
    return kinds


def test_practice_comes_first_and_once_and_controls_come_between_tests(db):
    study = factories.study(pairs=35, votes_per_pair=3)
    factories.controls(study)
    rater = factories.rater()
    kinds = answered(rater)
    assert kinds[:3] == ["practice"] * 3 and "practice" not in kinds[3:]
    assert len(kinds) == 43 and allocate.why_over(rater) == "break"
    assert Counter(kinds[3:]) == Counter({"test": 31, "obvious": 3, "identical": 2, "instruction": 1, "assay": 3}) + Counter()
    Rater.objects.update(breaks=1)
    rest = answered(Rater.objects.get())
    assert rest.count("test") == 4 and rest[-1] == "test"  # controls alone ask nobody's time


def test_studies_without_controls_go_without(db):
    factories.study(pairs=6)
    assert answered(factories.rater()) == ["test"] * 6


def test_a_retired_control_is_played_no_more(db):
    study = factories.study(pairs=35, votes_per_pair=2)
    factories.controls(study)
    study.pairs.exclude(kind="test").update(retired_at="2026-01-01T00:00Z")
    assert set(answered(factories.rater())) == {"test"}


def test_controls_have_a_place_for_everybody_with_their_sides_balanced(db):
    study = factories.study(pairs=40, votes_per_pair=30)
    factories.controls(study)
    for _ in range(6):
        answered(factories.rater())
    for pair in study.pairs.exclude(kind="test"):
        sides = list(pair.trials.values_list("tested_side", flat=True))
        assert len(set(pair.trials.values_list("slot", flat=True))) == len(sides) and abs(2 * sum(sides) - len(sides)) <= 1


def test_the_page_of_a_control_is_that_of_a_test(db):
    study = factories.study(pairs=40, votes_per_pair=30)
    factories.controls(study)
    rater = factories.rater()
    shapes, heads = {}, {}
    while trial := allocate.next_trial(rater):
        said = blind.describe(trial, *allocate.progress(rater))
        sounds = [blind.sound(trial, key) for key in (trial.left_key, trial.right_key)]
        assert len(sounds[0]) == len(sounds[1]) and sounds[0] != sounds[1]
        shapes[trial.pair.kind] = {(k, type(v), len(v) if k in ("trial", "left", "right", "voice") else 0) for k, v in said.items()}
        heads[trial.pair.kind] = sounds[0][:44]
        ballot.cast(rater.key, uuid.uuid4(), trial.key, ballot.Answer("left"))
    assert {"test", "obvious", "identical", "assay", "instruction", "practice"} == set(shapes)
    assert len({frozenset(s) for s in shapes.values()}) == 1


def test_our_control_sentences_are_in_no_corpus_of_ours():
    from gate import corpora

    for language, own in texts._texts().items():
        lines = corpora.read((corpora.BUNDLED / f"{language}.jsonl").read_bytes(), "x.jsonl", language)
        forms = [corpora.plain(t, language) for t in own["sentences"]]
        assert len(set(forms)) == len(forms) == 22
        assert corpora.near_duplicates(forms, [corpora.plain(x.text.text, language) for x in lines]) == []


def test_progress_tells_no_kind(db):
    """How many are done and how many are to come moves alike, whatever was answered."""
    study = factories.study(pairs=35, votes_per_pair=3)
    factories.controls(study)
    rater = factories.rater()
    rater.practised_at = "2026-01-01T00:00Z"
    rater.save()
    said = []
    while trial := allocate.next_trial(rater):
        said.append(allocate.progress(rater))
        ballot.cast(rater.key, uuid.uuid4(), trial.key, ballot.Answer("same"))
    assert [d for d, _ in said] == list(range(40)) and {t for _, t in said} == {40}
    assert Trial.objects.filter(pair__kind=Pair.Kind.ASSAY).exists()
