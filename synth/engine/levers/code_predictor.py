"""The frame of a Qwen3-TTS code predictor as one compiled graph: fifteen small passes cost one dispatch, and not a bit changes.

The model's own decoding loop stays. Its code predictor is replaced by a stand-in that computes all tokens of a frame at the first
pass and hands them out when the loop asks for them one after another.
"""

from __future__ import annotations

from typing import Any

import mlx.core as mx

from synth.engine.levers import Context
from synth.engine.levers.sampling import replace
from synth.engine.protocol import EngineRefused


class _Cache:
    """Keys and values that only grow, so that the traced function changes nothing outside of itself."""

    def __init__(self) -> None:
        self.keys: Any = None
        self.values: Any = None
        self.offset = 0

    def update_and_fetch(self, keys: Any, values: Any) -> tuple[Any, Any]:
        if self.keys is not None:
            keys, values = mx.concatenate([self.keys, keys], axis=2), mx.concatenate([self.values, values], axis=2)
        self.keys, self.values, self.offset = keys, values, keys.shape[2]
        return keys, values


class _Frame:
    """Stands in for the code predictor."""

    def __init__(self, predictor: Any, groups: int) -> None:
        self.predictor, self.groups = predictor, groups
        self.sample: Any = None  # the sampler that drew this frame's first token, and how
        self.options: dict[str, Any] = {}
        self.graphs: dict[tuple[Any, ...], Any] = {}
        self.tokens: Any = None
        self.step = 0

    def _passes(self, inputs: Any, options: tuple[tuple[str, Any], ...]) -> Any:
        cache, tokens = [_Cache() for _ in self.predictor.model.layers], []
        for step in range(self.groups - 1):
            logits, _, _ = self.predictor(inputs, cache=cache, generation_step=step)
            token = self.sample(logits, **dict(options))
            tokens.append(token)
            inputs = self.predictor.codec_embedding[step](token)
        return mx.concatenate(tokens, axis=1)

    def __call__(self, inputs: Any, cache: Any = None, generation_step: int = 0, **ignored: Any) -> tuple[Any, Any, int]:
        if generation_step == 0:
            options = tuple(sorted(self.options.items()))
            key = (self.sample, options)
            if key not in self.graphs:
                state = mx.random.state  # drawn from and put back, so that the same seed gives the same tokens
                self.graphs[key] = mx.compile(lambda x: self._passes(x, options), inputs=state, outputs=state)
            self.tokens = self.graphs[key](inputs)
        self.step = generation_step
        return self.tokens, cache, generation_step + 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self.predictor, name)


def compile_frame(context: Context) -> int:
    """Compiles the passes; bit-identical to the loop. Returns how many are one now. Raises EngineRefused where there are none."""
    model = context.model
    talker = getattr(model, "talker", None)
    predictor = getattr(talker, "code_predictor", None)
    if predictor is None:
        raise EngineRefused("This model has no code predictor to compile: leave code-predictor out of the section compile.")
    groups = model.config.talker_config.num_code_groups
    frame = _Frame(predictor, groups)

    def handing_out(stock: Any) -> Any:
        def sample(logits: Any, *args: Any, **options: Any) -> Any:
            if frame.tokens is not None and logits is frame.tokens:
                return logits[:, frame.step : frame.step + 1]
            frame.sample = stock
            frame.options.update({name: options[name] for name in ("temperature", "top_k", "top_p") if name in options})
            return stock(logits, *args, **options)

        return sample

    replace(model, "a compiled code predictor", handing_out)
    dict.pop(talker, "code_predictor", None)  # an MLX module keeps its children as items of a dict
    object.__setattr__(talker, "code_predictor", frame)
    return groups - 1
