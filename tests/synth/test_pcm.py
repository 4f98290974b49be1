import io

import numpy as np
import pytest
import soundfile

from synth import pcm

TONE = (0.5 * np.sin(np.arange(2400) / 10)).astype(np.float32)


def test_flac_keeps_sixteen_bits():
    back = pcm.decode(pcm.encode_flac(TONE, 24000))
    assert back.sample_rate == 24000 and len(back.samples) == len(TONE)
    assert np.max(np.abs(back.samples - TONE)) <= 1 / 32768


def test_the_pcm_hash_sees_one_ulp_and_the_rate():
    other = TONE.copy()
    other[5] = np.nextafter(other[5], np.float32(1))
    hashes = {pcm.pcm_sha256(TONE, 24000), pcm.pcm_sha256(other, 24000), pcm.pcm_sha256(TONE, 22050)}
    assert len(hashes) == 3


def wav(samples, rate=24000, channels=1):
    out = io.BytesIO()
    soundfile.write(out, samples.reshape(-1, channels), rate, format="WAV", subtype="FLOAT")
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "can be read"),
        (b"this is text, not sound" * 20, "can be read"),
        (pcm.encode_flac(TONE, 24000)[:60], "can be read"),
        (wav(np.zeros(0, np.float32)), "no samples"),
        (wav(TONE, channels=2), "2 channels"),
        (wav(TONE, rate=2000), "2000 Hz"),
        (wav(np.full(100, np.nan, np.float32)), "not finite"),
    ],
)
def test_what_is_not_usable_sound_is_refused_with_the_reason(data, says):
    with pytest.raises(pcm.BadAudio, match=says):
        pcm.decode(data)


@pytest.mark.parametrize("bad", [np.zeros(0, np.float32), np.array([np.inf], np.float32), np.zeros((2, 2), np.float32)])
def test_what_is_not_sound_is_not_encoded(bad):
    with pytest.raises(pcm.BadAudio):
        pcm.encode_flac(bad, 24000)
