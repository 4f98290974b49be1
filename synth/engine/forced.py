"""Teacher-forced comparison: what one system drew, given to another token by token, and how far their distributions are apart.

Free-running comparisons see two different utterances once sampling diverges; here both see the same history at every step.
The watch sits innermost, where the model's own sampler is, so that it sees the logits and hands tokens to whatever is around it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np

from synth.engine.distributions import Steps, compare, margins
from synth.engine.levers import Context
from synth.engine.levers.sampling import replace
from synth.engine.protocol import EngineRefused

#: Where the watch is found again on the model.
PLACE = "_earwitness_watch"


class Watch:
    """Keeps what each token was drawn from; with `forced`, hands out those tokens instead of drawing."""

    def __init__(self) -> None:
        self.forced: list[int] | None = None
        self.steps: list[dict[str, Any]] = []

    def begin(self, forced: list[int] | None) -> None:
        self.forced, self.steps = forced, []

    def around(self, stock: Any) -> Any:
        def sample(logits: Any, *args: Any, **options: Any) -> Any:
            token = stock(logits, *args, **options)  # drawn in any case: the state of the random numbers goes on alike
            k = len(self.steps)
            if self.forced is not None and k < len(self.forced):
                token = mx.full(token.shape, self.forced[k], dtype=token.dtype)
            suppressed, last = list(options.get("suppress_tokens") or ()), logits.reshape(-1, logits.shape[-1])[-1]
            self.steps.append(
                {
                    "logits": np.array(last.astype(mx.float32)), "token": int(token.reshape(-1)[0].item()),
                    "suppressed": suppressed, "history": [int(t) for t in options.get("generated_tokens") or ()][-64:],
                    **{name: float(options.get(name, default)) for name, default in DEFAULTS.items()},
                }
            )  # fmt: skip
            return token

        return sample


#: What the samplers do where they are not told.
DEFAULTS = {"temperature": 1.0, "top_k": 0.0, "top_p": 1.0, "repetition_penalty": 1.0}


def watch(context: Context) -> int:
    """A lever that changes no sound: lets every token be seen. Raises EngineRefused where nothing can reach the sampler."""
    made = Watch()
    replace(context.model, "a teacher-forced comparison", made.around)
    object.__setattr__(context.model, PLACE, made)
    return 1


def _said(engine: Any, order: dict[str, Any], forced: list[int] | None) -> Steps:
    found: Watch | None = getattr(engine.context.model, PLACE, None)
    if found is None:
        raise EngineRefused("This configuration was loaded without a watch on its tokens.")
    found.begin(forced)
    for _ in engine.generate(order["text"], order["language"], order["seed"]):
        pass
    if not found.steps:
        raise EngineRefused("The model drew no token where it can be seen: it can't be compared token by token.")
    eos = getattr(getattr(engine.context.model.config, "talker_config", None), "codec_eos_token_id", None)
    return Steps.of(found.steps, eos)


def record(engine: Any, order: dict[str, Any]) -> dict[str, Any]:
    """Speaks, and keeps the tokens with the logits they were drawn from in `order["file"]`."""
    steps = _said(engine, order, None)
    steps.save(Path(order["file"]))
    return {"frames": steps.frames, "margins": margins(steps)}


def replay(engine: Any, order: dict[str, Any]) -> dict[str, Any]:
    """Goes the recorded way with this model, and says how far its distributions are from the recorded ones at every codebook."""
    recorded = Steps.load(Path(order["file"]))
    steps = _said(engine, order, recorded.tokens.tolist())
    if len(steps.tokens) < len(recorded.tokens):
        raise EngineRefused(
            f"The candidate took {len(steps.tokens)} steps where the parent took {len(recorded.tokens)}: they don't draw in the same order."
        )
    return {"codebooks": compare(recorded, steps), "margins": margins(steps)}
