"""A tiny Fish S2 checkpoint with random weights: both transformers, and the codec in the same folder.

Two traps: the tokenizer must have all 4096 semantic tokens, and the codec's loader builds one fixed architecture. It takes the
sizes of convolutions and feed-forward layers from the weights it is given, so those are small; its quantiser stays 1024 wide, with
sixteen layers of attention, and is written in half precision.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import mlx.core as mx
from mlx.utils import tree_flatten

from tests.synth import tiny

WORDS = (
    "<|endoftext|>", "<|pad|>", "<|im_start|>", "<|im_end|>", "<|text|>", "<|voice|>", "<|interleave|>", "system", "user", "assistant",
)  # fmt: skip
SEMANTIC = 4096
FIRST = 256 + len(WORDS)
WIDTH = 1024  # of the codec's quantiser
_LAYERS = {"n_head": 4, "n_local_heads": 2, "head_dim": 16, "dim": 64, "intermediate_size": 128}
CONFIG = {
    "model_type": "fish_qwen3_omni", "sample_rate": 44100, "pad_token_id": 257, "eos_token_id": 259, "audio_pad_token_id": 257,
    "semantic_start_token_id": FIRST, "semantic_end_token_id": FIRST + SEMANTIC - 1,
    "text_config": {**_LAYERS, "vocab_size": FIRST + SEMANTIC, "n_layer": 2, "max_seq_len": 1024},
    "audio_decoder_config": {**_LAYERS, "vocab_size": SEMANTIC, "n_layer": 1, "text_dim": 64, "num_codebooks": 10},
}  # fmt: skip


def _codec() -> dict[str, mx.array]:
    """Weights of the codec's own classes, made as small as its loader lets them be."""
    from mlx_audio.codec.models.fish_s1_dac import fish_s1_dac as s1

    def attention(dim: int, layers: int) -> Any:
        return s1.ModelArgs(n_layer=layers, n_head=16, head_dim=64, dim=dim, intermediate_size=4)

    def listening(**asked: Any) -> Any:
        return attention(asked["dim"], asked["n_layer"])

    quantiser = s1.DownsampleResidualVectorQuantize(
        input_dim=WIDTH,
        pre_module=s1.WindowLimitedTransformer(attention(WIDTH, 8), input_dim=WIDTH, window_size=128),
        post_module=s1.WindowLimitedTransformer(attention(WIDTH, 8), input_dim=WIDTH, window_size=128),
    )
    for block in quantiser.downsample + quantiser.upsample:
        block[1] = s1.ConvNeXtBlock(WIDTH, mlp_ratio=4 / WIDTH)
    codec = s1.DAC(
        encoder_dim=4, latent_dim=WIDTH, decoder_dim=32, quantizer=quantiser, encoder_transformer_layers=[0, 0, 0, 4],
        transformer_general_config=listening,
    )  # fmt: skip
    weights = dict(tree_flatten(tiny.randomise(codec, 1).parameters()))
    return {name: value.astype(mx.float16) for name, value in weights.items() if not name.endswith("freqs_cis")}  # not random


def write(folder: Path) -> None:
    """Writes the checkpoint. Call it in a process of its own: whoever imported MLX must not fork."""
    from mlx_audio.tts.models.fish_qwen3_omni import Model, ModelConfig

    tiny.save(folder, tiny.randomise(Model(ModelConfig.from_dict(CONFIG)), 0), CONFIG)
    tiny.byte_tokenizer(
        folder, (*WORDS, *(f"<|semantic:{code}|>" for code in range(SEMANTIC))), eos_token="<|im_end|>", pad_token="<|pad|>"
    )
    mx.save_safetensors(str(folder / "codec.safetensors"), _codec())


if __name__ == "__main__":
    write(Path(sys.argv[1]))
