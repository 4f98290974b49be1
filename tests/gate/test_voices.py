"""Recordings voices are cloned from: added with consent, named by their sound, brought to the worker, heard by listeners."""

import io

import numpy as np
import pytest
import soundfile
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command

from gate import register, voices
from gate.models import AuditEntry
from synth import pcm
from synth import voices as kept
from synth.configuration import Refused
from synth.engine.protocol import voice_file
from synth.engine.supervise import ChildRefused
from synth.models import Voice
from synth.worker import Bench
from tests import factories


def wav(seconds=1.0, amplitude=0.3, rate=16000, channels=1):
    sound = amplitude * np.sin(2 * np.pi * 200 * np.arange(int(seconds * rate)) / rate)
    out = io.BytesIO()
    soundfile.write(out, np.column_stack([sound] * channels) if channels > 1 else sound, rate, format="WAV", subtype="PCM_16")
    return out.getvalue()


def test_a_recording_is_kept_once_with_whose_it_is(db):
    voice = voices.keep("Asha", wav(), "Asha Rao, agreed by mail on 2026-11-02", "namaste")
    assert voices.keep("Again", wav(), "the same") == voice and Voice.objects.count() == 1
    assert kept.named(voice.clip.pcm_sha256) == voice and "Asha Rao" in AuditEntry.objects.get().text


@pytest.mark.parametrize(
    ("data", "says"),
    [(wav(amplitude=0), "nothing to hear"), (wav(61), "60 s at most"), (wav(channels=2), "2 channels"), (b"no sound", "not a sound file")],
)
def test_what_can_not_be_cloned_from_is_refused_in_a_sentence(db, data, says):
    with pytest.raises(Refused, match=says):
        voices.keep("Asha", data, "agreed")
    assert not Voice.objects.exists()


def test_without_consent_or_with_a_name_that_is_taken_nothing_is_kept(db):
    with pytest.raises(Refused, match="agreed to its being cloned"):
        voices.keep("Asha", wav(), " ")
    voices.keep("Asha", wav(), "agreed")
    with pytest.raises(Refused, match="choose another name"):
        voices.keep("Asha", wav(2.0), "agreed")


def test_the_page_takes_one_and_shows_what_to_write(client, engineer):
    client.force_login(engineer)
    form = {"name": "Asha", "consent": "agreed", "file": SimpleUploadedFile("a.wav", wav())}
    assert client.post("/voices/", form).status_code == 302
    page = client.get("/voices/").content.decode()
    voice = Voice.objects.get()
    assert voice.clip.pcm_sha256 in page and "agreed" in page
    assert client.get(f"/voices/{voice.pk}.flac").status_code == 200
    refused = client.post("/voices/", {"name": "B", "consent": "agreed", "file": SimpleUploadedFile("b.wav", b"no")})
    assert refused.status_code == 422 and "not a sound file" in refused.content.decode()
    assert client.post("/voices/", {}).status_code == 422


def test_the_command_adds_and_lists(db, tmp_path, capsys):
    (tmp_path / "asha.wav").write_bytes(wav())
    call_command("voice", tmp_path / "asha.wav", consent="agreed")
    sha = Voice.objects.get().clip.pcm_sha256
    assert sha in capsys.readouterr().out
    call_command("voice")
    assert f"{sha}    1.0 s  asha  (agreed)" in capsys.readouterr().out
    with pytest.raises(CommandError, match="can't be read"):
        call_command("voice", tmp_path / "nobody.wav", consent="agreed")


def test_a_lever_that_clones_a_voice_nobody_added_is_refused(db):
    spec = factories.spec(change={"voice": {"reference": "ab" * 32}})
    with pytest.raises(Refused, match="names no recording on this host") as refused:
        register.register([spec])
    assert refused.value.code == "unknown_voice" and "candidate.voice.reference" in refused.value.message
    voice = voices.keep("Asha", wav(), "agreed")
    spec["change"]["voice"]["reference"] = voice.clip.pcm_sha256
    lever = register.register([spec])[0]
    assert kept.of(lever.candidate) == voice.clip and kept.of(lever.parent) is None
    with pytest.raises(Refused, match="reference is 'mine.wav'"):
        register.register([factories.spec(lever="other", change={"voice": {"reference": "mine.wav"}})])


class Desk:
    """The host's side, for one question."""

    def __init__(self, api):
        self.api, self.asked = api, 0

    def voice(self, sha):
        from synth import desk

        self.asked += 1
        answer = self.api.get(f"/api/desk/voices/{sha}", headers=self.api.auth)
        if answer.status_code == 422:
            raise desk.Refused(answer.json()["message"])
        assert answer.status_code == 200
        return answer.content


def test_a_worker_brings_the_recording_once_and_says_when_it_is_gone(db, client, tmp_path):
    from gate.models import Token

    voice = voices.keep("Asha", wav(), "agreed")
    client.auth = {"Authorization": f"Bearer {Token.issue('mac', 'worker')}"}
    desk = Desk(client)
    bench = Bench(desk, tmp_path, [], tmp_path / "scratch")
    try:
        for _ in range(2):
            bench._fetch_voice(voice.clip.pcm_sha256)
        sound = pcm.decode(voice_file(tmp_path, voice.clip.pcm_sha256))
        assert desk.asked == 1 and pcm.pcm_sha256(sound.samples, sound.sample_rate) == voice.clip.pcm_sha256
        with pytest.raises(ChildRefused, match="no recording abab"):
            bench._fetch_voice("ab" * 32)
        bench._fetch_voice(None)
    finally:
        bench.close()
    assert client.get(f"/api/desk/voices/{voice.clip.pcm_sha256}").status_code == 401
