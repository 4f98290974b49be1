"""What tiny checkpoints have in common: random weights, a tokenizer of bytes, and a hub's cache for codecs that are loaded by name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten, tree_map_with_path

REVISION = "0" * 40


def randomise(module: Any, seed: int, stacks: Sequence[str] = ()) -> Any:
    """Fills the module with weights that keep sizes as they pass through it. Returns it.

    Weights of three dimensions are convolutions', but for those with one of `stacks` in their name: several matrices in one.
    """
    mx.random.seed(seed)

    def draw(path: str, value: Any) -> Any:
        if value.ndim == 1:
            return mx.ones(value.shape) if "norm" in path and path.endswith("weight") else 0.02 * mx.random.normal(value.shape)
        matrix = value.ndim == 2 or any(name in path for name in stacks)
        fan = value.shape[-1] if matrix else value.shape[-1] * value.shape[-2]
        return mx.random.normal(value.shape) * (1.0 if "embed" in path else fan**-0.5)

    module.update(tree_map_with_path(draw, module.parameters()))
    mx.eval(module.parameters())
    return module


def save(folder: Path, weights: Any, config: dict[str, Any]) -> None:
    """A folder as loaders expect it. `weights`: a module, or tensors by their names."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = dict(tree_flatten(weights.parameters())) if isinstance(weights, nn.Module) else weights
    mx.save_safetensors(str(folder / "model.safetensors"), tensors, metadata={"format": "mlx"})
    (folder / "config.json").write_text(json.dumps(config))


def byte_tokenizer(folder: Path, words: Sequence[str], **settings: str) -> None:
    """A token for every byte, then one for each of the words."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens([AddedToken(word, normalized=False) for word in words])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"} | settings))


def cached(hub: Path, repository: str) -> Path:
    """The folder where a cache of the hub (HF_HUB_CACHE) keeps a repository's files."""
    home = hub / f"models--{repository.replace('/', '--')}"
    (home / "refs").mkdir(parents=True, exist_ok=True)
    (home / "refs" / "main").write_text(REVISION)
    found = home / "snapshots" / REVISION
    found.mkdir(parents=True, exist_ok=True)
    return found
