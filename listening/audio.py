"""The listening copy: made per trial and side, so that bytes and sizes tell nothing. Pure: samples in, WAV out."""

from __future__ import annotations

import hashlib
import math
import struct
import warnings
from collections.abc import Sequence

import numpy as np

from synth.pcm import Decoded, at_rate

TARGET_LUFS = -23.0
TRUE_PEAK_DBTP = -1.0
RATE = 24000
#: What any text takes, and the step lengths go in; seconds.
LEAST_S, STEP_S = 0.5, 0.5


def loudness(sound: Decoded) -> float:
    """Integrated loudness in LUFS (ITU-R BS.1770); -inf for silence or under 0.4 s."""
    if len(sound.samples) < 0.4 * sound.sample_rate:
        return -math.inf
    import pyloudnorm  # brings scipy.signal, a second of start-up that no page should pay

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(pyloudnorm.Meter(sound.sample_rate).integrated_loudness(sound.samples.astype(np.float64)))


def true_peak_db(sound: Decoded) -> float:
    """Peak in dBTP after four-fold oversampling; -inf for digital silence."""
    from scipy.signal import resample_poly

    peak = float(np.max(np.abs(resample_poly(sound.samples.astype(np.float64), 4, 1))))
    return 20 * math.log10(peak) if peak > 0 else -math.inf


def gains(first: Decoded, second: Decoded) -> tuple[float, float] | None:
    """dB for each side so that both have one loudness and neither peaks above -1 dBTP; None when one can't be measured.

    When the target would clip one side, both come down by the same amount: both or neither.
    """
    measured = [loudness(s) for s in (first, second)]
    if not all(math.isfinite(m) for m in measured):
        return None
    wanted = [TARGET_LUFS - m for m in measured]
    over = max(true_peak_db(s) + g - TRUE_PEAK_DBTP for s, g in zip((first, second), wanted, strict=True))
    down = max(0.0, over)
    return wanted[0] - down, wanted[1] - down


def copy(sound: Decoded, gain_db: float, frames: int, seed: str) -> bytes:
    """16-bit WAV at 24 kHz of exactly `frames` frames: gained, padded with silence, dithered by one step from its own seed.

    The dither (TPDF, 2 LSB wide) also covers the padding, so that neither equal sound nor its end can be read off the bytes.
    """
    samples = at_rate(sound, RATE) * 10 ** (gain_db / 20)
    padded = np.zeros(frames)
    padded[: min(frames, len(samples))] = samples[:frames]
    random = np.random.default_rng(int.from_bytes(hashlib.sha256(seed.encode()).digest()[:16], "big"))
    noise = random.random(frames) - random.random(frames)
    data = np.clip(np.round(padded * 32767 + noise), -32768, 32767).astype("<i2").tobytes()
    header = b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, RATE, RATE * 2, 2, 16)
    return header + b"data" + struct.pack("<I", len(data)) + data


def alone(sound: Decoded, seed: str) -> bytes:
    """The listening copy of a recording that belongs to no pair, at the level of the test."""
    gain, _ = gains(sound, sound) or (0.0, 0.0)
    return copy(sound, gain, frames_for(sound), seed)


def frames_for(*sounds: Decoded, characters: int = 0, pace: float = 0.0) -> int:
    """Frames both sides are padded to, never trimmed: what the text takes at this pace (s a character), where both fit in.

    Were it just the longer of the two, a pair with a damaged copy would be shorter for its text than a pair of two systems.
    Longer sounds are rounded up to half a second.
    """
    needed = max(len(at_rate(s, RATE)) for s in sounds)
    usual = math.ceil((LEAST_S + pace * characters) / STEP_S) if pace else 0
    return max(usual, math.ceil(needed / (STEP_S * RATE))) * int(STEP_S * RATE) if pace else needed


def pace_of(pairs: Sequence[tuple[float, int]]) -> float:
    """The pace at which the copies of nearly all these pairs fit. Args: (seconds of the longer recording, characters of the text)."""
    ratios = sorted(max(0.0, seconds - LEAST_S) / max(1, characters) for seconds, characters in pairs)
    return min(ratios[-1], 2 * ratios[len(ratios) // 2]) if ratios else 0.0
