"""Work that tells whether the machine is itself: timed before and after each pass. A neighbour on the GPU shows nowhere else."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import mlx.core as mx

from synth.engine.protocol import YARDSTICK

#: Frames of codes that a codec decodes for this; half a second or so.
FRAMES = 6


def read(model: Any) -> dict[str, float]:
    """Median seconds of the yardstick - products of matrices no lever touches - and of the model's codec alone, where it has one."""
    side = 2048 if mx.metal.is_available() else 512
    a, b = mx.full((side, side), 0.5), mx.full((side, side), 0.25)

    def products() -> Any:
        c = a
        for _ in range(16):
            c = (c @ b) / side
        return c

    found = {YARDSTICK: _median_s(products)}
    tokenizer = getattr(model, "speech_tokenizer", None)
    decoder, groups = getattr(tokenizer, "decoder", None), _groups(model)
    if decoder is not None and groups:
        codes = mx.zeros((1, groups, FRAMES), dtype=mx.int32)
        try:
            found["codec"] = _median_s(lambda: decoder(codes))
        except Exception:  # noqa: BLE001 - a codec that wants more than codes is not watched; nothing depends on it
            return found
    return found


def _groups(model: Any) -> int:
    talker = getattr(getattr(model, "config", None), "talker_config", None)
    return int(getattr(talker, "num_code_groups", 0))


def _median_s(work: Callable[[], Any]) -> float:
    times = []
    for _ in range(6):
        begin = time.perf_counter()
        mx.eval(work())
        times.append(time.perf_counter() - begin)
    return sorted(times[1:])[2]  # the first one may compile
