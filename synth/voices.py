"""Recordings that voices are cloned from: kept by the host, named in a configuration by the sha256 of their sound."""

from __future__ import annotations

from synth import clips, pauses, pcm
from synth.models import Clip, Configuration, Voice

LONGEST_S = 60.0


def kept(data: bytes) -> Clip:
    """Stores a recording, one channel of WAV or FLAC, as any other clip. Raises BadAudio."""
    sound = pcm.decode(data)
    if sound.samples.size > LONGEST_S * sound.sample_rate:
        raise pcm.BadAudio(f"it lasts {sound.samples.size / sound.sample_rate:.0f} s; a voice is cloned from {LONGEST_S:.0f} s at most")
    if pauses.analyse(sound.samples, sound.sample_rate).leading_ms is None:
        raise pcm.BadAudio("there is nothing to hear in it")
    return clips.keep(sound.samples, sound.sample_rate)


def named(sha256: str) -> Voice | None:
    """The voice that configurations name by this."""
    return Voice.objects.filter(clip__pcm_sha256=sha256).select_related("clip").first()


def of(configuration: Configuration) -> Clip | None:
    """The recording this system's voice was cloned from; None where it has a voice of its own."""
    voice = named(configuration.body.get("voice", {}).get("reference") or "")
    return voice.clip if voice else None
