"""Bearer tokens of machines: a worker may use the desk, a reader may read verdicts, an engineer may register levers, too."""

from __future__ import annotations

from django.http import HttpRequest
from ninja.security import HttpBearer

from gate.models import Token


class Bearer(HttpBearer):
    def __init__(self, *kinds: str) -> None:
        super().__init__()
        self.kinds = kinds

    def authenticate(self, request: HttpRequest, token: str) -> Token | None:
        return Token.objects.filter(sha256=Token.hashed(token), kind__in=self.kinds, revoked_at=None).first()


worker = Bearer(Token.Kind.WORKER)
reader = Bearer(Token.Kind.READER, Token.Kind.ENGINEER)
engineer = Bearer(Token.Kind.ENGINEER)
