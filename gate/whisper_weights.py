"""CTranslate2's Whisper weights in the form mlx-audio loads."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np

TYPES = {0: np.float32, 1: np.int8, 2: np.int16, 3: np.int32, 4: np.float16}


def read_ctranslate2(file: Path) -> dict[str, Any]:
    """name -> array of a CTranslate2 model file (format 4 and later; unquantised). Raises ValueError."""
    with file.open("rb") as handle:

        def read(form: str) -> tuple[Any, ...]:
            return struct.unpack("<" + form, handle.read(struct.calcsize("<" + form)))

        def text() -> str:
            return handle.read(read("H")[0])[:-1].decode()

        if (found := read("I")[0]) < 4:
            raise ValueError(f"{file.name} is of CTranslate2's format {found}; 4 is the first that is read")
        text()
        read("I")
        arrays = {}
        for _ in range(read("I")[0]):
            name, rank = text(), read("B")[0]
            shape = read(f"{rank}I") if rank else ()
            kind, size = TYPES[read("B")[0]], read("I")[0]
            arrays[name] = np.frombuffer(handle.read(size), kind).reshape(shape)
    return arrays


def _layer(ours: dict[str, Any], theirs: dict[str, Any], to: str, of: str, cross: bool) -> None:
    def linear(name: str, source: str) -> None:
        ours[f"{to}.{name}.weight"], ours[f"{to}.{name}.bias"] = theirs[f"{of}/{source}/weight"], theirs[f"{of}/{source}/bias"]

    def norm(name: str, source: str) -> None:
        ours[f"{to}.{name}.weight"], ours[f"{to}.{name}.bias"] = theirs[f"{of}/{source}/gamma"], theirs[f"{of}/{source}/beta"]

    def fused(names: list[str], source: str) -> None:
        weights, biases = (np.split(theirs[f"{of}/{source}/{what}"], len(names)) for what in ("weight", "bias"))
        for name, weight, bias in zip(names, weights, biases, strict=True):
            ours[f"{to}.{name}.weight"] = weight
            if not name.endswith("key"):  # Whisper's key projection has no bias
                ours[f"{to}.{name}.bias"] = bias

    norm("attn_ln", "self_attention/layer_norm")
    fused(["attn.query", "attn.key", "attn.value"], "self_attention/linear_0")
    linear("attn.out", "self_attention/linear_1")
    if cross:
        norm("cross_attn_ln", "attention/layer_norm")
        linear("cross_attn.query", "attention/linear_0")
        fused(["cross_attn.key", "cross_attn.value"], "attention/linear_1")
        linear("cross_attn.out", "attention/linear_2")
    norm("mlp_ln", "ffn/layer_norm")
    linear("mlp1", "ffn/linear_0")
    linear("mlp2", "ffn/linear_1")


def convert(source: Path, target: Path) -> None:
    """A folder of CTranslate2's Whisper to one that mlx-audio loads."""
    from safetensors.numpy import save_file

    theirs, ours = read_ctranslate2(source / "model.bin"), {}
    layers = {side: sum(f"{side}/layer_{n}/ffn/linear_0/weight" in theirs for n in range(100)) for side in ("encoder", "decoder")}
    for side, count in layers.items():
        for n in range(count):
            _layer(ours, theirs, f"{side}.blocks.{n}", f"{side}/layer_{n}", side == "decoder")
    for name in ("conv1", "conv2"):
        ours[f"encoder.{name}.weight"] = theirs[f"encoder/{name}/weight"].transpose(0, 2, 1)
        ours[f"encoder.{name}.bias"] = theirs[f"encoder/{name}/bias"]
    for name, norm in (("encoder.ln_post", "encoder/layer_norm"), ("decoder.ln", "decoder/layer_norm")):
        ours[f"{name}.weight"], ours[f"{name}.bias"] = theirs[f"{norm}/gamma"], theirs[f"{norm}/beta"]
    ours["decoder.token_embedding.weight"] = theirs["decoder/embeddings/weight"]
    ours["decoder.positional_embedding"] = theirs["decoder/position_encodings/encodings"]
    width, mels = theirs["encoder/conv1/weight"].shape[:2]
    words, text_width = theirs["decoder/embeddings/weight"].shape
    target.mkdir(parents=True, exist_ok=True)
    save_file({k: np.ascontiguousarray(v) for k, v in ours.items()}, str(target / "model.safetensors"), metadata={"format": "mlx"})
    shutil.copy(source / "tokenizer.json", target)
    marks = {f"{name}_token": "<|endoftext|>" for name in ("bos", "eos", "unk", "pad")}
    (target / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "WhisperTokenizer", **marks}))
    features = {
        "feature_extractor_type": "WhisperFeatureExtractor", "processor_class": "WhisperProcessor", "feature_size": int(mels),
        "sampling_rate": 16000, "hop_length": 160, "chunk_length": 30, "n_fft": 400, "padding_value": 0.0,
    }  # fmt: skip
    (target / "preprocessor_config.json").write_text(json.dumps(features))
    shape = {
        "model_type": "whisper", "n_mels": int(mels), "n_audio_ctx": len(theirs["encoder/position_encodings/encodings"]),
        "n_audio_state": int(width), "n_audio_head": int(theirs["encoder/num_heads"]), "n_audio_layer": layers["encoder"],
        "n_vocab": int(words), "n_text_ctx": len(theirs["decoder/position_encodings/encodings"]), "n_text_state": int(text_width),
        "n_text_head": int(theirs["decoder/num_heads"]), "n_text_layer": layers["decoder"],
    }  # fmt: skip
    (target / "config.json").write_text(json.dumps(shape))  # last: its presence says that the folder is whole
