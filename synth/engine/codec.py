"""Codecs: those a model brings from a hub by a name of its own are there before the first clip, and none remembers the clip before."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mlx.core as mx
from mlx.utils import tree_flatten

from synth.engine.protocol import EngineRefused

#: Model types whose codec can come from elsewhere (`model.codec`).
SEPARATE = ("fish_qwen3_omni",)


@contextmanager
def taken_from(folder: Path | None) -> Iterator[None]:
    """While it lasts, a model of such a type that is loaded takes its codec from this folder instead of its own."""
    if folder is None:
        yield
        return
    from mlx_audio.codec.models.fish_s1_dac import DAC

    stock = DAC.__dict__["from_pretrained"]
    DAC.from_pretrained = classmethod(lambda cls, *args, **options: stock.__func__(cls, str(folder)))
    try:
        yield
    finally:
        DAC.from_pretrained = stock


def bring(model: Any) -> str | None:
    """sha256 over the codec's weights, loaded now where the model would only load it to speak.

    None for a model whose checkpoint has its codec. Raises EngineRefused where it can't be had.
    """
    later = getattr(model, "_load_dac", None)  # ZONOS2; CSM has loaded its own with the model
    try:
        codec = later() if later else getattr(model, "_audio_tokenizer", None)
    except Exception as error:
        name = getattr(model.config, "dac_model_id", "")
        raise EngineRefused(
            f"The model's codec {name} can't be loaded on this worker: {type(error).__name__}: {str(error)[:300]}. Workers ask no hub by "
            "themselves: download it there first, or start the worker with HF_HUB_OFFLINE=0."
        ) from error
    if codec is None:
        return None
    digest = hashlib.sha256()
    for name, value in sorted(tree_flatten(codec.parameters())):
        digest.update(name.encode() + b"\0")
        if value.size:
            digest.update(memoryview(value.view(mx.uint8)))
    return digest.hexdigest()


def forget(model: Any) -> None:
    """CSM decodes each clip with what its codec still holds of the one before, unless it streams: one seed would not be one sound."""
    decoder = getattr(model, "_streaming_decoder", None)
    if decoder is not None:
        decoder.reset()
