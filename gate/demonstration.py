"""The levers of the first run: three changes to a real voice, small enough for a two-core machine."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from gate import register as registrar
from gate import specfile
from gate.models import Lever

FILE: Path = settings.BASE_DIR / "examples" / "demonstration.yaml"


def wanted() -> bool:
    """Only on a first run: once any lever was registered, nobody wants a demonstration."""
    return not Lever.objects.exists()


def register() -> list[Lever]:
    return registrar.register(specfile.read_yaml(FILE.read_text(encoding="utf-8")))
