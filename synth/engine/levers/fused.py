"""Projections of the same input as one product: queries, keys and values; gate and up. Fewer, larger kernels; the model's code stays."""

from __future__ import annotations

import itertools
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from synth.engine.levers import Context

#: Names of projections that read the same input, in the order they are asked.
QKV, GATE_UP = ("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj")
#: What a quantised layer is made of, besides its bias.
PARTS = ("weight", "scales", "biases")


class _Share(nn.Module):
    """One of the projections: the first to be asked computes all, the others hand out their share of it."""

    def __init__(self, product: _Product, begin: int, end: int) -> None:
        super().__init__()
        object.__setattr__(self, "product", product)  # its weights are the parent module's, not once more each share's
        self.begin, self.end = begin, end

    def __call__(self, x: Any) -> Any:
        return self.product.share(x, self.begin)[..., self.begin : self.end]


class _Product:
    """The product of one input, kept until each share was handed out: a second call of one share is another input."""

    def __init__(self, layer: Any, begins: list[int]) -> None:
        self.layer, self.begins = layer, frozenset(begins)
        self.input: Any = None
        self.output: Any = None
        self.wanted: set[int] = set()

    def share(self, x: Any, begin: int) -> Any:
        if self.input is not x or begin not in self.wanted:
            self.input, self.output, self.wanted = x, self.layer(x), set(self.begins)
        self.wanted.discard(begin)
        output = self.output
        if not self.wanted:
            self.input = self.output = None
        return output


def _fusable(layers: list[Any]) -> bool:
    first = layers[0]
    if type(first) not in (nn.Linear, nn.QuantizedLinear) or any(type(layer) is not type(first) for layer in layers):
        return False
    settings = [
        (getattr(x, "bits", 0), getattr(x, "group_size", 0), getattr(x, "mode", ""), "bias" in x, x.weight.shape[1]) for x in layers
    ]
    return len(set(settings)) == 1


def _joined(layers: list[Any]) -> Any:
    """A layer of the same kind with the rows of all."""
    first = layers[0]
    if isinstance(first, nn.QuantizedLinear):
        joined = nn.QuantizedLinear(32, 8, bias="bias" in first, group_size=32, bits=8)
        joined.group_size, joined.bits, joined.mode = first.group_size, first.bits, first.mode
    else:
        joined = nn.Linear(1, 1, bias="bias" in first)
    for name in (*PARTS, "bias"):
        if name in first:
            joined[name] = mx.concatenate([layer[name] for layer in layers], axis=0)
    return joined


def fuse(context: Context, qkv: bool = True, gate_up: bool = True) -> int:
    """Fuses wherever the projections are alike. Returns how many products are fewer now; 0 is refused as no_effect."""
    fewer = 0
    for _, module in context.model.named_modules():
        if not issubclass(type(module), nn.Module):  # a compiled part says it is one, and is none
            continue
        for wanted, names in ((qkv, QKV), (gate_up, GATE_UP)):
            layers = [module[name] for name in names if name in module] if wanted else []
            if len(layers) < len(names) or not _fusable(layers):
                continue
            joined = module[f"fused_{names[0]}"] = _joined(layers)
            mx.eval(joined.parameters())
            ends = list(itertools.accumulate(layer.weight.shape[0] for layer in layers))
            begins = [0, *ends[:-1]]
            product = _Product(joined, begins)
            for name, begin, end in zip(names, begins, ends, strict=True):
                module[name] = _Share(product, begin, end)
            fewer += len(names) - 1
    return fewer
