"""The audit trail: what happened to a lever, in plain words."""

from __future__ import annotations

from typing import Any

from gate.models import AuditEntry, Lever


def note(lever: Lever | None, text: str, user: Any = None) -> None:
    actor = user.get_username() if user is not None and user.is_authenticated else "earwitness"
    AuditEntry.objects.create(lever=lever, text=text, actor=actor)
