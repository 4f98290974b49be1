"""The language of the rater's pages: as chosen, else as the browser asks, else English."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import translation

from listening.models import Rater

COOKIE = "listener_language"


def known(code: str) -> str:
    return code if code in dict(settings.LANGUAGES) else ""


def of(request: HttpRequest, rater: Callable[[HttpRequest], Rater | None]) -> str:
    """`rater` is asked only where the browser says nothing: most requests do without."""
    chosen = known(request.COOKIES.get(COOKIE, ""))
    if not chosen:
        found = rater(request)
        chosen = known(found.interface if found else "")
    return chosen or translation.get_language_from_request(request)


def remember(response: HttpResponse, code: str, age: int) -> None:
    response.set_cookie(COOKIE, code, max_age=age, samesite="Lax", path="/listen/", httponly=True)
