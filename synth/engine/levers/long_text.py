"""Long text in pieces: split where a speaker would pause, spoken one after the other, joined with a pause."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import mlx.core as mx

from synth.engine.levers import Context
from synth.engine.pieces import pieces


def chunk(context: Context, characters: int, pause_ms: int = 120) -> int:
    """Makes generate() speak piece by piece. Each piece is a segment of its own, so that a cap of tokens holds for each. Returns 1."""
    if characters < 20 or not 0 <= pause_ms <= 2000:
        raise TypeError("characters is 20 or more, pause_ms from 0 to 2000")
    stock = context.model.generate

    @functools.wraps(stock)
    def generate(text: str, **options: Any) -> Iterator[Any]:
        parts = pieces(text, characters)
        for k, part in enumerate(parts):
            last = None
            for last in stock(text=part, **options):
                yield replace(last, segment_idx=k)
            if last is not None and pause_ms and k < len(parts) - 1:
                yield replace(last, segment_idx=k, token_count=0, audio=mx.zeros((int(last.sample_rate * pause_ms / 1000),)))

    object.__setattr__(context.model, "generate", generate)
    return 1
