import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.metrics import battery, dnsmos, level, resample
from synth import pauses
from tests.metrics.parrot import Parrot
from tests.metrics.sounds import speech_like

FILE = json.loads((Path(__file__).parent.parent / "vectors" / "pauses.json").read_text())
RATE = FILE["sample_rate"]
needs_dnsmos = pytest.mark.skipif(not importlib.util.find_spec("speechmos"), reason="speech parts not installed")


def built(given):
    parts = []
    for part in given["parts"]:
        if "silence_ms" in part:
            parts.append(np.zeros(part["silence_ms"] * RATE // 1000))
        elif "sample" in part:
            parts.append(np.array([part["sample"]], dtype=float))
        else:
            n = part["tone_ms"] * RATE // 1000
            parts.append(part["amplitude"] * np.sin(2 * np.pi * part["hz"] * np.arange(n) / RATE))
    out = np.concatenate(parts) if parts else np.zeros(0)
    out = out * 10 ** (given.get("gain_db", 0) / 20)
    noise = given.get("noise")
    if noise:
        random = np.random.RandomState(noise["seed"]) if "seed" in noise else np.random.RandomState(0)
        out = out + random.standard_normal(len(out)) * 10 ** (noise.get("dbfs", -75) / 20)
    return out


@pytest.mark.parametrize("case", FILE["cases"], ids=[case["id"] for case in FILE["cases"]])
def test_the_vectors(case):
    found = pauses.analyse(built(case["input"]), RATE)
    for name, expected in case["expected"].items():
        value = getattr(found, name)
        if name == "internal_pauses":
            assert [list(p) for p in value] == expected
        elif isinstance(expected, float):
            assert value == pytest.approx(expected, abs=0.02)
        else:
            assert value == expected, name


def test_appended_silence_changes_neither_level_nor_speech():
    clip = speech_like()
    longer = np.concatenate([clip, np.zeros(24000, np.float32)])
    assert level.active_level(longer, 24000) == pytest.approx(level.active_level(clip, 24000), abs=1e-6)
    assert pauses.analyse(longer, 24000).speech_ms == pauses.analyse(clip, 24000).speech_ms


def test_a_clip_is_brought_to_its_level_whatever_its_gain():
    for gain in (0.1, 0.3, 1.0):
        levelled, _ = level.to_level(speech_like() * np.float32(gain), 24000)
        assert level.active_level(levelled, 24000) == pytest.approx(-26, abs=0.01)
        assert np.max(np.abs(levelled)) <= 0.99


def test_the_resampler_keeps_the_band_and_drops_what_is_above():
    t = np.arange(48000) / 24000
    for hertz, expected in ((3000, 0.707), (7000, 0.707), (9500, 0.0)):
        out = resample.to_16k(np.sin(2 * np.pi * hertz * t), 24000)[2000:-2000]
        assert np.sqrt(np.mean(out**2)) == pytest.approx(expected, abs=0.005)


@needs_dnsmos
def test_dnsmos_counts_its_windows_as_published():
    for seconds, standard, every in ((1.0, 7, 7), (3.6, 5, 5), (3.75, 6, 6), (9.5, 1, 1), (12.0, 3, 3), (31.0, 7, 22)):
        clip = speech_like(seconds, 16000)
        length = len(dnsmos.tile(clip))
        assert len(dnsmos.starts(length, published=True)) == standard
        assert len(dnsmos.starts(length, published=False)) == every + 1


@needs_dnsmos
def test_noise_at_the_very_end_changes_the_gates_score_and_not_the_standard_one():
    clip = speech_like(11.0, 16000)
    noisy = clip.copy()
    noisy[-int(0.8 * 16000) :] = 0.1 * np.random.default_rng(1).standard_normal(int(0.8 * 16000))
    before, after = dnsmos.score(clip, 16000), dnsmos.score(noisy, 16000)
    assert abs(before.levelled.ovrl - after.levelled.ovrl) > 0.01
    assert after.raw_standard == before.raw_standard  # its last window ends before the noise


@needs_dnsmos
@pytest.mark.parametrize("bad", [np.zeros(0, np.float32), np.zeros(16000, np.float32), np.array([np.nan] * 16000, np.float32)])
def test_dnsmos_never_invents_a_value(bad):
    with pytest.raises(dnsmos.Unscorable):
        dnsmos.score(bad, 16000)


def test_a_silent_or_short_clip_is_a_failure_with_the_worst_values():
    for samples, reason in ((np.zeros(24000, np.float32), "no_audible_speech"), (speech_like(0.05), "too_short")):
        found = battery.score(samples, 24000, ["hello"], "en", Parrot("hello"))
        assert (found.failed, found.cer, found.dnsmos) == (reason, 1.0, 1.0)


@needs_dnsmos
def test_the_best_spoken_alternative_counts():
    found = battery.score(
        speech_like(), 24000, ["five fifty", "five dollars and fifty cents"], "en", Parrot("Five dollars and fifty cents.")
    )
    assert (found.failed, found.cer) == ("", 0.0)


@pytest.fixture(scope="module")
def speechmos():
    if not importlib.util.find_spec("speechmos") or not importlib.util.find_spec("librosa"):
        pytest.skip("speech and development parts not installed")
    from speechmos import dnsmos as published

    return published


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [1.0, 5.0, 9.5, 12.0, 31.0])
def test_dnsmos_agrees_with_the_published_package(speechmos, seconds):
    clip = speech_like(seconds, 16000)
    theirs, ours = speechmos.run(clip, 16000), dnsmos.score(clip, 16000).raw_standard
    assert (ours.sig, ours.bak, ours.ovrl) == pytest.approx((theirs["sig_mos"], theirs["bak_mos"], theirs["ovrl_mos"]), abs=1e-6)


@given(st.floats(0.05, 1.0), st.integers(0, 30000))
@settings(max_examples=25, deadline=None)
def test_pauses_depend_neither_on_gain_nor_on_appended_silence(gain, zeros):
    clip = np.concatenate([speech_like(0.8), np.zeros(6000, np.float32), speech_like(0.7, seed=1)])
    before = pauses.analyse(clip, 24000)
    after = pauses.analyse(np.concatenate([clip * np.float32(gain), np.zeros(zeros, np.float32)]), 24000)
    same = ("internal_pauses", "leading_ms", "span_ms", "speech_ms", "internal_pause_total_ms")
    assert [getattr(after, name) for name in same] == [getattr(before, name) for name in same]
