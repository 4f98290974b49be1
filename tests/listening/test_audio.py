import numpy as np
import pytest

from listening import audio
from synth.pcm import Decoded, decode

RATE = 24000


def voice(seconds=2.0, gain=0.1, rate=RATE, pitch=200):
    t = np.arange(int(seconds * rate)) / rate
    return Decoded((gain * np.sin(2 * np.pi * pitch * t) * (0.7 + 0.3 * np.sin(5 * t))).astype(np.float32), rate)


def test_both_sides_come_to_one_loudness():
    a, b = voice(gain=0.02), voice(gain=0.4, pitch=300)
    gains = audio.gains(a, b)
    levels = [audio.loudness(Decoded((s.samples * 10 ** (g / 20)).astype(np.float32), RATE)) for s, g in zip((a, b), gains, strict=True)]
    assert levels[0] == pytest.approx(levels[1], abs=0.1) and levels[0] == pytest.approx(-23, abs=0.1)


def test_a_peak_that_would_clip_brings_both_down_by_the_same():
    spiky = voice(gain=0.02)
    spiky.samples[5000] = 0.9
    calm = voice(gain=0.02)
    g_spiky, g_calm = audio.gains(spiky, calm)
    free_calm = audio.TARGET_LUFS - audio.loudness(calm)
    free_spiky = audio.TARGET_LUFS - audio.loudness(spiky)
    assert free_spiky - g_spiky == pytest.approx(free_calm - g_calm) and g_spiky < free_spiky
    assert audio.true_peak_db(Decoded((spiky.samples * 10 ** (g_spiky / 20)).astype(np.float32), RATE)) <= -1 + 1e-6


def test_if_one_side_can_not_be_measured_neither_is_treated():
    assert audio.gains(voice(), Decoded(np.zeros(RATE, np.float32), RATE)) is None
    assert audio.gains(voice(), voice(seconds=0.2)) is None


def test_copies_have_one_size_and_no_bytes_in_common():
    a, b = voice(1.0), voice(1.5)
    frames = audio.frames_for(a, b)
    left, right, again = audio.copy(a, 0, frames, "x"), audio.copy(b, 0, frames, "y"), audio.copy(a, 0, frames, "z")
    assert len(left) == len(right) == len(again)
    assert len({left, right, again}) == 3
    assert np.max(np.abs(decode(left).samples - decode(again).samples)) < 5 / 32768


def test_silence_at_the_end_is_dithered_too():
    a = voice(0.5)
    tail = decode(audio.copy(a, 0, RATE, "x")).samples[-2000:]
    assert 0 < np.std(tail) < 2 / 32768


def test_nothing_is_trimmed():
    a = voice(1.0)
    back = decode(audio.copy(a, -6.0, audio.frames_for(a, voice(2.0)), "x")).samples
    assert len(back) == 2 * RATE
    assert np.max(np.abs(back[:RATE] - a.samples * 10 ** (-6 / 20))) < 3 / 32768


def test_another_rate_is_brought_to_the_tests():
    copy = decode(audio.copy(voice(1.0, rate=44100), 0, RATE, "x"))
    assert copy.sample_rate == RATE
