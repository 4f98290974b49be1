"""The rater's way to the test and from it: invitation, consent, sound, language, thanks. Parse, call one verb, answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from listening import audio, blind, passage, platforms, tongue
from listening.models import Invitation, Rater, Trial, Word
from synth import clips
from synth.models import Clip


def problem(request: HttpRequest, title: str, text: str, status: int) -> HttpResponse:
    return render(request, "listening/problem.html", {"title": title, "text": text}, status=status)


def unknown(request: HttpRequest) -> HttpResponse:
    return problem(request, _("We don't know you yet"), _("Open the invitation link you were sent, in this browser."), 403)


def for_known(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Hands the page its rater; a browser nobody knows is told what to do."""

    @wraps(view)
    def inner(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        rater = blind.known(request)
        return view(request, rater, *args, **kwargs) if rater else unknown(request)

    return inner


def on(rater: Rater) -> HttpResponse:
    """To the page this rater belongs on."""
    return redirect(f"listening:{passage.step(rater)}")


@require_GET
@blind.sealed
def home(request: HttpRequest) -> HttpResponse:
    rater = blind.known(request)
    return on(rater) if rater else unknown(request)


def _closed(request: HttpRequest, why: str) -> HttpResponse:
    texts = {
        "revoked": _("This invitation was withdrawn. Ask the person who sent it for a new one."),
        "expired": _("This invitation has expired. Ask the person who sent it for a new one."),
        "full": _("Enough people have taken this invitation. Thank you for coming."),
    }
    return problem(request, _("This invitation is closed"), texts[why], 410)


@require_http_methods(["GET", "POST"])
@xframe_options_exempt  # a crowd platform shows this page, and only this one, inside its own
@blind.sealed
def welcome(request: HttpRequest, token: str) -> HttpResponse:
    """The invitation: what this is, and consent. Somebody who is known, by browser or platform, goes on where they were."""
    invitation = Invitation.objects.filter(token=token).select_related("panel").first()
    if invitation is None:
        text = _("Check that the whole link was copied, or ask the person who sent it.")
        return problem(request, _("This link doesn't work"), text, 404)
    came = platforms.arrival(request.GET if request.method == "GET" else request.POST)
    shown = {"language": invitation.panel.language, "came": came, "own_tab": request.get_full_path()}
    if came.framed:  # inside a platform's page a browser may keep no cookie: the test opens in a tab of its own
        return render(request, "listening/framed.html", shown)
    here = blind.known(request)
    rater = platforms.known(came)
    if rater and rater.panel_id != invitation.panel_id:
        text = _("You listen to another language already. Go on with the first link you were given.")
        return problem(request, _("This link doesn't work"), text, 409)
    if rater is None and not came.platform and here and here.panel_id == invitation.panel_id:
        rater = here
    if rater:
        return _remembered(request, rater, lent=rater != here or blind.is_lent(request))
    if closed := invitation.why_closed():
        return _closed(request, closed)
    if request.method == "GET":
        return render(request, "listening/welcome.html", shown)
    said = {name: request.POST.get(name) for name in ("agree", "adult", "native")}
    if said["agree"] != "yes" or said["adult"] not in ("yes", "no") or said["native"] not in ("yes", "no"):
        return render(request, "listening/welcome.html", shown | {"missed": True, "said": said}, status=422)
    rater, made = passage.admit(invitation, came, said["adult"] == "yes", said["native"] == "yes")
    return _remembered(request, rater, lent=not made) if rater else _closed(request, "full")


def _remembered(request: HttpRequest, rater: Rater, lent: bool = False) -> HttpResponse:
    response = on(rater)
    blind.remember(response, rater, request.is_secure(), lent)
    return response


@require_GET
@blind.sealed
def resume(request: HttpRequest, token: str) -> HttpResponse:
    """A rater's own link: goes on where they were, on whatever device."""
    rater = passage.by_resume(token)
    if rater is None:
        return problem(request, _("This link doesn't work"), _("Make a new one on the device where you began."), 404)
    return _remembered(request, rater)


@require_POST
@blind.sealed
def language(request: HttpRequest) -> HttpResponse:
    """Chooses the language of the pages, and comes back to the page it was chosen on."""
    code = tongue.known(request.POST.get("language", ""))
    back = request.POST.get("back", "")
    response = redirect(back if back.startswith("/listen/") and "\\" not in back else "listening:home")
    if code:
        rater = blind.known(request)
        if rater:
            Rater.objects.filter(pk=rater.pk).update(interface=code)
        tongue.remember(response, code, blind.COOKIE_AGE)
    return response


@require_http_methods(["GET", "POST"])
@blind.sealed
@for_known
def check(request: HttpRequest, rater: Rater) -> HttpResponse:
    """Headphones and volume; what they say is kept, nobody is turned away."""
    if request.method == "POST":
        rater.sound_checked_at, rater.headphones = timezone.now(), request.POST.get("headphones") == "yes"
        score = request.POST.get("tones", "")
        if re.fullmatch("[0-6]", score) and len(rater.headphone_check) < 2:
            rater.headphone_check = [*rater.headphone_check, int(score)]
        rater.save(update_fields=["sound_checked_at", "headphones", "headphone_check"])
        return on(rater)
    return render(request, "listening/check.html", {"has_sample": rater.panel.sample_id is not None})


@require_GET
@blind.sealed
def check_sound(request: HttpRequest) -> HttpResponse:
    """A word at the level of the test, from no pair of it."""
    rater = blind.known(request)
    if rater is None or rater.panel.sample is None:
        raise Http404
    return _spoken(rater.panel.sample, str(rater.key))


def _spoken(clip: Clip, seed: str) -> HttpResponse:
    return HttpResponse(audio.alone(clips.samples(clip), seed), content_type="audio/wav")


@require_http_methods(["GET", "POST"])
@blind.sealed
@for_known
def words(request: HttpRequest, rater: Rater) -> HttpResponse:
    """Which of two words was said? Once; who knows too few is thanked and let go."""
    if passage.step(rater) != "words":
        return on(rater)
    asked = passage.usable_words(rater)
    heard = {w.pk: request.POST.get(f"word-{w.pk}", "") for w in asked}
    rows = [{"word": w, "options": passage.options(rater, w), "heard": heard[w.pk]} for w in asked]
    if request.method == "POST":
        if all(heard[row["word"].pk] in row["options"] for row in rows):
            passage.examine(rater, heard)
            return on(Rater.objects.get(pk=rater.pk))
        return render(request, "listening/words.html", {"rows": rows, "missed": True}, status=422)
    return render(request, "listening/words.html", {"rows": rows, "missed": False})


@require_GET
@blind.sealed
def word_sound(request: HttpRequest, pk: int) -> HttpResponse:
    """A word this rater is asked about."""
    rater = blind.known(request)
    asked = {w.pk: w for w in passage.usable_words(rater)} if rater and passage.step(rater) == "words" else {}
    word: Word | None = asked.get(pk)
    if rater is None or word is None:
        raise Http404
    return _spoken(word.clip, f"{rater.key}:{pk}")


@require_GET
@blind.sealed
@for_known
def thanks(request: HttpRequest, rater: Rater) -> HttpResponse:
    if passage.step(rater) != "thanks" and (passage.step(rater) != "test" or rater.trials.filter(state=Trial.State.OPEN).exists()):
        return on(rater)
    outcome = passage.outcome(rater)
    from_platform = bool(rater.platform or rater.invitation.return_url)
    shown = {
        "answered": passage.answered(rater), "outcome": outcome, "why": rater.screened_out_for,
        "code": platforms.code(rater, outcome) if outcome and from_platform else "",
        "back": platforms.return_address(rater, outcome) if outcome else "",
    }  # fmt: skip
    return render(request, "listening/thanks.html", shown)


@require_http_methods(["GET", "POST"])
@blind.sealed
@for_known
def erase(request: HttpRequest, rater: Rater) -> HttpResponse:
    """Deletes what is known of a rater, after asking once."""
    if blind.is_lent(request):
        text = _("Do this in the browser where you began, or with the link you made there for another device.")
        return problem(request, _("Not from this browser"), text, 403)
    if request.method == "GET":
        return render(request, "listening/erase.html")
    passage.erase(rater)
    response = problem(request, _("Your data is deleted"), _("Nothing here points to you any more. Thank you for listening."), 200)
    response.delete_cookie(blind.COOKIE, path="/listen/")
    return response


@require_GET
@blind.sealed
def elsewhere(request: HttpRequest) -> JsonResponse:
    """The rater's own link, for going on on another device."""
    rater = blind.known(request)
    if rater is None:
        return JsonResponse({"code": "unknown_listener", "message": _("Open your invitation link again.")}, status=403)
    if blind.is_lent(request):  # who has no proof of being this rater is given none
        return JsonResponse({"code": "not_here", "message": _("Not from this browser")}, status=404)
    return JsonResponse({"link": request.build_absolute_uri(reverse("listening:resume", args=[passage.resume_token(rater)]))})
