"""What an engine is, and how the synthesis child and its supervisor talk: one JSON object a line, both ways.

To the child: {"op": "load", "configuration", "models", "modules"}, then any number of
{"op": "clip", "id", "text", "language", "seed", "out"}, {"op": "batch", "rows": [{"id", "text"}], "language", "seed", "out"},
{"op": "tensors"}, {"op": "sentinels"}, {"op": "near", "streamed", "whole", "seams"} and {"op": "look", "what", ...}, a closer look.
The end of its input ends it.
From the child, one answer to each: {"event": "ready", "report"}, {"event": "clip", ...}, {"event": "batch", "clips", "figures"},
{"event": "tensors", "tensors"}, {"event": "sentinels", "seconds"}, {"event": "near" or "look", "found"} or {"event": "refused", "error"}.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # the supervisor's side reads this module, too, and must not pay for NumPy
    import numpy as np
    import numpy.typing as npt


#: The sentinel that is the same work whatever the model.
YARDSTICK = "yardstick"


class EngineRefused(Exception):
    """This configuration can't run here; the message is one sentence for the lever's page."""


@dataclass(frozen=True)
class Chunk:
    """A piece of speech, fully computed: float32 mono samples, their rate in Hz, tokens spent on it.

    `segment`: which part of the text it belongs to, for models that generate part by part; the token cap holds for each.
    `row`: which of the texts it belongs to, where several are spoken at once.
    """

    samples: npt.NDArray[np.float32]
    sample_rate: int
    tokens: int = 0
    segment: int = 0
    row: int = 0


@dataclass
class Report:
    """What loading found: `effects` counts what each section changed; `digests` name weights and code."""

    digests: dict[str, str] = field(default_factory=dict)
    effects: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)


class Engine(Protocol):
    """A loaded system. Made by a factory `(configuration: dict, models: Path, modules: list[str]) -> Engine`."""

    report: Report
    #: Tokens after which the model is stopped whatever it is doing; None when it has no such cap.
    token_cap: int | None

    def generate(self, text: str, language: str, seed: int) -> Iterator[Chunk]:
        """Speaks; every chunk is evaluated before it is yielded, so that a clock read after it is honest."""

    def generate_batch(self, texts: list[str], language: str, seed: int) -> Iterator[Chunk]:
        """Speaks all texts at once; only asked of a configuration with the section batching."""


def check_digest(what: str, found: str, wanted: str | None) -> None:
    """Raises EngineRefused where the configuration names another sha256 than was found; None names none."""
    if wanted not in (None, found):
        raise EngineRefused(f"{what} has sha256 {found[:12]}, the configuration names {str(wanted)[:12]}.")


def voice_file(models: Path, reference: str) -> Path:
    """Where a worker keeps the recording a voice is cloned from."""
    return models / "voices" / f"{reference}.flac"


def offline_hint(source: dict[str, Any]) -> str:
    """What to do where something is to come from a hub and this worker asks none."""
    if not source.get("id") or os.environ.get("HF_HUB_OFFLINE") == "0":
        return ""
    return " Workers ask no hub by themselves: download it there first, or start the worker with HF_HUB_OFFLINE=0."


BUNDLED = {"mlx-audio": "synth.engine.mlx:MlxEngine"}


def resolve(name: str, group: str, bundled: dict[str, str], modules: list[str]) -> Any:
    """The object a name stands for: bundled, an entry point of `group`, or module:attribute from the worker's own list."""
    if name in bundled:
        name = bundled[name]
    elif ":" not in name:
        for entry in entry_points(group=group):
            if entry.name == name:
                return entry.load()
        raise EngineRefused(f"{name!r} is neither bundled nor an entry point of {group}: install its package on the worker.")
    elif name.split(":")[0] not in modules:
        raise EngineRefused(
            f"{name!r} is not on this worker's list of modules: add {name.split(':')[0]} to EARWITNESS_MODULES where the worker runs."
        )
    module, attribute = name.split(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise EngineRefused(f"{name!r} can't be imported on the worker: {error}.") from error
