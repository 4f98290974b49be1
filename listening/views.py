"""The rater's pages: parse, call one verb, answer."""

from __future__ import annotations

import json
import uuid

from django.db import transaction
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from listening import allocate, audio, ballot, blind
from listening.models import Consent, Invitation, Rater, Trial
from synth import clips

CONSENT_VERSION = "2026-11"


def _problem(request: HttpRequest, title: str, text: str, status: int) -> HttpResponse:
    return render(request, "listening/problem.html", {"title": title, "text": text}, status=status)


def _unknown(request: HttpRequest) -> HttpResponse:
    return _problem(request, _("We don't know you yet"), _("Open the invitation link you were sent, in this browser."), 403)


@require_GET
@blind.sealed
def home(request: HttpRequest) -> HttpResponse:
    rater = blind.known(request)
    return redirect("listening:test") if rater else _unknown(request)


@require_http_methods(["GET", "POST"])
@blind.sealed
def welcome(request: HttpRequest, token: str) -> HttpResponse:
    """The invitation: what this is, and consent. A browser that is known goes on where it was."""
    invitation = Invitation.objects.filter(token=token).select_related("panel").first()
    if invitation is None:
        text = _("Check that the whole link was copied, or ask the person who sent it.")
        return _problem(request, _("This link doesn't work"), text, 404)
    rater = blind.known(request)
    if rater and rater.panel_id == invitation.panel_id:
        return redirect("listening:test")
    closed = invitation.why_closed()
    if closed:
        texts = {
            "revoked": _("This invitation was withdrawn. Ask the person who sent it for a new one."),
            "expired": _("This invitation has expired. Ask the person who sent it for a new one."),
            "full": _("Enough people have taken this invitation. Thank you for coming."),
        }
        return _problem(request, _("This invitation is closed"), texts[closed], 410)
    if request.method == "GET" or "agree" not in request.POST:
        return render(request, "listening/welcome.html", {"missed": request.method == "POST", "language": invitation.panel.language})
    rater = _admit(invitation)
    if rater is None:
        return _problem(request, _("This invitation is closed"), _("Enough people have taken this invitation. Thank you for coming."), 410)
    response = redirect("listening:check")
    blind.remember(response, rater, request.is_secure())
    return response


@transaction.atomic
def _admit(invitation: Invitation) -> Rater | None:
    """A new rater, unless the last place went to somebody else a moment ago."""
    locked = Invitation.objects.select_for_update().get(pk=invitation.pk)
    if locked.why_closed():
        return None
    rater = Rater.objects.create(panel_id=locked.panel_id, invitation=locked)
    Consent.objects.create(rater=rater, version=CONSENT_VERSION, language=translation.get_language() or "en")
    return rater


@require_http_methods(["GET", "POST"])
@blind.sealed
def check(request: HttpRequest) -> HttpResponse:
    """Headphones and volume; what they say is kept, nobody is turned away."""
    rater = blind.known(request)
    if rater is None:
        return _unknown(request)
    if request.method == "POST":
        rater.sound_checked_at, rater.headphones = timezone.now(), request.POST.get("headphones") == "yes"
        rater.save(update_fields=["sound_checked_at", "headphones"])
        return redirect("listening:test")
    return render(request, "listening/check.html", {"has_sample": rater.panel.sample_id is not None})


@require_GET
@blind.sealed
def check_sound(request: HttpRequest) -> HttpResponse:
    """A word at the level of the test, from no pair of it."""
    rater = blind.known(request)
    if rater is None or rater.panel.sample is None:
        raise Http404
    sample = clips.samples(rater.panel.sample)
    gains = audio.gains(sample, sample) or (0.0, 0.0)
    return HttpResponse(audio.copy(sample, gains[0], audio.frames_for(sample), str(rater.key)), content_type="audio/wav")


def _words() -> dict[str, object]:
    """What the page's script says."""
    return {
        "play": {"left": _("Play the first"), "right": _("Play the second")},
        "heard": _("heard"),
        "loading": _("Loading the sound ..."),
        "listen": _("Listen to both to the end, then answer."),
        "answer": _("Choose one of the three answers."),
        "retrying": _("The connection is slow; still trying ..."),
        "missing": _("This sound could not be loaded; trying again ..."),
        "refused": _("That comparison was closed meanwhile; here is the next one."),
        "waiting": _("1 answer waiting to be sent"),
        "count": _("{n} of {all}"),
    }


@require_GET
@ensure_csrf_cookie
@blind.sealed
def test(request: HttpRequest) -> HttpResponse:
    rater = blind.known(request)
    if rater is None:
        return _unknown(request)
    if rater.sound_checked_at is None:
        return redirect("listening:check")
    if allocate.next_trial(rater) is None:
        return redirect("listening:thanks")
    return render(request, "listening/test.html", {"words": _words()})


@require_GET
@blind.sealed
def following(request: HttpRequest) -> JsonResponse:
    """The trial to judge now, or {"finished": true}."""
    rater = blind.known(request)
    if rater is None:
        return JsonResponse({"code": "unknown_listener", "message": _("Open your invitation link again.")}, status=403)
    trial = allocate.next_trial(rater)
    if trial is None:
        return JsonResponse({"finished": True})
    return JsonResponse(blind.describe(trial, *allocate.progress(rater)))


@require_GET
@blind.sealed
def sound(request: HttpRequest, key: str) -> HttpResponse:
    """One side of the rater's own, open trial."""
    rater = blind.known(request)
    trial = (
        Trial.objects.filter(Q(left_key=key) | Q(right_key=key), rater=rater, state=Trial.State.OPEN)
        .select_related("pair__reference", "pair__tested")
        .first()
        if rater
        else None
    )
    if trial is None:
        raise Http404
    return HttpResponse(blind.sound(trial, key), content_type="audio/wav")


def _no_constant(name: str) -> float:
    """NaN and the infinities are not JSON, and no database takes them for it."""
    raise ValueError(f"{name} is not a number")


@require_POST
@blind.sealed
def vote(request: HttpRequest) -> JsonResponse:
    """One answer, named by the browser. 201 when new, 200 when it was there already."""
    rater = blind.known(request)
    if rater is None:
        return JsonResponse({"code": "unknown_listener", "message": _("Open your invitation link again.")}, status=403)
    if int(request.headers.get("Content-Length") or 0) > 4 * ballot.LOG_LIMIT:
        return JsonResponse({"code": "too_large", "message": _("This answer is too large to be one.")}, status=413)
    try:
        if b"\\u0000" in request.body or b"\0" in request.body:
            raise ValueError("a NUL can't be stored")
        body = json.loads(request.body, parse_constant=_no_constant)
        vote_id, key, choice = uuid.UUID(str(body["id"])), str(body["trial"]), str(body["choice"])
        log = body.get("log") or {}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return JsonResponse({"code": "not_a_vote", "message": _("This is not an answer.")}, status=400)
    if not isinstance(log, dict) or len(json.dumps(log)) > ballot.LOG_LIMIT:
        return JsonResponse({"code": "bad_log", "message": _("This is not an answer.")}, status=400)
    try:
        new = ballot.cast(rater, vote_id, key, choice, log)
    except ballot.NotTaken as error:
        return JsonResponse({"code": error.code, "message": error.sentence}, status=error.status)
    return JsonResponse({"vote": str(vote_id)}, status=201 if new else 200)


@require_GET
@blind.sealed
def thanks(request: HttpRequest) -> HttpResponse:
    rater = blind.known(request)
    if rater is None:
        return _unknown(request)
    if allocate.standing(rater):
        return redirect("listening:test")
    return render(request, "listening/thanks.html", {"answered": rater.trials.filter(state=Trial.State.VOTED).count()})
