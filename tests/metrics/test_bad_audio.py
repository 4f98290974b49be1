"""No file, however broken, hangs or crashes the metrics or gets a number that looks right."""

import importlib.util
import time

import numpy as np
import pytest

from gate.metrics import battery, dnsmos
from synth import pcm
from tests.metrics import sounds
from tests.metrics.parrot import Parrot

needs_dnsmos = pytest.mark.skipif(not importlib.util.find_spec("speechmos"), reason="speech parts not installed")
REFUSED = {
    "no samples": "there are no samples", "not a number": "not finite", "infinity": "not finite", "a rate of 1 MHz": "outside",
    "stereo": "2 channels", "a header that lies": "announces", "a truncated FLAC": "", "a FLAC of noise": "", "a text": "not a sound file",
    "nothing": "not a sound file",
}  # fmt: skip
FAILED = {"one sample": "too_short", "constant": "no_audible_speech", "all zeros": "no_audible_speech", "one click": "no_audible_speech"}
FLAGGED = {
    "shifted": "dc_offset", "clipped": "clipped", "8 kHz": "narrow_band", "96 kHz": "unusual_rate", "far too long": "runaway",
}  # fmt: skip


def scored(samples, rate):
    return battery.score(samples, rate, ["hello there"], "en", Parrot("hello there"))


@needs_dnsmos
@pytest.mark.parametrize("name", sounds.BAD)
def test_a_bad_file_is_refused_failed_or_flagged(name):
    data = sounds.BAD[name]()
    begin = time.perf_counter()
    try:
        sound = pcm.decode(data)
    except pcm.BadAudio as error:
        assert name in REFUSED and REFUSED[name] in str(error)
        assert time.perf_counter() - begin < 1
        return
    found = scored(sound.samples, sound.sample_rate)
    if name in FAILED:
        assert (found.failed, found.cer, found.dnsmos) == (FAILED[name], 1.0, 1.0)
        assert time.perf_counter() - begin < 1
    else:
        assert FLAGGED[name] in found.flags + found.catastrophes


def test_every_bad_file_has_an_expected_end():
    assert REFUSED.keys() | FAILED.keys() | FLAGGED.keys() == sounds.BAD.keys()


@needs_dnsmos
def test_how_a_good_sound_is_stored_changes_nothing():
    clip = sounds.speech_like()
    plain = scored(clip, sounds.RATE)
    double = pcm.decode(sounds.file(clip.astype(np.float64), subtype="DOUBLE"))
    assert scored(double.samples, double.sample_rate) == plain
    packed = pcm.decode(sounds.file(clip, form="FLAC", subtype="PCM_16"))
    assert scored(packed.samples, packed.sample_rate).dnsmos == pytest.approx(plain.dnsmos, abs=0.005)


@needs_dnsmos
@pytest.mark.slow
def test_half_an_hour_of_sound_is_a_runaway_and_takes_its_share_of_time(monkeypatch):
    monkeypatch.setattr(dnsmos, "MOST_WINDOWS", 6)  # sixty take three quarters of a minute
    begin = time.perf_counter()
    found = scored(np.tile(sounds.speech_like(60), 30)[: 1800 * sounds.RATE], sounds.RATE)
    assert found.catastrophes == ("runaway",) and "dnsmos_sampled" in found.flags
    assert time.perf_counter() - begin < 60
    assert found.details["dnsmos_levelled"]["windows"] == 6


def test_only_flac_is_taken_as_an_upload(tmp_path):
    with pytest.raises(pcm.BadAudio, match="it is a WAV file; FLAC is expected"):
        pcm.decode(sounds.file(sounds.speech_like(0.5)), only="FLAC")


@needs_dnsmos
def test_a_whistle_above_the_band_is_nothing_that_was_said():
    whistle = (0.3 * np.sin(2 * np.pi * 11000 * np.arange(48000) / 24000)).astype(np.float32)
    found = scored(whistle, 24000)
    assert (found.failed, found.cer, found.dnsmos) == ("no_audible_speech", 1.0, 1.0)
    with pytest.raises(dnsmos.Unscorable, match="below 8 kHz"):
        dnsmos.score(whistle, 24000)
