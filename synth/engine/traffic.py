"""Bytes of weights that a frame of a loaded model reads, by the model's own shapes."""

from __future__ import annotations

from typing import Any

from mlx.utils import tree_flatten

#: Tables of which a step reads a row, not the whole.
TABLES = ("embedding", "embed_tokens")


def _bytes(module: Any, without: tuple[str, ...] = TABLES) -> int:
    return sum(value.nbytes for name, value in tree_flatten(module.parameters()) if not any(part in name for part in without))


def of(model: Any) -> dict[str, float] | None:
    """Once a frame, and again on each pass of a code predictor; None for a model that does not speak frame by frame."""
    talker = getattr(model, "talker", None)
    predictor = getattr(talker, "code_predictor", None)
    if predictor is None or not hasattr(predictor, "lm_head"):
        return None
    passes = len(predictor.lm_head)
    heads = sum(_bytes(head) for head in predictor.lm_head)
    inner = _bytes(predictor) - heads
    return {"once": _bytes(talker) - _bytes(predictor) + heads, "repeated": inner, "passes": passes}
