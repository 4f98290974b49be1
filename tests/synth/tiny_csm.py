"""A tiny CSM checkpoint with random weights: backbone and depth decoder, and in a hub's cache all that it fetches by name.

Its loader names the repositories of the codec, the tokenizer and the voices itself: they are found with HF_HUB_CACHE set to the
folder `hub` beside the checkpoint. The codec, Mimi, is of one fixed size and loaded strictly, under the names of its first release.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import mlx.core as mx
import numpy as np
import soundfile
from mlx.utils import tree_flatten

from tests.synth import tiny

CODES, CODEBOOKS, RATE = 2048, 32, 24000
_ROPE = {"factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"}
_LAYERS = {
    "attention_bias": False, "attention_dropout": 0.0, "head_dim": 16, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02,
    "intermediate_size": 128, "max_position_embeddings": 2048, "mlp_bias": False, "num_attention_heads": 4, "num_codebooks": CODEBOOKS,
    "num_key_value_heads": 2, "rms_norm_eps": 1e-5, "rope_scaling": _ROPE, "rope_theta": 500000, "use_cache": True, "vocab_size": CODES,
}  # fmt: skip
CONFIG = {
    **_LAYERS, "model_type": "csm", "num_hidden_layers": 2, "text_vocab_size": 320, "audio_vocab_size": CODES,
    "audio_num_codebooks": CODEBOOKS,
    "depth_decoder_config": {
        **_LAYERS, "model_type": "csm_depth_decoder_model", "num_hidden_layers": 1, "backbone_hidden_size": 64,
    },
}  # fmt: skip
VOICES = {"conversational_a": 180, "conversational_b": 400}


def _released(name: str, value: mx.array) -> tuple[str, mx.array]:
    """A tensor of Mimi as it is named and laid out in its release: what its loader undoes."""
    name = name.replace(".block.1.", ".block.3.").replace(".block.0.", ".block.1.").replace(".gating.linear", ".linear")
    if name.endswith((".conv.weight", ".output_proj.weight", ".input_proj.weight")):
        value = value.swapaxes(-1, -2)
    if name.endswith(".convtr.weight"):
        value = value.transpose(0, 2, 1) if value.shape[2] == 1 else value.transpose(2, 0, 1)
    if name.endswith((".cluster_usage", ".initialized")):
        value = mx.ones(value.shape)
    return name, mx.contiguous(value)


def write(folder: Path) -> None:
    """Writes the checkpoint, and what it fetches into `hub` beside it. Call it in a process of its own: whoever imported MLX must not fork."""
    from mlx_audio.codec.models.mimi import mimi
    from mlx_audio.tts.models.sesame.sesame import MIMI_REPO, TOKENIZER_REPO, SesameModel

    hub = folder.parent / "hub"
    model = tiny.randomise(SesameModel(CONFIG), 0)
    tiny.save(folder, {f"model.{name}": value for name, value in tree_flatten(model.parameters())}, CONFIG)
    codec = tiny.randomise(mimi.Mimi(mimi.mimi_202407(CODEBOOKS)), 1)
    tensors = dict(_released(name, value) for name, value in tree_flatten(codec.parameters()))
    mx.save_safetensors(str(tiny.cached(hub, MIMI_REPO) / "tokenizer-e351c8d8-checkpoint125.safetensors"), tensors)
    bos, eos = "<|begin_of_text|>", "<|end_of_text|>"
    llama = tiny.cached(hub, TOKENIZER_REPO)
    tiny.byte_tokenizer(llama, (bos, eos), bos_token=bos, eos_token=eos)
    (llama / "config.json").write_text(json.dumps({"model_type": "llama"}))
    voices = tiny.cached(hub, "sesame/csm-1b") / "prompts"
    voices.mkdir(exist_ok=True)
    for name, hertz in VOICES.items():
        (voices / f"{name}.txt").write_text("Far out.")
        soundfile.write(voices / f"{name}.wav", 0.3 * np.sin(2 * np.pi * hertz * np.arange(RATE // 2) / RATE), RATE)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
