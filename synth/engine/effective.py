"""What a loaded system really is, read back from it and its process: a setting that never arrived shows here."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

from mlx.utils import tree_flatten

#: Variables that change what MLX and its libraries do.
PREFIXES = ("MLX_", "MKL_", "OMP_", "HF_", "TOKENIZERS_")


def read(model: Any, generate: dict[str, Any], token_cap: int | None) -> dict[str, Any]:
    """{"layers", "weights_mb", "generate", "token_cap", "env"}: quantised layers by their settings, MB by type, arguments as passed."""
    layers: Counter[str] = Counter()
    for _, module in model.named_modules():
        bits = getattr(module, "bits", None)
        if isinstance(bits, int):
            layers[f"{bits} bits, groups of {getattr(module, 'group_size', '?')}, {getattr(module, 'mode', 'affine')}"] += 1
    sizes: Counter[str] = Counter()
    for _, value in tree_flatten(model.parameters()):
        if hasattr(value, "nbytes"):
            sizes[str(value.dtype).removeprefix("mlx.core.")] += value.nbytes
    return {
        "layers": dict(layers), "weights_mb": {name: round(n / 2**20, 2) for name, n in sizes.items()},
        "generate": {name: _plain(value) for name, value in sorted(generate.items())}, "token_cap": token_cap,
        "env": {name: value for name, value in sorted(os.environ.items()) if name.startswith(PREFIXES) and not name.endswith("_TOKEN")},
    }  # fmt: skip


def _plain(value: Any) -> Any:
    """Numbers and texts as they are; of an array its shape."""
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    shape = getattr(value, "shape", None)
    return f"{type(value).__name__} {tuple(shape)}" if shape is not None else type(value).__name__
