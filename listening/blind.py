"""What a rater's browser may see: one shape of trial, names that mean nothing, nothing kept in caches."""

from __future__ import annotations

import uuid
from functools import wraps
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import translation
from django.utils.cache import add_never_cache_headers
from django.utils.crypto import salted_hmac

from listening import audio, tongue
from listening.models import Pair, Rater, Trial
from synth import clips

RIGHT_TO_LEFT = {"ar", "ur", "he", "fa"}
COOKIE = "listener"
LENT = " lent"
COOKIE_AGE = 90 * 24 * 3600


def sealed(view):
    """Marks a response as nobody's to keep, and takes from it what could link one trial to another."""

    @wraps(view)
    def inner(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        language = tongue.of(request, known)
        with translation.override(language):
            try:
                response = view(request, *args, **kwargs)
            except Http404:
                response = HttpResponse(status=404)
        response["Content-Language"] = language
        add_never_cache_headers(response)
        response["Cache-Control"] = "no-store, private"
        response["X-Robots-Tag"] = "noindex"
        for header in ("ETag", "Last-Modified", "Expires"):
            if header in response:
                del response[header]
        return response

    return inner


def listener(request: HttpRequest) -> uuid.UUID | None:
    """The key this browser carries in a signed cookie of its own; engineers' sessions play no part here."""
    key = request.get_signed_cookie(COOKIE, default=None, salt="listening", max_age=COOKIE_AGE)
    return uuid.UUID(key.removesuffix(LENT)) if key else None


def is_lent(request: HttpRequest) -> bool:
    """Whether this browser is a rater's only because a platform's link named them: anybody may write a name into a link."""
    return (request.get_signed_cookie(COOKIE, default="", salt="listening", max_age=COOKIE_AGE) or "").endswith(LENT)


def known(request: HttpRequest) -> Rater | None:
    """The rater of this browser."""
    if not hasattr(request, "listener"):
        key = listener(request)
        known_ = Rater.objects.filter(key=key, erased_at=None).select_related("panel", "invitation").first() if key else None
        request.listener = known_  # type: ignore[attr-defined]
    return request.listener  # type: ignore[attr-defined,no-any-return]


def remember(response: HttpResponse, rater: Rater, secure: bool, lent: bool = False) -> None:
    """`lent`: see is_lent()."""
    if rater.interface:
        tongue.remember(response, rater.interface, COOKIE_AGE)
    response.set_signed_cookie(
        COOKIE,
        f"{rater.key}{LENT if lent else ''}",
        salt="listening",
        max_age=COOKIE_AGE,
        httponly=True,
        samesite="Lax",
        secure=secure,
        path="/listen/",
    )


def outbox_of(key: uuid.UUID) -> str:
    """Whose answers wait in a browser that two people share; says nothing else."""
    return salted_hmac("outbox", str(key)).hexdigest()[:12]


def is_another(request: HttpRequest, key: uuid.UUID) -> bool:
    """Whether a page that somebody else left open in this browser is asking."""
    page = request.headers.get("X-Listener")
    return bool(page) and page != outbox_of(key)


def describe(trial: Trial, done: int, total: int) -> dict[str, Any]:
    """The JSON of a trial; the same keys and kinds of values for every trial there is."""
    sentence = trial.pair.sentence
    return {
        "trial": trial.key, "sentence": sentence.text, "lang": sentence.language,
        "dir": "rtl" if sentence.language in RIGHT_TO_LEFT else "ltr",
        "left": reverse("listening:sound", args=[trial.left_key]), "right": reverse("listening:sound", args=[trial.right_key]),
        "voice": reverse("listening:voice", args=[trial.left_key]) if trial.pair.study.voice_id else "",
        "practice": trial.pair.kind == Pair.Kind.PRACTICE, "done": done, "total": total,
    }  # fmt: skip


def sound(trial: Trial, key: str) -> bytes:
    """The listening copy of one side of a trial."""
    side = 0 if key == trial.left_key else 1
    pair = trial.pair
    reference, tested = clips.samples(pair.reference), clips.samples(pair.tested)
    frames = audio.frames_for(reference, tested, characters=len(pair.sentence.text), pace=pair.study.pace)
    seed = salted_hmac("dither", key).hexdigest()  # a seed the browser knew could be subtracted again, and show where sound ends
    if side == trial.tested_side:
        return audio.copy(tested, pair.gain_tested, frames, seed)
    return audio.copy(reference, pair.gain_reference, frames, seed)


def voice(trial: Trial) -> bytes:
    """The recording a cloned voice was made from, at the level of the test; the same for both sides."""
    seed = salted_hmac("dither", f"voice:{trial.left_key}").hexdigest()
    return audio.alone(clips.samples(trial.pair.study.voice), seed)
