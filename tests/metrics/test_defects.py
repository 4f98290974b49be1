"""Runaways, cut ends, clicks at seams: found whatever the rate and the gain, and not found in whole speech."""

import numpy as np
import pytest

from gate.metrics import defects
from synth import pauses
from tests.metrics.sounds import faded, speech_like


@pytest.mark.parametrize("rate", [16000, 24000, 48000])
@pytest.mark.parametrize("gain", [0.03, 0.3, 1.0])
def test_an_end_at_speech_level_is_cut_and_one_that_dies_away_is_not(rate, gain):
    clip = speech_like(2.0, rate) * np.float32(gain)
    assert defects.cut_off(clip, rate, pauses.analyse(clip, rate))
    whole = faded(clip, rate)
    assert not defects.cut_off(whole, rate, pauses.analyse(whole, rate))


@pytest.mark.parametrize("rate", [16000, 24000, 48000])
@pytest.mark.parametrize("gain", [0.1, 1.0])
def test_a_jump_at_a_seam_is_a_click_and_the_same_jump_elsewhere_is_not_looked_at(rate, gain):
    clip, seam = speech_like(2.0, rate), rate
    broken = clip.copy()
    broken[seam:] += np.float32(0.3)
    assert defects.seam_clicks(broken * np.float32(gain), rate, [seam]) == 1
    assert defects.seam_clicks(broken * np.float32(gain), rate, [seam // 2]) == 0
    assert defects.seam_clicks(clip * np.float32(gain), rate, [seam, seam // 2, 3]) == 0


def test_noise_is_no_click_and_seams_outside_of_the_clip_are_none():
    noise = np.random.default_rng(0).standard_normal(24000).astype(np.float32) * 0.1
    assert defects.seam_clicks(noise, 24000, list(range(500, 24000, 500))) == 0
    assert defects.seam_clicks(noise, 24000, [0, 24000, 10**9]) == 0
    assert defects.seam_clicks(np.zeros(24000), 24000, [12000]) == 0


@pytest.mark.parametrize(
    ("seconds", "characters", "long"),
    [(300, 175, True), (20, 175, False), (5, 2, False), (8, 2, True), (30, 60, False), (163.84, 60, True)],
)
def test_a_clip_far_longer_than_its_text_can_take_is_a_runaway(seconds, characters, long):
    assert defects.too_long(seconds, characters) is long


@pytest.mark.parametrize(
    ("samples", "why"),
    [
        (np.zeros(0), "empty"), (np.array([np.nan] * 24000), "not_finite"), (np.full(24000, np.inf), "not_finite"),
        (speech_like(0.09), "too_short"), (np.zeros(24000), "no_audible_speech"), (np.full(24000, 0.7), "no_audible_speech"),
        (1e-4 * speech_like(), "no_audible_speech"), (speech_like(), ""), (np.where(np.arange(48000) == 24000, -0.9, 0.5), "no_audible_speech"),
        (np.concatenate([0.05 * speech_like(1.0), np.zeros(60 * 24000)]), ""), (0.05 * speech_like(1.0), ""),
    ],
)  # fmt: skip
def test_why_nothing_can_be_measured(samples, why):
    assert defects.failure(samples, 24000) == why


def test_frames_are_10_ms_at_any_rate():
    for rate in (8000, 11025, 16000, 22050, 24000, 44100, 48000):
        found = pauses.analyse(np.concatenate([speech_like(12.0, rate), np.zeros(rate * 2), speech_like(16.0, rate)]), rate)
        assert found.internal_pauses == ((12000, 2000),) and (found.span_ms, found.trailing_ms) == (30000, 0)
