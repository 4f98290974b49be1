"""One person, however often they come; who may speak for them; others in their place; sound that does not arrive."""

import uuid
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from listening import allocate, ballot, blind, pairs, passage, screening
from listening.models import Consent, Exclusion, Pair, Qualification, Rater, Trial, Vote
from listening.schedule import SITTING
from listening.screening import Rules
from tests import factories
from tests.listening.test_ballot import at_once, browser, post
from tests.listening.test_controls import answered
from tests.listening.test_pages import AGREED

MTURK = {"workerId": "A1B2"}


def arrive(hit, client=None):
    client = client or Client()
    client.post(f"/listen/go/{factories.invitation().token}/", AGREED | MTURK | {"hitId": hit})
    rater = Rater.objects.get(external_study=hit)
    Rater.objects.filter(pk=rater.pk).update(sound_checked_at=timezone.now())
    return Rater.objects.get(pk=rater.pk), client


def test_a_worker_under_two_studies_of_a_platform_is_one_listener(db):
    study = factories.study(pairs=3, votes_per_pair=4)
    (one, _), (two, _), (three, _) = arrive("hit-1"), arrive("hit-2"), arrive("hit-3")
    assert len({one.pk, two.pk, three.pk}) == 3 and {r.person for r in (one, two, three)} == {one.pk}
    answered(one, 2)
    heard = set(Trial.objects.filter(rater=one).values_list("pair", flat=True))
    last = allocate.next_trial(three)
    assert last.pair_id not in heard
    ballot.cast(three.key, uuid.uuid4(), last.key, ballot.Answer("left"))
    assert allocate.next_trial(two) is None and not allocate.something_left(two)
    assert {v.rater for v in pairs.standing_votes(study)} == {one.pk}
    assert screening.records([one.pk])[one.pk].answers == 3
    Exclusion.objects.create(rater=three, rule="asked_to")
    assert screening.excluded({one.pk}, Rules()) == {one.pk: "asked_to"}


def test_who_is_known_by_a_platforms_link_alone_may_go_on_but_not_delete(db):
    factories.study()
    rater, own = arrive("hit-1")
    other = Client()
    params = "&".join(f"{k}={v}" for k, v in (MTURK | {"hitId": "hit-1"}).items())
    assert other.get(f"/listen/go/{rater.invitation.token}/?{params}").status_code == 302
    assert other.get("/listen/test/").status_code == 200
    assert other.get("/listen/erase/").status_code == 403 and other.post("/listen/erase/").status_code == 403
    assert Rater.objects.get(pk=rater.pk).erased_at is None
    assert other.get("/listen/elsewhere").status_code == 404 and b"show-link" not in other.get("/listen/test/").content
    # The link the rater made in the first browser proves it, and a platform's link does not take that away again.
    link = own.get("/listen/elsewhere").json()["link"]
    other.get(link.replace("http://testserver", ""))
    other.get(f"/listen/go/{rater.invitation.token}/?{params}")
    assert other.get("/listen/erase/").status_code == 200
    assert own.post("/listen/erase/").status_code == 200 and Rater.objects.get(pk=rater.pk).erased_at


def test_a_late_answer_whose_place_is_taken_is_refused_whatever_it_was_on(db):
    study = factories.study(pairs=1, votes_per_pair=1)
    control = Pair.objects.create(
        study=study, kind="obvious", sentence=factories.sentence("Another one."), reference=factories.clip(50), tested=factories.clip(51),
        first_side=0,
    )  # fmt: skip
    late, quick = factories.rater(), factories.rater()
    for pair in (control, study.pairs.get(kind="test")):
        old = Trial.objects.create(pair=pair, rater=late, slot=0, tested_side=0, state="lapsed", lease_until=timezone.now())
        Trial.objects.create(pair=pair, rater=quick, slot=0, tested_side=0, state="voted", lease_until=timezone.now())
        with pytest.raises(ballot.NotTaken, match="Somebody else"):  # or the answer would tell a control from a test
            ballot.cast(late.key, uuid.uuid4(), old.key, ballot.Answer("left"))


def test_a_comparison_that_was_given_back_takes_no_answer(db):
    factories.study()
    rater = factories.rater()
    trial = allocate.next_trial(rater)
    allocate.give_back(trial)
    assert post(browser(rater), trial).status_code == 409 and Vote.objects.count() == 0


def test_who_gives_everything_back_is_asked_to_come_from_elsewhere(db):
    factories.study(pairs=12)
    rater = factories.rater()
    client = browser(rater)
    for _ in range(allocate.UNDELIVERED):
        key = client.get("/listen/next").json()["trial"]
        client.post("/listen/undeliverable", {"trial": key}, content_type="application/json")
    assert client.get("/listen/next").json()["finished"] == "sound"
    page = client.get("/listen/test/")
    assert page.status_code == 200 and "The recordings don't reach you" in page.content.decode()
    Trial.objects.update(created_at=timezone.now() - timedelta(hours=2))
    assert "trial" in client.get("/listen/next").json()


def test_others_are_asked_in_place_of_who_does_not_count_on_the_same_sides(db):
    study = factories.study(pairs=2, votes_per_pair=1)
    out, other = factories.rater(), factories.rater()
    answered(out)
    before = dict(Trial.objects.values_list("pair", "tested_side"))
    assert allocate.next_trial(other) is None and pairs.votes_cast(study) == 2
    assert screening.stand_in(study, Rules()) == 0
    Exclusion.objects.create(rater=out, rule="asked_to")
    assert screening.stand_in(study, Rules()) == 2 and pairs.votes_cast(study) == 0
    answered(other)
    assert dict(Trial.objects.filter(rater=other).values_list("pair", "tested_side")) == before
    assert pairs.votes_cast(study) == 2 and len(pairs.standing_votes(study)) == 4
    assert screening.stand_in(study, Rules()) == 0
    third = factories.rater()
    Exclusion.objects.create(rater=other, rule="asked_to")
    assert screening.stand_in(study, Rules()) == 2
    answered(third)
    for pair, side in before.items():  # three who stood in one place heard it on one side
        slots = Trial.objects.filter(pair=pair).values_list("slot", "tested_side")
        assert {s for _, s in slots} == {side} and len({slot for slot, _ in slots}) == 3
    # Who counts again while somebody sits in their place stays beside it, and out of the endpoint; else they are taken back.
    Exclusion.objects.update(lifted_at=timezone.now())
    assert screening.stand_in(study, Rules()) == 0
    assert [v.beside for v in pairs.standing_votes(study)].count(False) == 2
    Exclusion.objects.create(rater=third, rule="asked_to")
    assert screening.stand_in(study, Rules()) >= 2 and pairs.votes_cast(study) in (0, 2)
    screening.stand_in(study, Rules())
    assert {v.rater for v in pairs.standing_votes(study) if not v.beside} <= {out.pk, other.pk} and pairs.votes_cast(study) == 2


def test_an_answer_whose_sound_stuttered_leaves_its_place_to_another(db):
    study = factories.study(pairs=1, votes_per_pair=1)
    rater = factories.rater()
    trial = allocate.next_trial(rater)
    ballot.cast(rater.key, uuid.uuid4(), trial.key, ballot.Answer("left", log={"glitches": 4}))
    assert [v.glitches for v in pairs.standing_votes(study)] == [4]
    assert screening.stand_in(study, Rules(glitches=4)) == 0 and screening.stand_in(study, Rules()) == 1
    assert allocate.next_trial(factories.rater()).slot == 0


def test_a_break_that_was_missed_comes_at_the_next_comparison_and_only_once(db):
    factories.study(pairs=3)
    rater = factories.rater()
    for k in range(2 * SITTING + 1):
        pair = Pair.objects.create(
            study=Pair.objects.first().study, sentence=factories.sentence(f"Sentence number {k}."), reference=factories.clip(100 + k),
            tested=factories.clip(400 + k), first_side=0,
        )  # fmt: skip
        Trial.objects.create(pair=pair, rater=rater, slot=0, tested_side=0, state="voted", lease_until=timezone.now())
    client = browser(rater)
    assert client.get("/listen/next").json()["finished"] == "break"
    client.post("/listen/rested", {}, content_type="application/json")
    assert Rater.objects.get(pk=rater.pk).breaks == 2 and "trial" in client.get("/listen/next").json()


def test_who_has_given_all_answers_wanted_is_not_asked_for_what_was_left_lying(db):
    factories.study(pairs=4)
    rater = factories.rater()
    rater.invitation.answers_wanted = 2
    rater.invitation.save()
    lying = allocate.next_trial(rater)
    Trial.objects.filter(pk=lying.pk).update(state="lapsed")
    for pair in Pair.objects.exclude(pk=lying.pair_id)[:2]:
        Trial.objects.create(pair=pair, rater=rater, slot=0, tested_side=0, state="voted", lease_until=timezone.now())
    assert allocate.next_trial(Rater.objects.get(pk=rater.pk)) is None


def test_who_only_said_they_know_the_language_is_tested_once_there_is_a_test(db, django_user_model):
    from tests.listening.test_passage import words

    factories.study()
    rater = factories.rater()
    assert passage.step(rater) == "test" and rater.qualifications.get().method == Qualification.Method.DECLARED
    assert passage.step(rater) == "test" and rater.qualifications.count() == 1
    words([django_user_model.objects.create_user(n) for n in "ab"])
    assert passage.step(rater) == "words"
    Qualification.objects.create(rater=rater, method=Qualification.Method.TESTED, passed=True)
    assert passage.step(rater) == "test"


def test_the_same_work_is_done_for_a_test_as_for_a_control(db):
    """An answer that takes one query more for a control would tell it by its time."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    study = factories.study(pairs=30, votes_per_pair=3)
    factories.controls(study)
    rater = factories.rater()
    Rater.objects.update(practised_at=timezone.now())
    rater.refresh_from_db()
    counts = {}
    for _ in range(12):
        with CaptureQueriesContext(connection) as seen:
            trial = allocate.next_trial(rater)
        counts.setdefault(trial.pair.kind == "test", set()).add(len(seen))
        ballot.cast(rater.key, uuid.uuid4(), trial.key, ballot.Answer("same"))
    assert len(counts) == 2 and counts[True] & counts[False]


def test_a_name_in_a_link_to_another_language_opens_nobody(db):
    factories.study()
    factories.study(language="hi")
    rater, _ = arrive("hit-1")
    other = Client()
    form = AGREED | MTURK | {"hitId": "hit-1"}
    assert other.post(f"/listen/go/{factories.invitation(language='hi').token}/", form).status_code == 409
    assert other.get("/listen/erase/").status_code == 403 and Rater.objects.count() == 1


def test_being_forgotten_covers_every_visit(db):
    factories.study()
    (_, client), _ = arrive("hit-1"), arrive("hit-2")
    assert client.post("/listen/erase/").status_code == 200
    assert set(Rater.objects.values_list("external_id", "platform")) == {("", "")}
    assert not Rater.objects.filter(erased_at=None).exists() and not Consent.objects.exists()


def test_who_was_screened_out_stays_so_under_the_next_study(db):
    factories.study()
    Client().post(f"/listen/go/{factories.invitation().token}/", AGREED | MTURK | {"hitId": "hit-1", "adult": "no"})
    again, _ = arrive("hit-2")
    assert again.screened_out_for == "age" and passage.step(again) == "thanks"


@pytest.mark.django_db(transaction=True)
def test_one_person_on_two_visits_at_once_is_not_given_a_pair_twice():
    factories.study(pairs=2, votes_per_pair=9)
    for _ in range(4):
        (one, _), (two, _) = arrive(f"hit-{Rater.objects.count()}"), arrive(f"hit-{Rater.objects.count()}")
        at_once([lambda r=r: allocate.next_trial(r) for r in (one, two)])
        heard = list(Trial.objects.filter(rater__in=one.visits()).values_list("pair", flat=True))
        assert len(heard) == len(set(heard))


def test_a_page_that_somebody_else_left_open_sends_nothing_under_this_name(db):
    factories.study()
    mine, other = factories.rater(), factories.rater()
    trial = allocate.next_trial(mine)
    body = {"id": str(uuid.uuid4()), "trial": trial.key, "choice": "same", "log": {}}
    for key, status in ((other.key, 403), (mine.key, 201)):
        answer = browser(mine).post("/listen/vote", body, content_type="application/json", headers={"X-Listener": blind.outbox_of(key)})
        assert answer.status_code == status
    assert browser(mine).get("/listen/next", headers={"X-Listener": blind.outbox_of(other.key)}).status_code == 403


def test_an_answer_that_meets_its_raters_deletion_does_not_count(db):
    factories.study()
    rater = factories.rater()
    trial = allocate.next_trial(rater)
    shown = ballot._shown(rater.key, trial.key)
    passage.erase(rater)
    assert not ballot._write(shown, {"id": uuid.uuid4(), "trial": trial.pk, "choice": "left"}) and Vote.objects.count() == 0
