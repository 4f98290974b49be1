"""Sounds for tests: something like a voice, and a corpus of files that are wrong in one way each."""

import io
import zlib

import numpy as np
import soundfile

RATE = 24000


def speech_like(seconds=3.0, rate=RATE, seed=0, hertz=140):
    t = np.arange(int(seconds * rate)) / rate
    voice = sum(np.sin(2 * np.pi * k * hertz * t) / (n + 1) for n, k in enumerate((1, 2, 3, 6)))
    wave = 0.1 * voice * (0.6 + 0.4 * np.sin(2 * np.pi * 3 * t)) + 0.001 * np.random.default_rng(seed).standard_normal(len(t))
    return wave.astype(np.float32)


def faded(clip, rate=RATE):
    """The clip dying away over its last 50 ms, and 100 ms of silence, as a voice ends."""
    fade = int(0.05 * rate)
    clip = clip.copy()
    clip[-fade:] *= np.linspace(1, 0, fade, dtype=np.float32)
    return np.concatenate([clip, np.zeros(int(0.1 * rate), np.float32)])


def said(text, rate=RATE):
    """A tone a character long, in place of a voice: different texts sound different, equal texts the same."""
    parts = [
        np.sin(2 * np.pi * (180 + zlib.crc32(word.encode()) % 300) * np.arange(int(0.07 * rate * len(word))) / rate)
        for word in text.split()
    ]
    gap = np.zeros(int(0.03 * rate))
    return (0.2 * np.concatenate([piece for part in parts for piece in (part, gap)])).astype(np.float32)


def file(samples, rate=RATE, form="WAV", subtype="FLOAT"):
    out = io.BytesIO()
    soundfile.write(out, samples, rate, format=form, subtype=subtype)
    return out.getvalue()


def _click():
    samples = np.zeros(RATE, np.float32)
    samples[RATE // 2] = 0.9
    return samples


def _with(samples, value):
    samples = samples.copy()
    samples[len(samples) // 2] = value
    return samples


def _lying_header():
    data = bytearray(file(speech_like(), subtype="PCM_16"))
    data[4:8] = (len(data) * 3).to_bytes(4, "little")
    return bytes(data)


#: name -> bytes of a file that is wrong in one way.
BAD = {
    "no samples": lambda: file(np.zeros(0, np.float32)),
    "one sample": lambda: file(np.array([0.5], np.float32)),
    "not a number": lambda: file(_with(speech_like(), np.nan)),
    "infinity": lambda: file(_with(speech_like(), np.inf)),
    "constant": lambda: file(np.full(2 * RATE, 0.5, np.float32)),
    "shifted": lambda: file(speech_like() + np.float32(0.3)),
    "clipped": lambda: file(np.clip(30 * speech_like(), -1, 1)),
    "8 kHz": lambda: file(speech_like(rate=8000), 8000),
    "96 kHz": lambda: file(speech_like(rate=96000), 96000),
    "a rate of 1 MHz": lambda: file(speech_like(0.2), 1_000_000),
    "stereo": lambda: file(np.stack([speech_like(), speech_like()], axis=1)),
    "all zeros": lambda: file(np.zeros(2 * RATE, np.float32)),
    "one click": lambda: file(_click()),
    "far too long": lambda: file(np.tile(speech_like(3), 4)),
    "a header that lies": _lying_header,
    "a truncated FLAC": lambda: file(speech_like(), form="FLAC", subtype="PCM_16")[:9000],
    "a FLAC of noise": lambda: b"fLaC" + np.random.default_rng(0).bytes(5000),
    "a text": lambda: b"These are notes about the recording, not the recording.\n" * 20,
    "nothing": lambda: b"",
}
