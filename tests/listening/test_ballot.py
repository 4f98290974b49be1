"""One vote per trial, whoever sends it how often, and quotas that hold when two arrive together."""

import json
import threading
import uuid
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import connections
from django.test import Client
from django.utils import timezone

from listening import allocate, ballot, blind, pairs
from listening.models import Trial, Vote
from tests import factories


def browser(rater):
    client = Client()
    from django.core.signing import get_cookie_signer

    client.cookies[blind.COOKIE] = get_cookie_signer(salt=f"{blind.COOKIE}listening").sign(str(rater.key))
    return client


def post(client, trial, choice="same", vote_id=None, changes=None):
    body = {"id": str(vote_id or uuid.uuid4()), "trial": trial.key, "choice": choice, "log": {}} | (changes or {})
    return client.post("/listen/vote", json.dumps(body), content_type="application/json")


def at_once(jobs):
    """Runs the jobs on threads that start together, each with its own connection."""
    gate, results = threading.Barrier(len(jobs)), [None] * len(jobs)

    def run(k, job):
        try:
            gate.wait()
            results[k] = job()
        except Exception as error:  # noqa: BLE001 - handed to the test
            results[k] = error
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=(k, job)) for k, job in enumerate(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.django_db(transaction=True)
def test_the_same_vote_five_times_in_parallel_is_one_row():
    factories.study()
    rater = factories.rater()
    trial, vote_id = allocate.next_trial(rater), uuid.uuid4()
    answers = at_once([lambda: post(browser(rater), trial, "left", vote_id).status_code] * 5)
    assert sorted(answers) == [200, 200, 200, 200, 201]
    assert Vote.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_five_different_votes_on_one_trial_are_one_row():
    factories.study()
    rater = factories.rater()
    trial = allocate.next_trial(rater)
    answers = at_once([lambda: post(browser(rater), trial, "left").status_code] * 5)
    assert sorted(answers) == [201, 409, 409, 409, 409]
    assert Vote.objects.filter(superseded_at=None).count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_browsers_at_the_last_place_of_a_pair_keep_the_quota():
    study = factories.study(pairs=1, votes_per_pair=1)
    raters = [factories.rater() for _ in range(4)]
    trials = [t for t in at_once([lambda r=r: allocate.next_trial(r) for r in raters]) if t is not None]
    assert [type(t) for t in trials] == [Trial]
    assert Trial.objects.filter(pair__study=study, state="open").count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_lapsed_trial_and_its_replacement_voted_at_once_are_one_vote():
    factories.study(pairs=1, votes_per_pair=1)
    slow, quick = factories.rater(), factories.rater()
    old = allocate.next_trial(slow)
    Trial.objects.filter(pk=old.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    assert pairs.free_lapsed() == 1
    new = allocate.next_trial(quick)
    answers = at_once([lambda: post(browser(slow), old).status_code, lambda: post(browser(quick), new).status_code])
    assert sorted(answers) == [201, 409]
    assert Vote.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_one_rater_in_two_tabs_gets_one_trial():
    factories.study()
    rater = factories.rater()
    trials = at_once([lambda: allocate.next_trial(rater)] * 4)
    assert len({t.pk for t in trials}) == 1


def test_a_late_vote_counts_while_its_place_is_free(db):
    factories.study(pairs=1, votes_per_pair=1)
    rater = factories.rater()
    trial = allocate.next_trial(rater)
    Trial.objects.update(state="lapsed")
    assert ballot.cast(rater.key, uuid.uuid4(), trial.key, ballot.Answer("right")).new is True


def test_a_vote_scores_for_the_side_it_was_heard_on(db):
    factories.study(pairs=4)
    scores = set()
    for choice in ("left", "right", "same"):
        rater = factories.rater()
        trial = allocate.next_trial(rater)
        ballot.cast(rater.key, uuid.uuid4(), trial.key, ballot.Answer(choice))
        scores.add((choice, trial.tested_side, Vote.objects.get(trial=trial).score))
    for choice, side, score in scores:
        assert score == (0 if choice == "same" else 1 if (choice == "right") == (side == 1) else -1)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"choice": "both"}, 422, "bad_choice"),
        ({"choice": None}, 422, "bad_choice"),
        ({"trial": "nobody-knows-it"}, 404, "not_yours"),
        ({"id": "not-a-uuid"}, 400, "not_a_vote"),
        ({"log": "text"}, 400, "bad_log"),
        ({"log": {"x": "y" * 5000}}, 400, "bad_log"),
        ({"log": {"x": "y" * 20000}}, 413, "too_large"),
    ],
)
def test_what_is_not_a_vote_is_refused_and_nothing_is_stored(db, body, status, code):
    factories.study()
    rater = factories.rater()
    answer = post(browser(rater), allocate.next_trial(rater), changes=body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert Vote.objects.count() == 0 and Trial.objects.get().state == "open"


def test_text_that_is_not_json_is_refused(db):
    rater = factories.rater()
    assert browser(rater).post("/listen/vote", "{", content_type="application/json").status_code == 400
    for body in ("[1]", '{"id": NaN}', "[" * 100_000, '{"trial": "a\\u0000"}', "\0"):
        answer = browser(rater).post("/listen/vote", body, content_type="application/json")
        assert answer.status_code in (400, 413), body[:20]


def test_a_log_that_no_database_can_hold_is_refused(db):
    factories.study()
    rater = factories.rater()
    trial = allocate.next_trial(rater)
    for log in ('{"x": NaN}', '{"x": Infinity}', '{"x": "\\u0000"}'):
        body = f'{{"id": "{uuid.uuid4()}", "trial": "{trial.key}", "choice": "same", "log": {log}}}'
        assert browser(rater).post("/listen/vote", body, content_type="application/json").status_code == 400
    assert Vote.objects.count() == 0


def test_a_vote_for_somebody_elses_trial_is_refused(db):
    factories.study()
    mine, other = factories.rater(), factories.rater()
    trial = allocate.next_trial(other)
    answer = post(browser(mine), trial)
    assert (answer.status_code, answer.json()["code"]) == (404, "not_yours")


def test_a_number_used_for_another_trial_is_refused(db):
    factories.study()
    rater, used = factories.rater(), uuid.uuid4()
    ballot.cast(rater.key, used, allocate.next_trial(rater).key, ballot.Answer("same"))
    answer = post(browser(rater), allocate.next_trial(rater), vote_id=used)
    assert (answer.status_code, answer.json()["code"]) == (409, "id_reused")


def test_a_vote_after_the_study_closed_is_refused(db):
    study = factories.study()
    rater = factories.rater()
    trial = allocate.next_trial(rater)
    pairs.close(study)
    assert post(browser(rater), trial).status_code == 409
    assert Vote.objects.count() == 0


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_hundred_raters_vote_at_once_and_every_vote_is_there_once():
    study = factories.study(pairs=25, votes_per_pair=8)
    raters = [factories.rater() for _ in range(100)]
    server = threading.BoundedSemaphore(32)  # as many requests in work as a server has threads: a database admits no hundred of them

    def sit(rater):
        client, sent = browser(rater), []
        for _ in range(2):
            with served():
                trial = client.get("/listen/next").json()
            assert not trial.get("finished"), trial
            body = {"id": str(uuid.uuid4()), "trial": trial["trial"], "choice": "same", "log": {}}
            for _ in range(2):  # every vote is sent twice
                with served():
                    sent.append(client.post("/listen/vote", json.dumps(body), content_type="application/json").status_code)
        return sent

    @contextmanager
    def served():
        with server:
            try:
                yield
            finally:
                connections.close_all()

    answers = at_once([lambda rater=rater: sit(rater) for rater in raters])
    assert answers == [[201, 200, 201, 200]] * 100
    assert Vote.objects.count() == 200 and Trial.objects.filter(state="voted").count() == 200
    counts = [p.trials.filter(state="voted").count() for p in study.pairs.all()]
    assert counts == [8] * 25
