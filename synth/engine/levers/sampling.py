"""Sampling that changes while a sentence is spoken, and a compiled sampler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx

from synth.engine.levers import Context
from synth.engine.protocol import EngineRefused

#: Where models draw a token: for one sentence, and for several at once.
SAMPLERS = ("_sample_token", "_sample_token_batch")


def replace(model: Any, what: str, made: Callable[[Any], Any]) -> None:
    """Puts `made(stock)` in the place of each of the model's samplers. Raises EngineRefused where it has none."""
    found = {name: getattr(model, name) for name in SAMPLERS if hasattr(model, name)}
    if not found:
        raise EngineRefused(f"This model draws its tokens where nothing can reach it: {what} is not possible with it.")
    for name, stock in found.items():
        object.__setattr__(model, name, made(stock))


def schedule(context: Context, start: float, floor: float, steps: int) -> int:
    """The first codebook's temperature falls from `start` to `floor` over `steps` frames and stays there. Returns the frames it falls."""

    def falling(stock: Any) -> Any:
        def sample(logits: Any, *args: Any, **options: Any) -> Any:
            if options.get("suppress_tokens"):  # only the talker's own call has them, once a frame
                # Sentences spoken together begin together: the longest so far tells the frame.
                rows = options.get("generated_tokens_per_seq") or [options.get("generated_tokens") or ()]
                options["temperature"] = temperature_at(max(len(row) for row in rows), start, floor, steps)
            return stock(logits, *args, **options)

        return sample

    replace(context.model, "a temperature schedule", falling)
    return steps


def temperature_at(frame: int, start: float, floor: float, steps: int) -> float:
    """Linear from start at frame 0 to floor at frame `steps`, floor from there on."""
    return start + (floor - start) * min(1.0, frame / steps)


def compile_sampler(context: Context) -> int:
    """The sampler's arithmetic as one graph for each set of options. Calls with a history of tokens stay as they are. Returns 1."""

    def compiled(stock: Any) -> Any:
        graphs: dict[tuple[tuple[str, Any], ...], Any] = {}

        def sample(logits: Any, *args: Any, **options: Any) -> Any:
            if args or any(isinstance(value, list) for value in options.values()):
                return stock(logits, *args, **options)
            key = tuple(sorted(options.items()))
            if key not in graphs:
                state = mx.random.state
                graphs[key] = mx.compile(lambda x: stock(x, **dict(key)), inputs=state, outputs=state)
            return graphs[key](logits)

        return sample

    replace(context.model, "a compiled sampler", compiled)
    return 1
