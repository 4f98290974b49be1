"""Recordings voices are cloned from, as engineers add them; and the check that a configuration names one that is there."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, transaction

from gate import history
from synth import configuration as schema
from synth import pcm, voices
from synth.configuration import Refused
from synth.models import Voice

MOST_BYTES = 20 << 20


def too_large() -> Refused:
    return Refused("voice_invalid", f"The recording is larger than {MOST_BYTES >> 20} MB: cut it to what the clone needs.", "file")


def keep(name: str, data: bytes, consent: str, text: str = "", user: Any = None) -> Voice:
    """Stores a recording with whose voice it is. The same sound twice is one voice. Raises Refused."""
    if not name.strip() or not consent.strip():
        raise Refused("voice_invalid", "Give the voice a name, and say whose it is and that they agreed to its being cloned.", "consent")
    if len(data) > MOST_BYTES:
        raise too_large()
    try:
        clip = voices.kept(data)
    except pcm.BadAudio as error:
        raise Refused("voice_invalid", f"The recording was refused: {error}.", "file") from error
    known = Voice.objects.filter(clip=clip).first()
    if known:
        return known
    try:
        with transaction.atomic():
            voice = Voice.objects.create(name=name.strip()[:80], clip=clip, consent=consent.strip()[:300], text=text.strip())
            history.note(None, f"the recording of a voice was added: {voice.name} ({voice.consent})", user)
            return voice
    except IntegrityError as error:
        raise Refused("voice_invalid", f"There is a voice named {name!r} already: choose another name.", "name") from error


def check(configuration: schema.Configuration, where: str) -> None:
    """Raises Refused where a configuration clones a voice that nobody uploaded."""
    reference = configuration.voice.reference
    if reference and voices.named(reference) is None:
        raise Refused(
            "unknown_voice", f"{where}.voice.reference names no recording on this host ({reference[:12]}…): add it on the page Voices, or "
            "with manage.py voice FILE, which prints the name to write here.", f"{where}.voice.reference",
        )  # fmt: skip
