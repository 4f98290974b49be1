"""Two recordings that should be one: what the figures are, and where they refuse to be."""

import numpy as np
import pytest

from gate.metrics import parity
from tests.metrics.sounds import speech_like

RATE = 24000
CLIP = speech_like(3.0)


def compare(other, rate=RATE):
    return parity.compare(CLIP, RATE, other.astype(np.float32), rate)


def test_equal_sound():
    assert compare(CLIP) == parity.Parity("", 0.0, 0.0, 1.0, 1.0, None, True)


def test_a_gain_shows_in_the_spectrum_and_the_snr_and_not_in_the_envelope():
    found = compare(CLIP * np.float32(10 ** (-6 / 20)))
    assert found.snr_db == pytest.approx(-20 * np.log10(1 - 10 ** (-6 / 20)), abs=0.01)
    assert found.envelope_correlation == pytest.approx(1.0, abs=1e-6) and 0.5 < found.log_mel_mae < 1.39


@pytest.mark.parametrize("snr", [40, 20])
def test_the_snr_is_that_of_the_noise_that_was_added(snr):
    noise = np.random.default_rng(3).standard_normal(len(CLIP))
    noise *= np.sqrt(np.mean(CLIP.astype(float) ** 2) / np.mean(noise**2)) * 10 ** (-snr / 20)
    assert compare(CLIP + noise).snr_db == pytest.approx(snr, abs=0.1)


@pytest.mark.parametrize("shift", [240, -240])
def test_a_delay_is_found_and_taken_out(shift):
    moved = np.concatenate([np.zeros(240), CLIP[:-240]]) if shift > 0 else CLIP[240:]
    found = compare(moved)
    assert found.shift_s == pytest.approx(shift / RATE, abs=1e-4)
    assert found.snr_db is None or found.snr_db > 100
    assert found.envelope_correlation == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(
    ("other", "rate", "reason"),
    [
        (CLIP[: RATE // 2], RATE, "different_durations"), (np.repeat(CLIP, 2), RATE, "different_durations"), (CLIP, 16000, "different_rates"),
        (CLIP[:100], RATE, "too_short"), (np.zeros(0), RATE, "too_short"), (0 * CLIP, RATE, "silent"), (CLIP * np.nan, RATE, "not_finite"),
    ],
)  # fmt: skip
def test_what_is_no_take_of_the_same_gets_no_figures(other, rate, reason):
    found = compare(other, rate)
    assert found == parity.Parity(reason) and "decides nothing" in found.warning


def test_another_sentence_of_the_same_length_is_told_by_the_envelope_and_not_by_the_cosine():
    other = speech_like(3.0, seed=5) * (0.5 + 0.5 * np.sign(np.sin(2 * np.pi * 1.7 * np.arange(len(CLIP)) / RATE)))
    found = compare(other)
    assert found.envelope_correlation < 0.6 < found.spectral_cosine
