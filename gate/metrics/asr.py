"""Speech recognition: what a listener would write down. One protocol, one set of settings, two implementations of Whisper."""

from __future__ import annotations

import hashlib
import os
import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gate.metrics import resample
from synth import pauses

SHORTEST_S = 0.1
#: Whisper reads windows of 30 s. A window that is nearly empty invites invented text, so a longer clip is cut into even pieces.
PIECE_S = 28.0
#: mlx-audio stops at half of Whisper's text window unless told otherwise; Hindi has more than a token a character.
MOST_TOKENS = 440


@dataclass(frozen=True)
class Settings:
    """How every recogniser decodes; part of a score's identity. A scalar temperature has no fallback to fall back to."""

    task: str = "transcribe"
    temperature: float = 0.0
    beam: int = 1
    previous_text: bool = False
    timestamps: bool = False
    no_speech_rule: bool = False
    padding: str = "zeros-30s"
    pieces: str = f"{PIECE_S:g}s-at-quietest"

    def __str__(self) -> str:
        """Short and complete: language is always forced."""
        off = [name for name in ("previous_text", "timestamps", "no_speech_rule") if not getattr(self, name)]
        greedy = f"t{self.temperature:g}-beam{self.beam}"
        return f"{self.task},forced-language,{greedy},{','.join(f'no-{name}' for name in off)},{self.padding},{self.pieces}"


SETTINGS = Settings()


@dataclass(frozen=True)
class Transcript:
    text: str


class Recogniser(Protocol):
    """`identity` names model, settings and library: scores with different identities are never compared."""

    identity: str

    def transcribe(self, samples: npt.NDArray[np.float32], sample_rate: int, language: str) -> Transcript:
        """Text of a clip of mono samples in [-1, 1]; empty for one under 100 ms, which is not sent to the model."""
        ...


def pieces(samples: npt.NDArray[np.float32], sample_rate: int) -> list[npt.NDArray[np.float32]]:
    """The clip in even pieces of at most 28 s, each cut at the quietest 10 ms within a tenth of a piece of the even place."""
    count = int(np.ceil(len(samples) / (PIECE_S * 0.9 * sample_rate))) if len(samples) > PIECE_S * sample_rate else 1
    if count == 1:
        return [samples]
    size = sample_rate * pauses.FRAME_MS // 1000
    levels = pauses.frame_levels(samples, sample_rate)
    even, cuts = len(levels) / count, [0]
    for k in range(1, count):
        low, high = int((k - 0.05) * even), int((k + 0.05) * even)
        cuts.append((low + int(np.argmin(levels[low:high]))) * size)
    return [samples[a:b] for a, b in zip(cuts, [*cuts[1:], len(samples)], strict=True)]


def file_hash(file: Path) -> str:
    """First 12 hex digits of a model file's sha256, kept beside it: such files are large and never change."""
    kept, mark = file.with_suffix(file.suffix + ".sha256"), f"{file.stat().st_size}-{file.stat().st_mtime_ns}"
    try:
        known, found = kept.read_text().split()
        if known == mark:
            return found[:12]
    except (OSError, ValueError):
        pass
    with file.open("rb") as handle:
        found = hashlib.file_digest(handle, "sha256").hexdigest()
    part = kept.with_suffix(f".part{os.getpid()}")
    try:
        part.write_text(f"{mark} {found}")
        part.replace(kept)
    except OSError:
        pass  # a folder that can't be written: hashed again next time
    return found[:12]


def model_hash(folder: Path, weights: list[Path]) -> str:
    """What a model is: its weights, and the settings and the vocabulary beside them. Raises FileNotFoundError without weights."""
    if not weights or not all(file.is_file() for file in weights):
        raise FileNotFoundError(f"{folder} holds no weights")
    beside = hashlib.sha256()
    for name in (
        "config.json",
        "tokenizer.json",
        "vocabulary.txt",
        "vocabulary.json",
        "generation_config.json",
        "preprocessor_config.json",
    ):
        if (folder / name).is_file():
            beside.update(name.encode() + b"\0" + (folder / name).read_bytes())
    return "+".join(file_hash(file) for file in weights) + "." + beside.hexdigest()[:8]


class FasterWhisper:
    """Whisper through CTranslate2, int8. One thread: scoring hosts run one process per core."""

    def __init__(self, folder: Path) -> None:
        from faster_whisper import WhisperModel

        self.identity = self.identify(folder)
        self._model = WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=1)

    @staticmethod
    def identify(folder: Path) -> str:
        library = f"faster-whisper-{version('faster-whisper')}+ctranslate2-{version('ctranslate2')}"
        return f"{library}/{model_hash(folder, [folder / 'model.bin'])}/int8/{SETTINGS}/{resample.identity()}"

    def transcribe(self, samples: npt.NDArray[np.float32], sample_rate: int, language: str) -> Transcript:
        if len(samples) < SHORTEST_S * sample_rate:
            return Transcript("")
        texts = []
        for piece in pieces(resample.to_16k(samples, sample_rate), resample.RATE):
            segments, _ = self._model.transcribe(
                piece, language=language, task=SETTINGS.task, beam_size=SETTINGS.beam, temperature=SETTINGS.temperature,
                condition_on_previous_text=SETTINGS.previous_text, without_timestamps=not SETTINGS.timestamps,
                no_speech_threshold=None, log_prob_threshold=None, compression_ratio_threshold=None, vad_filter=False,
            )  # fmt: skip
            texts += [segment.text.strip() for segment in segments]
        return Transcript(" ".join(texts).strip())


class MlxWhisper:
    """Whisper through mlx-audio: float16 on Metal, float32 on a CPU, where half precision takes ten times as long."""

    def __init__(self, folder: Path) -> None:
        import mlx.core as mx
        from mlx_audio.stt import load

        self.identity = self.identify(folder)
        self._model: Any = load(str(folder))
        self._half = mx.metal.is_available()
        if not self._half:
            self._model.set_dtype(mx.float32)
            self._model.dtype = mx.float32
            encoder = self._model.encoder
            encoder._positional_embedding = encoder._positional_embedding.astype(mx.float32)

    @staticmethod
    def identify(folder: Path) -> str:
        library = f"mlx-audio-{version('mlx-audio')}+mlx-{version('mlx')}"
        weights = sorted(folder.glob("*.safetensors")) or sorted(folder.glob("*.npz"))
        precision = "float16" if platform.system() == "Darwin" else "float32"
        return f"{library}/{model_hash(folder, weights)}/{precision}/{SETTINGS}/{resample.identity()}"

    def transcribe(self, samples: npt.NDArray[np.float32], sample_rate: int, language: str) -> Transcript:
        if len(samples) < SHORTEST_S * sample_rate:
            return Transcript("")
        texts = []
        for piece in pieces(resample.to_16k(samples, sample_rate), resample.RATE):
            result = self._model.generate(  # an array, never a path: mlx-audio would resample a file its own way
                piece, language=language, task=SETTINGS.task, temperature=SETTINGS.temperature,
                condition_on_previous_text=SETTINGS.previous_text, return_timestamps=SETTINGS.timestamps, no_speech_threshold=None,
                logprob_threshold=None, compression_ratio_threshold=None, fp16=self._half,
                sample_len=MOST_TOKENS,
            )  # fmt: skip
            texts.append(result.text.strip())
        return Transcript(" ".join(texts).strip())


KINDS: dict[str, type[FasterWhisper] | type[MlxWhisper]] = {"faster-whisper": FasterWhisper, "mlx-audio": MlxWhisper}
