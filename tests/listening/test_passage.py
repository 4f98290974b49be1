"""The way to the test and from it: consent, screening, language test, platforms, another device, being forgotten."""

import json
import re
import uuid
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from listening import allocate, ballot, passage, platforms
from listening.models import Consent, Panel, Qualification, Rater, Trial, Vote, Word
from synth import pcm
from tests import factories
from tests.listening.test_ballot import at_once, browser, post
from tests.listening.test_pages import AGREED

PID = {"PROLIFIC_PID": "5f1e", "STUDY_ID": "study-1"}


def welcome(client=None, params="", form=None, **fields):
    client = client or Client()
    invited = factories.invitation(**fields)
    return client, client.post(f"/listen/go/{invited.token}/{params}", AGREED | (form or {})), invited


@pytest.mark.parametrize(("said", "why", "words"), [({"adult": "no"}, "age", "18 or older"), ({"native": "no"}, "language", "grew up")])
def test_who_may_not_or_can_not_judge_is_thanked_and_gets_the_screened_out_code(db, said, why, words):
    factories.study()
    client, answer, _ = welcome(form=said | PID)
    assert answer.url == "/listen/thanks/"
    page = client.get("/listen/thanks/").content.decode()
    rater = Rater.objects.get()
    assert words in page and rater.screened_out_for == why and platforms.code(rater, "screened") in page
    assert client.get("/listen/next").status_code == 403 and Trial.objects.count() == 0
    assert client.get("/listen/test/").url == "/listen/thanks/"


@pytest.mark.parametrize("form", [{"adult": "maybe"}, {"native": ""}, {"agree": ""}])
def test_a_form_that_is_not_filled_in_keeps_what_was_said(db, form):
    _, answer, _ = welcome(form=form)
    assert answer.status_code == 422 and Rater.objects.count() == 0
    assert "checked" in answer.content.decode()


def test_consent_is_stored_with_its_version_and_language(db):
    client = Client()
    client.post("/listen/language", {"language": "hi"})
    welcome(client)
    assert [(c.version, c.language) for c in Consent.objects.all()] == [(passage.CONSENT_VERSION, "hi")]


# -- the language of the pages ------------------------------------------------------------------------------------------


def test_a_language_is_chosen_and_kept_and_a_wrong_one_ignored(db):
    client = Client()
    assert client.post("/listen/language", {"language": "ja", "back": "/listen/check/"}).url == "/listen/check/"
    assert 'lang="ja"' in client.get("/listen/").content.decode()
    assert client.post("/listen/language", {"language": "xx", "back": "https://elsewhere.example/"}).url == "/listen/"
    assert client.post("/listen/language", {"language": "en", "back": "/listen/\\evil"}).url == "/listen/"


# -- the language test --------------------------------------------------------------------------------------------------


def words(engineers, count=6):
    panel = Panel.objects.get_or_create(language="en")[0]
    made = [Word.objects.create(panel=panel, clip=factories.clip(800 + k), said=f"said{k}", other=f"other{k}") for k in range(count)]
    for word in made:
        word.approved_by.set(engineers)
    return made


@pytest.fixture
def engineers(django_user_model, db):
    return [django_user_model.objects.create_user(name, password="a long enough secret") for name in ("ann", "bob")]  # noqa: S106


def test_without_approved_words_a_rater_is_self_declared(db, engineers):
    words(engineers[:1])
    rater = factories.rater()
    assert passage.step(rater) == "test" and Qualification.objects.get().method == "self-declared"


def test_who_knows_the_words_goes_on_and_who_does_not_is_let_go(db, engineers):
    asked = words(engineers)
    for right, url in ((5, "/listen/test/"), (4, "/listen/thanks/")):
        factories.study(first_clip=10 * right)
        rater = factories.rater()
        client = browser(rater)
        assert client.get("/listen/test/").url == "/listen/words/"
        page = client.get("/listen/words/").content.decode()
        assert page.count("<fieldset") == 6 and client.get(f"/listen/words/{asked[0].pk}").status_code == 200
        form = {f"word-{w.pk}": w.said if k < right else w.other for k, w in enumerate(asked)}
        assert client.post("/listen/words/", form).url == url
        found = rater.qualifications.get()
        assert (found.method, found.right, found.asked, found.passed) == ("tested", right, 6, right >= 5)


def test_an_unfinished_or_invented_answer_is_asked_for_again(db, engineers):
    asked = words(engineers)
    client = browser(factories.rater())
    form = {f"word-{w.pk}": w.said for w in asked}
    assert client.post("/listen/words/", form | {f"word-{asked[0].pk}": "else"}).status_code == 422
    assert client.post("/listen/words/", dict(list(form.items())[:3])).status_code == 422
    assert Qualification.objects.count() == 0


def test_a_qualification_lapses_after_ninety_days(db, engineers):
    words(engineers)
    rater = factories.rater()
    made = Qualification.objects.create(rater=rater, method="tested", passed=True, right=6, asked=6)
    assert passage.step(rater) == "test"
    Qualification.objects.filter(pk=made.pk).update(at=timezone.now() - timedelta(days=91))
    assert passage.step(rater) == "words"


def test_words_are_uploaded_and_approved_by_two_people(engineers):
    import numpy as np

    Panel.objects.create(language="en")
    ann, bob = Client(), Client()
    ann.force_login(engineers[0])
    bob.force_login(engineers[1])
    sound = pcm.encode_flac((0.1 * np.sin(np.arange(12000) / 9)).astype(np.float32), 24000)

    def upload(data, **fields):
        form = {"file": SimpleUploadedFile("w.flac", data), "said": "ship", "other": "sheep", "contrast": "vowel"}
        return ann.post("/panels/en/", form | fields)

    assert "The recording was refused" in upload(b"no sound").content.decode()
    assert "The two words are the same" in upload(sound, other="ship").content.decode()
    assert upload(sound).status_code == 302 and "is there already" in upload(sound).content.decode()
    word = Word.objects.get()
    for client in (ann, ann, bob):
        client.post(f"/words/{word.pk}", {"do": "approve"})
    assert word.approved_by.count() == 2 and "2 of 2" in ann.get("/panels/en/").content.decode()
    assert ann.get(f"/words/{word.pk}.flac").status_code == 200 and Client().get("/panels/en/").status_code == 302


# -- crowd platforms ----------------------------------------------------------------------------------------------------


def test_the_same_worker_is_the_same_rater_from_any_browser(db):
    factories.study()
    invited = factories.invitation()
    for _ in range(2):
        client = Client()
        page = client.get(f"/listen/go/{invited.token}/", PID)
        if page.status_code == 200:
            assert 'name="PROLIFIC_PID" value="5f1e"' in page.content.decode()
            client.post(f"/listen/go/{invited.token}/", AGREED | PID)
        else:
            assert page.url == "/listen/check/"
    assert Rater.objects.count() == 1 and Rater.objects.get().platform == "prolific"
    Client().post(f"/listen/go/{invited.token}/", AGREED | PID | {"PROLIFIC_PID": "other"})
    Client().post(f"/listen/go/{invited.token}/", AGREED | PID | {"STUDY_ID": "study-2"})
    assert Rater.objects.count() == 3


@pytest.mark.django_db(transaction=True)
def test_two_windows_of_one_worker_make_one_rater():
    link = f"/listen/go/{factories.invitation().token}/"
    answers = at_once([lambda: Client().post(link, AGREED | PID).status_code] * 4)
    assert answers == [302] * 4 and Rater.objects.count() == 1


def test_a_preview_shows_what_it_is_and_allocates_nothing(db):
    factories.study()
    answer = Client().get(f"/listen/go/{factories.invitation().token}/?assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE&hitId=h")
    assert "This is a preview" in answer.content.decode() and "X-Frame-Options" not in answer
    assert Rater.objects.count() == 0


def test_inside_a_platforms_page_the_test_opens_in_its_own_tab(db):
    invited = factories.invitation()
    page = Client().get(f"/listen/go/{invited.token}/?assignmentId=a1&workerId=w1&hitId=h1").content.decode()
    link = re.search(r'href="(/listen/go/[^"]+)"', page)[1].replace("&amp;", "&")
    assert 'target="_blank"' in page and "workerId=w1" in link and "assignmentId" not in link
    assert Client().get(link).status_code == 200


@pytest.mark.parametrize("who", ["", "a b", "x" * 101, "<script>"])
def test_a_name_no_platform_gives_is_nobodys(db, who):
    factories.study()
    welcome(form={"PROLIFIC_PID": who})
    assert Rater.objects.get().platform == ""


def test_a_code_comes_only_after_the_last_answer_is_stored(db):
    factories.study(pairs=2)
    client, _, _ = welcome(form=PID, return_url="https://crowd.example/done?cc={code}")
    client.post("/listen/check/", {"headphones": "yes"})
    rater = Rater.objects.get()
    code = platforms.code(rater, "complete")
    seen = []
    while not (trial := client.get("/listen/next").json()).get("finished"):
        assert client.get("/listen/thanks/").url == "/listen/test/"
        seen.append(post(client, Trial.objects.get(key=trial["trial"])).status_code)
    page = client.get("/listen/thanks/").content.decode()
    assert seen == [201, 201] and code in page and f"https://crowd.example/done?cc={code}" in page
    assert client.get("/listen/thanks/").content.decode().count(code) == page.count(code)  # the same at every visit
    assert len({platforms.code(rater, o) for o in platforms.OUTCOMES}) == 3


def test_who_finds_nothing_left_gets_the_full_code_and_the_platforms_own_codes_are_used(db):
    client, _, _ = welcome(form=PID, code_full="C0FULL")
    client.post("/listen/check/", {"headphones": "yes"})
    page = client.get("/listen/test/", follow=True).content.decode()
    assert "nothing left for you" in page and "C0FULL" in page


# -- another device, and being forgotten --------------------------------------------------------------------------------


def test_a_rater_goes_on_on_another_device_at_the_same_trial(db):
    factories.study()
    rater = factories.rater()
    first = browser(rater)
    trial = first.get("/listen/next").json()
    link = first.get("/listen/elsewhere").json()["link"]
    second = Client()
    assert second.get(link).url == "/listen/test/" and second.get("/listen/next").json() == trial
    assert Client().get(link[:-4] + "abc/").status_code == 404
    assert post(second, Trial.objects.get(key=trial["trial"])).status_code == 201
    assert post(first, Trial.objects.get(key=trial["trial"])).status_code == 409


def test_what_points_to_a_rater_is_deleted_and_open_answers_are_withdrawn(db):
    closed, open_ = factories.study(pairs=1), factories.study(pairs=1, first_clip=5)
    client, _, invited = welcome(form=PID)
    client.post("/listen/check/", {"headphones": "yes"})
    while not (trial := client.get("/listen/next").json()).get("finished"):
        post(client, Trial.objects.get(key=trial["trial"]), changes={"log": {"client": {"agent": "a phone"}}})
    closed.open = False
    closed.save()
    assert client.get("/listen/erase/").status_code == 200
    assert "Your data is deleted" in client.post("/listen/erase/").content.decode()
    rater = Rater.objects.get()
    assert (rater.external_id, rater.platform, Consent.objects.count()) == ("", "", 0) and rater.erased_at
    assert "a phone" not in str(list(Vote.objects.values_list("log", flat=True)))
    assert [v.trial.pair.study_id for v in Vote.objects.filter(superseded_at=None)] == [closed.pk] and open_.pk
    assert client.get("/listen/").status_code == 403
    assert Client().get(f"/listen/go/{invited.token}/", PID).status_code == 200  # a stranger again


# -- undo, breaks, sound that can't be had ------------------------------------------------------------------------------


def test_the_last_answer_can_be_taken_back_and_no_other(db):
    factories.study(pairs=4)
    rater = factories.rater()
    client = browser(rater)
    first = allocate.next_trial(rater)
    post(client, first)
    second = allocate.next_trial(rater)
    ahead = allocate.trial_ahead(rater)
    assert ahead.pk not in (first.pk, second.pk)

    def undo(trial):
        return client.post("/listen/undo", {"trial": trial.key}, content_type="application/json")

    assert undo(second).status_code == 409
    answer = undo(first)
    assert answer.status_code == 200 and answer.json()["trial"] == first.key
    assert Vote.objects.get().superseded_at and allocate.next_trial(rater).pk == first.pk
    assert undo(first).status_code == 409
    assert post(client, first, "right").status_code == 201
    assert [v.choice for v in Vote.objects.filter(superseded_at=None)] == ["right"]
    seen = []
    while trial := allocate.next_trial(rater):
        seen.append(trial.pk)
        post(client, trial)
    assert sorted(seen) == sorted({second.pk, ahead.pk, *seen}) and len(seen) == 3


def test_nothing_is_undone_once_its_study_is_closed(db):
    study = factories.study(pairs=2)
    rater = factories.rater()
    trial = allocate.next_trial(rater)
    ballot.cast(rater.key, uuid.uuid4(), trial.key, ballot.Answer("left"))
    study.open = False
    study.save()
    with pytest.raises(ballot.NotTaken):
        ballot.undo(rater, trial.key)


def test_sound_that_can_not_be_had_is_no_vote_and_goes_to_somebody_else(db):
    factories.study(pairs=1, votes_per_pair=1)
    rater = factories.rater()
    trial = allocate.next_trial(rater)
    answer = browser(rater).post("/listen/undeliverable", {"trial": trial.key}, content_type="application/json")
    assert answer.json() == {"returned": True} and allocate.next_trial(rater) is None
    assert allocate.next_trial(factories.rater()).pair == trial.pair and Vote.objects.count() == 0


def test_the_trial_ahead_is_the_next_one_and_is_promoted(db):
    factories.study(pairs=3)
    rater = factories.rater()
    client = browser(rater)
    now = client.get("/listen/next").json()
    ahead = client.get("/listen/ahead").json()
    assert client.get("/listen/ahead").json() == ahead and ahead["trial"] != now["trial"]
    assert client.get(ahead["left"]).status_code == 200
    post(client, Trial.objects.get(key=now["trial"]))
    assert client.get("/listen/next").json()["trial"] == ahead["trial"]


def test_a_cloned_voice_can_be_compared_with_its_speaker(db):
    study = factories.study(pairs=1)
    rater = factories.rater()
    trial = browser(rater).get("/listen/next").json()
    assert trial["voice"] == "" and browser(rater).get(trial["left"].replace("sound", "voice")).status_code == 404
    study.voice = factories.clip(990)
    study.save()
    trial = browser(rater).get("/listen/next").json()
    assert browser(rater).get(trial["voice"]).headers["Content-Type"] == "audio/wav"
    assert browser(factories.rater()).get(trial["voice"]).status_code == 404


def test_ten_megabytes_of_text_are_no_answer(db):
    factories.study()
    rater = factories.rater()
    trial = allocate.next_trial(rater)
    body = json.dumps({"id": str(uuid.uuid4()), "trial": trial.key, "choice": "left", "log": {"x": "y" * 10_000_000}})
    answer = browser(rater).post("/listen/vote", body, content_type="application/json")
    assert answer.status_code == 413 and Vote.objects.count() == 0


def test_no_code_is_shown_while_something_is_left_to_hear(db):
    """Neither before the first answer nor between two, whoever opens the last page by hand."""
    factories.study(pairs=3)
    client, _, _ = welcome(form=PID)
    client.post("/listen/check/", {"headphones": "yes"})
    rater = Rater.objects.get()
    codes = [platforms.code(rater, o) for o in platforms.OUTCOMES]

    def shown():
        page = client.get("/listen/thanks/", follow=True).content.decode()
        return [c for c in codes if c in page]

    assert shown() == []
    trial = client.get("/listen/next").json()
    post(client, Trial.objects.get(key=trial["trial"]))
    assert shown() == []


def test_a_trial_opened_as_its_study_closed_does_not_stand_in_the_way(db):
    closed = factories.study(pairs=1)
    rater = factories.rater()
    allocate.next_trial(rater)
    type(closed).objects.filter(pk=closed.pk).update(open=False)
    factories.study(pairs=1, first_clip=5)
    assert allocate.next_trial(rater).pair.study_id != closed.pk


@pytest.mark.parametrize("log", ['{"seconds": 1' + "0" * 400 + "}", '{"client": {"agent": "\\ud800"}}'])
def test_numbers_and_texts_no_database_takes_break_nothing(db, log):
    factories.study()
    rater = factories.rater()
    trial = allocate.next_trial(rater)
    body = f'{{"id": "{uuid.uuid4()}", "trial": "{trial.key}", "choice": "left", "log": {log}}}'
    assert browser(rater).post("/listen/vote", body, content_type="application/json").status_code in (201, 400)
    assert browser(rater).post("/listen/check/", {"tones": "\u00b2"}).status_code == 302


def test_nothing_new_is_given_before_the_language_test(db, engineers):
    factories.study()
    words(engineers)
    assert browser(factories.rater()).get("/listen/next").status_code == 403
