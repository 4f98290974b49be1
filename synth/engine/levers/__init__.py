"""Levers that are code. A lever is `lever(context, **parameters) -> int`: it changes the loaded model, and returns how many places."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

#: Registered name -> module:attribute.
REGISTRY = {
    "chunk-text": "synth.engine.levers.long_text:chunk",
    "fold-weight-norm": "synth.engine.levers.weight_norm:fold",
    "fuse-projections": "synth.engine.levers.fused:fuse",
    "watch-tokens": "synth.engine.forced:watch",
}
#: What the section `compile` may name, applied last; module:attribute beside it.
COMPILE = {
    "code-predictor": "synth.engine.levers.code_predictor:compile_frame",
    "sampler": "synth.engine.levers.sampling:compile_sampler",
}
#: They take over the sampler as it stands, whatever order they are named in.
COMPILE_LAST = ("code-predictor",)


@dataclass
class Context:
    """What a lever may touch: the model, the arguments of its generate(), and notes for the record."""

    model: Any
    generate: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
