"""The language of the rater's pages: as chosen, else as the browser asks, else English."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest
from django.utils import translation

from listening.models import Rater

COOKIE = "listener_language"


def known(code: str) -> str:
    return code if code in dict(settings.LANGUAGES) else ""


def of(request: HttpRequest, rater: Rater | None) -> str:
    chosen = known(request.COOKIES.get(COOKIE, "")) or known(rater.interface if rater else "")
    return chosen or translation.get_language_from_request(request)
