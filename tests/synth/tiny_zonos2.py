"""A tiny ZONOS2 checkpoint with random weights: dense and expert layers, the encoder of speakers, and its codec in a hub's cache.

Two traps: the silence every prompt ends with is made of codes up to 1023, whatever the configuration says, and the codec is
fetched from the hub by its name, so that it is only found with HF_HUB_CACHE set to the folder `hub` beside the checkpoint.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.synth import tiny
from tests.synth.tiny_qwen3 import CONFIG as QWEN3

CODEC = "tiny/dac"
SPEAKER = QWEN3["speaker_encoder_config"]
CONFIG = {
    "model_type": "zonos2", "n_layers": 4, "dim": 64, "head_dim": 16, "n_kv_heads": 2, "multiple_of": 32, "n_codebooks": 4,
    "dac_model_id": CODEC, "speaker_embedding_dim": SPEAKER["enc_dim"], "speaker_lda_dim": 32, "moe_n_experts": 4,
    "moe_router_dim": 32, "moe_start_from_layer": 1, "special_topk_layers": {"2": 2},
}  # fmt: skip
DAC = {
    "encoder_dim": 8, "encoder_rates": [32, 16], "latent_dim": 32, "decoder_dim": 32, "decoder_rates": [32, 16], "n_codebooks": 4,
    "codebook_size": 1024, "codebook_dim": 8, "sample_rate": 44100,
}  # fmt: skip


def write(folder: Path) -> None:
    """Writes the checkpoint, and its codec into `hub` beside it. Call it in a process of its own: whoever imported MLX must not fork."""
    from mlx_audio.codec.models.descript import DAC as Codec
    from mlx_audio.tts.models.qwen3_tts.speaker_encoder import Qwen3TTSSpeakerEncoder
    from mlx_audio.tts.models.zonos2 import Model, ModelConfig
    from mlx_audio.tts.models.zonos2.speaker_encoder import speaker_encoder_config_from_dict

    tiny.save(folder, tiny.randomise(Model(ModelConfig.from_dict(CONFIG)), 0, stacks=("experts", "wkv", "w_in")), CONFIG)
    listener = Qwen3TTSSpeakerEncoder(speaker_encoder_config_from_dict(SPEAKER))
    tiny.save(folder / "speaker_encoder", tiny.randomise(listener, 1), SPEAKER)
    tiny.save(tiny.cached(folder.parent / "hub", CODEC), tiny.randomise(Codec(**DAC), 2), DAC)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
