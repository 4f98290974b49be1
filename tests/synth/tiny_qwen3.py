"""A tiny Qwen3-TTS checkpoint with random weights: every real class of mlx-audio, noise instead of speech.

Two traps: the speech tokenizer's loader guesses convolution layouts from shapes (channels must be above 64 where the kernel
is 1), and the prompt builder needs "assistant" to be one token.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import mlx.core as mx
from mlx.utils import tree_flatten

from tests.synth import tiny

CODES, HIDDEN, GROUPS = 64, 64, 16
_LAYERS = {
    "hidden_size": HIDDEN, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 16, "num_code_groups": GROUPS,
}  # fmt: skip
CONFIG = {
    "model_type": "qwen3_tts", "tts_model_type": "custom_voice", "tts_model_size": "tiny", "sample_rate": 24000,
    "im_start_token_id": 256, "im_end_token_id": 257, "tts_pad_token_id": 260, "tts_bos_token_id": 261, "tts_eos_token_id": 262,
    "speaker_encoder_config": {
        "enc_dim": HIDDEN, "enc_channels": [144, 144, 144, 144, 432], "enc_attention_channels": 72, "enc_se_channels": 72,
        "enc_res2net_scale": 2,
    },
    "talker_config": {
        **_LAYERS, "vocab_size": 1024 + CODES, "text_hidden_size": HIDDEN, "text_vocab_size": 272,
        "code_predictor_config": {**_LAYERS, "vocab_size": CODES, "max_position_embeddings": 128},
        "codec_pad_id": CODES + 4, "codec_bos_id": CODES + 5, "codec_eos_token_id": CODES + 6, "codec_think_id": CODES + 10,
        "codec_nothink_id": CODES + 11, "codec_think_bos_id": CODES + 12, "codec_think_eos_id": CODES + 13,
        "codec_language_id": {"english": CODES + 20, "hindi": CODES + 21}, "spk_id": {"ryan": CODES + 30, "vivian": CODES + 31},
        "rope_scaling": {"interleaved": True, "mrope_section": [4, 2, 2], "rope_type": "default"},
    },
}  # fmt: skip
DECODER = {
    "latent_dim": 80, "codebook_dim": 144, "codebook_size": CODES, "decoder_dim": 288, "hidden_size": 64, "intermediate_size": 96,
    "head_dim": 16, "num_attention_heads": 4, "num_key_value_heads": 4, "num_hidden_layers": 1, "num_quantizers": GROUPS,
    "upsample_rates": [32, 30], "upsampling_ratios": [2], "sliding_window": 72,
}  # fmt: skip
SETTINGS = {"temperature": 0.9, "top_k": 50, "top_p": 1.0, "repetition_penalty": 1.05, "max_new_tokens": 32}


def _adapter(model, file: Path, peft: bool) -> None:
    """An adapter of rank 4 on the talker's feed-forward layers, as mlx-lm or as PEFT writes one; large enough to be heard."""
    mx.random.seed(5)
    tensors = {}
    for name, module in model.named_modules():
        if name.startswith("talker.model.layers.") and name.endswith(("mlp.gate_proj", "mlp.down_proj")):
            outputs, inputs = module.weight.shape
            a, b = 0.3 * mx.random.normal((inputs, 4)), 0.3 * mx.random.normal((4, outputs))
            if peft:
                tensors |= {f"base_model.model.{name}.lora_A.weight": a.T, f"base_model.model.{name}.lora_B.weight": b.T}
            else:
                tensors |= {f"{name}.lora_a": a, f"{name}.lora_b": b}
    mx.save_safetensors(str(file), tensors)


def write(folder: Path, kind: str = "custom_voice") -> None:
    """Writes a checkpoint of this kind, and adapters beside it. Call it in a process of its own: whoever imported MLX must not fork."""
    from mlx_audio.tts.models.qwen3_tts import Model, ModelConfig, config
    from mlx_audio.tts.models.qwen3_tts.speech_tokenizer import Qwen3TTSSpeechTokenizer

    settings = CONFIG | {"tts_model_type": kind}
    model = Model(ModelConfig.from_dict(settings))
    tiny.save(folder, tiny.randomise(model, 0), settings)
    for name, peft in (("adapter-mlx", False), ("adapter-peft", True)):
        (folder.parent / name).mkdir(exist_ok=True)
        _adapter(model, folder.parent / name / "adapters.safetensors", peft)
    (folder / "generation_config.json").write_text(json.dumps(SETTINGS))
    tiny.byte_tokenizer(folder, ("<|im_start|>", "<|im_end|>", "assistant", "user"))
    speech = Qwen3TTSSpeechTokenizer(config.Qwen3TTSTokenizerConfig(decoder_config=config.Qwen3TTSTokenizerDecoderConfig(**DECODER)))
    tiny.randomise(speech, 1)
    weights = {n: mx.zeros(w.shape) if n.endswith((".alpha", ".beta")) else w for n, w in tree_flatten(speech.parameters())}
    rates = {"decode_upsample_rate": 1920, "encode_downsample_rate": 1920}
    tiny.save(folder / "speech_tokenizer", weights, {"decoder_config": DECODER, **rates})


if __name__ == "__main__":
    write(Path(sys.argv[1]), *sys.argv[2:])
