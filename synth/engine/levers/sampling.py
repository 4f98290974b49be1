"""Sampling that changes while a sentence is spoken, and a compiled sampler."""

from __future__ import annotations

from typing import Any

import mlx.core as mx

from synth.engine.levers import Context
from synth.engine.protocol import EngineRefused


def _stock(model: Any, what: str) -> Any:
    stock = getattr(model, "_sample_token", None)
    if stock is None:
        raise EngineRefused(f"This model draws its tokens where nothing can reach it: {what} is not possible with it.")
    return stock


def schedule(context: Context, start: float, floor: float, steps: int) -> int:
    """The first codebook's temperature falls from `start` to `floor` over `steps` frames and stays there. Returns the frames it falls."""
    stock = _stock(context.model, "a temperature schedule")

    def sample(logits: Any, *args: Any, **options: Any) -> Any:
        if options.get("suppress_tokens"):  # only the talker's own call has them, once a frame
            spoken = len(options.get("generated_tokens") or ())
            options["temperature"] = temperature_at(spoken, start, floor, steps)
        return stock(logits, *args, **options)

    object.__setattr__(context.model, "_sample_token", sample)
    return steps


def temperature_at(frame: int, start: float, floor: float, steps: int) -> float:
    """Linear from start at frame 0 to floor at frame `steps`, floor from there on."""
    return start + (floor - start) * min(1.0, frame / steps)


def compile_sampler(context: Context) -> int:
    """The sampler's arithmetic as one graph for each set of options. Calls with a history of tokens stay as they are. Returns 1."""
    stock = _stock(context.model, "a compiled sampler")
    graphs: dict[tuple[tuple[str, Any], ...], Any] = {}

    def sample(logits: Any, *args: Any, **options: Any) -> Any:
        if args or any(isinstance(value, list) for value in options.values()):
            return stock(logits, *args, **options)
        key = tuple(sorted(options.items()))
        if key not in graphs:
            state = mx.random.state
            graphs[key] = mx.compile(lambda x: stock(x, **dict(key)), inputs=state, outputs=state)
        return graphs[key](logits)

    object.__setattr__(context.model, "_sample_token", sample)
    return 1
