"""Samples to bytes and back: hashes, FLAC, and the checks an upload must pass. NumPy and soundfile only, no Django."""

from __future__ import annotations

import hashlib
import io
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soundfile

MAX_SECONDS = 1800.0
RATES = range(4000, 192001)


class BadAudio(ValueError):
    """Sound that can't be taken, with the reason in one sentence."""


@dataclass(frozen=True)
class Decoded:
    """samples: float32 mono in [-1, 1]; sample_rate in Hz."""

    samples: npt.NDArray[np.float32]
    sample_rate: int


def pcm_sha256(samples: npt.NDArray[np.float32], sample_rate: int) -> str:
    """sha256 over rate, channel count and little-endian float32 samples: equal only when bit for bit the same sound."""
    header = f"{sample_rate}:1:".encode()
    return hashlib.sha256(header + np.ascontiguousarray(samples, dtype="<f4").tobytes()).hexdigest()


def encode_flac(samples: npt.NDArray[np.float32], sample_rate: int) -> bytes:
    """FLAC, 16 bit. Values beyond full scale are clipped, as any player would. Raises BadAudio for what isn't sound."""
    if samples.ndim != 1 or not len(samples):
        raise BadAudio("there are no samples")
    if not np.isfinite(samples).all():
        raise BadAudio(f"{int((~np.isfinite(samples)).sum())} samples are not finite")
    out = io.BytesIO()
    soundfile.write(out, np.clip(samples, -1.0, 1.0), sample_rate, format="FLAC", subtype="PCM_16")
    return out.getvalue()


def _check_riff(data: bytes | Path) -> None:
    """libsndfile reads what is there when a RIFF header lies about the size; a lying header is refused here."""
    if isinstance(data, Path):
        with data.open("rb") as handle:
            head, size = handle.read(12), data.stat().st_size
    else:
        head, size = data[:12], len(data)
    announced = int.from_bytes(head[4:8], "little") + 8
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE" and not announced <= size <= announced + 1:
        raise BadAudio(f"its header announces {announced} bytes and it has {size}")


def decode(data: bytes | Path, only: str = "") -> Decoded:
    """Reads an audio file of any format libsndfile knows, or `only` of one; several channels are refused. Raises BadAudio."""
    try:
        _check_riff(data)
        with soundfile.SoundFile(io.BytesIO(data) if isinstance(data, bytes) else str(data)) as sound:
            rate, frames, channels = sound.samplerate, sound.frames, sound.channels
            if only and sound.format != only:
                raise BadAudio(f"it is a {sound.format} file; {only} is expected")
            if channels != 1:
                raise BadAudio(f"it has {channels} channels; one is expected")
            if rate not in RATES:
                raise BadAudio(f"a sample rate of {rate} Hz is outside {RATES.start} to {RATES.stop - 1}")
            if not frames:
                raise BadAudio("there are no samples")
            if frames > MAX_SECONDS * rate:
                raise BadAudio(f"it lasts {frames / rate:.0f} s; the limit is {MAX_SECONDS:.0f} s")
            samples = sound.read(dtype="float32")
    except soundfile.LibsndfileError as error:
        raise BadAudio(f"it is not a sound file that can be read ({error})") from error
    if len(samples) != frames:
        raise BadAudio(f"the file announces {frames} samples and holds {len(samples)}")
    if not np.isfinite(samples).all():
        raise BadAudio("some samples are not finite")
    return Decoded(samples, rate)


def at_rate(sound: Decoded, rate: int) -> npt.NDArray[np.float64]:
    """Its samples at `rate` Hz; as they are where it has that rate."""
    if sound.sample_rate == rate:
        return sound.samples.astype(np.float64)
    from scipy.signal import resample_poly  # a second of start-up that the first sound of a server should not pay

    divisor = math.gcd(sound.sample_rate, rate)
    out: npt.NDArray[np.float64] = resample_poly(sound.samples.astype(np.float64), rate // divisor, sound.sample_rate // divisor)
    return out
