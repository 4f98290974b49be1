"""Where a model's time goes, component by component. Each bracket forces evaluation, so this is a run of its own and no claim of speed."""

from __future__ import annotations

import time
from typing import Any

import mlx.core as mx
from mlx.utils import tree_flatten

#: Repeats for the cost of one forced evaluation.
CALIBRATION = 200


class _Timed:
    """Stands in for a component and adds up the time of its calls."""

    def __init__(self, stock: Any) -> None:
        self.stock, self.seconds, self.calls = stock, 0.0, 0

    def __call__(self, *args: Any, **options: Any) -> Any:
        mx.eval([a for a in (*args, *options.values()) if isinstance(a, mx.array)])  # what came before is not this one's time
        begin = time.perf_counter()
        result = self.stock(*args, **options)
        mx.eval([value for _, value in tree_flatten(result) if isinstance(value, mx.array)])
        self.seconds += time.perf_counter() - begin
        self.calls += 1
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stock, name)


def _places(model: Any) -> dict[str, tuple[Any, str]]:
    """Component -> where it hangs: talker, code predictor and codec where there are such, else the model's own parts."""
    talker, tokenizer = getattr(model, "talker", None), getattr(model, "speech_tokenizer", None)
    if talker is not None:
        found = {
            "talker": (model, "talker"), "code predictor": (talker, "code_predictor"), "codec": (tokenizer, "decode"),
            "codec, in pieces": (tokenizer, "decoder"),
        }  # fmt: skip
        return {name: place for name, place in found.items() if getattr(*place, None) is not None}
    return {name: (model, name) for name, child in model.children().items() if callable(child)}


def _sync_s() -> float:
    """Median seconds that forcing the evaluation of next to nothing takes."""
    x, times = mx.zeros((8,)), []
    for _ in range(CALIBRATION):
        y = x + 1
        begin = time.perf_counter()
        mx.eval(y)
        times.append(time.perf_counter() - begin)
    return sorted(times)[CALIBRATION // 2]


def measure(engine: Any, order: dict[str, Any]) -> dict[str, Any]:
    """{"plain_s", "watched_s", "sync_s", "tokens", "parts": [{name, seconds, calls}]}: seconds less the calibrated cost of the brackets."""

    def said() -> tuple[float, int]:
        begin = time.perf_counter()
        tokens = sum(chunk.tokens for chunk in engine.generate(order["text"], order["language"], order["seed"]))
        return time.perf_counter() - begin, tokens

    said()  # a warm-up
    plain, tokens = said()
    stands = {}
    for name, (parent, attribute) in _places(engine.context.model).items():
        stands[name] = _Timed(getattr(parent, attribute))
        if isinstance(parent, dict):
            dict.pop(parent, attribute, None)  # an MLX module keeps its children as items of a dict
        object.__setattr__(parent, attribute, stands[name])
    sync = _sync_s()
    watched, _ = said()
    parts = [
        {"name": name, "seconds": max(0.0, one.seconds - one.calls * sync), "calls": one.calls} for name, one in stands.items() if one.calls
    ]
    return {"plain_s": plain, "watched_s": watched, "sync_s": sync, "tokens": tokens, "parts": parts}
