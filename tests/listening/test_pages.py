from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from listening.models import Rater, Trial
from tests import factories
from tests.listening.test_ballot import at_once, browser

AGREED = {"agree": "yes", "adult": "yes", "native": "yes"}


@pytest.mark.parametrize(
    ("fields", "status", "says"),
    [
        ({"expires_at": timezone.now() - timedelta(days=1)}, 410, "has expired"),
        ({"revoked_at": timezone.now()}, 410, "was withdrawn"),
        ({"max_raters": 0}, 410, "Enough people"),
    ],
)
def test_a_closed_invitation_says_why(db, fields, status, says):
    link = f"/listen/go/{factories.invitation(**fields).token}/"
    for answer in (Client().get(link), Client().post(link, AGREED)):
        assert answer.status_code == status and says in answer.content.decode()
    assert Rater.objects.count() == 0


def test_a_mistyped_invitation_says_what_to_do(db):
    answer = Client().get("/listen/go/wrong/")
    assert answer.status_code == 404 and "Check that the whole link was copied" in answer.content.decode()


def test_without_consent_nobody_goes_on(db):
    link = f"/listen/go/{factories.invitation().token}/"
    answer = Client().post(link, {})
    assert answer.status_code == 422 and "Answer both questions" in answer.content.decode()
    assert Rater.objects.count() == 0


def test_opening_the_link_again_resumes(db):
    factories.study()
    invited = factories.invitation()
    client, link = Client(), f"/listen/go/{invited.token}/"
    client.post(link, AGREED)
    assert client.get("/listen/test/").url == "/listen/check/"
    client.post("/listen/check/", {"headphones": "no"})
    first = client.get("/listen/next").json()
    assert client.get(link).url == "/listen/test/"
    assert client.get("/listen/next").json() == first
    assert Rater.objects.count() == 1 and Rater.objects.get().headphones is False


@pytest.mark.django_db(transaction=True)
def test_the_last_place_of_an_invitation_is_given_once():
    link = f"/listen/go/{factories.invitation(max_raters=1).token}/"
    answers = at_once([lambda: Client().post(link, AGREED).status_code] * 4)
    assert sorted(answers) == [302, 410, 410, 410]
    assert Rater.objects.count() == 1


def test_a_stranger_gets_a_page_and_not_an_error(db):
    for path in ("/listen/", "/listen/check/", "/listen/test/", "/listen/thanks/"):
        answer = Client().get(path)
        assert answer.status_code == 403 and "invitation link" in answer.content.decode()
    assert Client().get("/listen/check/sound").status_code == 404


def test_with_nothing_to_hear_the_rater_is_thanked(db):
    answer = browser(factories.rater()).get("/listen/test/", follow=True)
    assert "Thank you" in answer.content.decode() and Trial.objects.count() == 0


def test_thanks_are_not_said_while_a_trial_waits(db):
    factories.study()
    client = browser(factories.rater())
    client.get("/listen/next")
    assert client.get("/listen/thanks/").url == "/listen/test/"


def test_forms_need_their_token(db):
    link = f"/listen/go/{factories.invitation().token}/"
    assert Client(enforce_csrf_checks=True).post(link, AGREED).status_code == 403
