"""The test itself: parse, call one verb, answer."""

from __future__ import annotations

import json
import uuid
from functools import wraps
from typing import Any

from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_GET, require_POST

from listening import allocate, ballot, blind, passage
from listening.models import Pair, Rater, Trial
from listening.schedule import SITTING
from listening.views_path import for_known, on
from listening.words import for_page


@require_GET
@ensure_csrf_cookie
@blind.sealed
@for_known
def test(request: HttpRequest, rater: Rater) -> HttpResponse:
    if passage.step(rater) != "test":
        return on(rater)
    trial = allocate.next_trial(rater)
    if trial is None and allocate.why_over(rater) not in ("break", "sound"):
        return redirect("listening:thanks")
    opening = blind.describe(trial, *allocate.progress(rater)) if trial else None
    shown = {
        "words": for_page(rater.panel.language),
        "opening": opening,
        "listener": blind.outbox_of(rater.key),
        "lent": blind.is_lent(request),
    }
    return render(request, "listening/test.html", shown)


def _stranger() -> JsonResponse:
    return JsonResponse({"code": "unknown_listener", "message": _("Open your invitation link again.")}, status=403)


def _of_rater(view):
    """For the page's script: the rater, or 403; and no test for who is not through the way to it."""

    @wraps(view)
    def inner(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        rater = blind.known(request)
        if rater is None or rater.screened_out_at or blind.is_another(request, rater.key):
            return _stranger()
        if request.method == "GET" and passage.step(rater) != "test":  # nothing new before the way is gone; what is held may be answered
            return _stranger()
        return view(request, rater, *args, **kwargs)

    return inner


@require_GET
@blind.sealed
@_of_rater
def following(request: HttpRequest, rater: Rater) -> JsonResponse:
    """The trial to judge now, or {"finished": why}."""
    trial = allocate.next_trial(rater)
    if trial is None:
        why = allocate.why_over(rater)
        return JsonResponse({"finished": why or "done", "sittings": allocate.place(rater) // SITTING})
    return JsonResponse(blind.describe(trial, *allocate.progress(rater)))


@require_GET
@blind.sealed
@_of_rater
def ahead(request: HttpRequest, rater: Rater) -> JsonResponse:
    """The trial after this one, so that its sound can be fetched while this one is judged; or {"finished": true}."""
    trial = allocate.trial_ahead(rater)
    return JsonResponse({"finished": True} if trial is None else blind.describe(trial, *allocate.progress(rater)))


def _held(rater: Rater, key: str) -> Trial:
    """The rater's own trial that has this name among its sounds, while it is not answered."""
    trial = (
        rater.trials.filter(Q(left_key=key) | Q(right_key=key), state__in=Trial.WAITING)
        .select_related("pair__reference", "pair__tested", "pair__sentence", "pair__study__voice")
        .first()
    )
    if trial is None:
        raise Http404
    return trial


@require_GET
@blind.sealed
def sound(request: HttpRequest, key: str) -> HttpResponse:
    """One side of the rater's own trial."""
    rater = blind.known(request)
    if rater is None:
        raise Http404
    return HttpResponse(blind.sound(_held(rater, key), key), content_type="audio/wav")


@require_GET
@blind.sealed
def voice(request: HttpRequest, key: str) -> HttpResponse:
    """The cloned voice's own recording, where the study has one."""
    rater = blind.known(request)
    trial = _held(rater, key) if rater else None
    if trial is None or trial.pair.study.voice_id is None:
        raise Http404
    return HttpResponse(blind.voice(trial), content_type="audio/wav")


def _no_constant(name: str) -> float:
    """NaN and the infinities are not JSON, and no database takes them for it."""
    raise ValueError(f"{name} is not a number")


def _answering(view):
    """For what the page sends: who and the JSON object, or the refusal of whatever else was sent, or of what can't be done."""

    @wraps(view)
    def inner(request: HttpRequest, who: Rater | uuid.UUID) -> JsonResponse:
        body = _body(request)
        if isinstance(body, JsonResponse):
            return body
        try:
            return view(request, who, body)
        except ballot.NotTaken as error:
            return JsonResponse({"code": error.code, "message": error.sentence}, status=error.status)

    return inner


def _of_listener(view):
    """As _of_rater, for votes: the key alone, because reading the vote's trial reads its rater, too."""

    @wraps(view)
    def inner(request: HttpRequest) -> JsonResponse:
        key = blind.listener(request)
        answer = view(request, key) if key and not blind.is_another(request, key) else _stranger()
        if answer.status_code == 404 and (blind.known(request) is None or blind.known(request).screened_out_at):
            return _stranger()
        return answer

    return inner


def _body(request: HttpRequest) -> dict[str, Any] | JsonResponse:
    """The JSON object that was sent, or the refusal of whatever else was."""
    if int(request.headers.get("Content-Length") or 0) > 4 * ballot.LOG_LIMIT:
        return JsonResponse({"code": "too_large", "message": _("This answer is too large to be one.")}, status=413)
    try:
        if b"\\u0000" in request.body or b"\0" in request.body:
            raise ValueError("a NUL can't be stored")
        body = json.loads(request.body, parse_constant=_no_constant)
        json.dumps(body, ensure_ascii=False).encode()  # half a surrogate pair is no text, and no database's either
        if not isinstance(body, dict):
            raise ValueError("not an object")
    except (ValueError, RecursionError):
        return JsonResponse({"code": "not_a_vote", "message": _("This is not an answer.")}, status=400)
    return body


@require_POST
@blind.sealed
@_of_listener
@_answering
def vote(request: HttpRequest, listener: uuid.UUID, body: dict[str, Any]) -> JsonResponse:
    """One answer, named by the browser. 201 when new, 200 when it was there already."""
    log, tags, strength = body.get("log") or {}, body.get("tags") or [], body.get("strength") or ""
    try:
        vote_id, key, choice = uuid.UUID(str(body["id"])), str(body["trial"]), str(body["choice"])
    except (ValueError, KeyError):
        return JsonResponse({"code": "not_a_vote", "message": _("This is not an answer.")}, status=400)
    if not isinstance(log, dict) or not isinstance(strength, str) or len(json.dumps(log)) > ballot.LOG_LIMIT:
        return JsonResponse({"code": "bad_log", "message": _("This is not an answer.")}, status=400)
    taken = ballot.cast(listener, vote_id, key, ballot.Answer(choice, strength, tags, log))
    return JsonResponse({"vote": str(vote_id), "feedback": _feedback(taken.shown, choice)}, status=201 if taken.new else 200)


def _feedback(shown: ballot.Shown, choice: str) -> str:
    """What practice has to say of an answer; '' for everything else."""
    if shown.kind != Pair.Kind.PRACTICE:
        return ""
    if shown.identical:
        if choice == "same":
            return _("Right: both are the same recording.")
        return _("These two are the same recording; say “Same” when you hear no difference.")
    better = ("right", "left")[shown.side]
    where = _("the second") if shown.side else _("the first")
    if choice == better:
        return _("Right: %(where)s was damaged on purpose.") % {"where": where}
    return _("Listen for this: %(where)s was damaged on purpose, and the other one is better.") % {"where": where}


@require_POST
@blind.sealed
@_of_rater
@_answering
def undo(request: HttpRequest, rater: Rater, body: dict[str, Any]) -> JsonResponse:
    """Takes the last answer back; its comparison is the one to judge now."""
    trial = ballot.undo(rater, str(body.get("trial", "")))
    return JsonResponse(blind.describe(trial, *allocate.progress(rater)))


@require_POST
@blind.sealed
@_of_rater
@_answering
def undeliverable(request: HttpRequest, rater: Rater, body: dict[str, Any]) -> JsonResponse:
    """The browser could not load a trial's sound: it goes back to the pool, and is no vote."""
    trial = rater.trials.filter(key=str(body.get("trial", ""))).first()
    if trial is None:
        return JsonResponse({"code": "not_yours", "message": _("This comparison is not yours; reload the page.")}, status=404)
    allocate.give_back(trial)
    return JsonResponse({"returned": True})


@require_POST
@blind.sealed
@_of_rater
def rested(request: HttpRequest, rater: Rater) -> JsonResponse:
    """Back from the break."""
    if allocate.why_over(rater) == "break":
        Rater.objects.filter(pk=rater.pk).update(breaks=allocate.place(rater) // SITTING)
    return JsonResponse({"rested": True})
