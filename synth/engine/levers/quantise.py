"""Quantisation by rules: a regular expression on the module's path decides bits, group, or to keep or densify."""

from __future__ import annotations

import re
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_unflatten
from mlx_audio.lm.models.switch_layers import QuantizedSwitchLinear, SwitchLinear

from synth.engine.levers import Context
from synth.engine.protocol import EngineRefused

QUANTISED = (nn.QuantizedLinear, nn.QuantizedEmbedding, QuantizedSwitchLinear)

#: ZONOS2 casts what it feeds these to the type of their weights, which is an integer once they are packed: every voice would be zeros.
CASTS_TO_WEIGHTS = re.compile(r"^speaker_(lda_)?projection$")


def to_dense(module: Any) -> Any:
    """The same layer with its weights multiplied out; a dense layer is returned as it is."""
    if not isinstance(module, QUANTISED):
        return module
    weight = mx.dequantize(module.weight, module.scales, module.get("biases"), module.group_size, module.bits, module.mode)
    if isinstance(module, nn.QuantizedEmbedding):
        dense: Any = nn.Embedding(1, 1)
    else:
        dense = SwitchLinear(1, 1, 1, bias=False) if isinstance(module, QuantizedSwitchLinear) else nn.Linear(1, 1, bias=False)
        if "bias" in module:
            dense.bias = module.bias
    dense.weight = weight
    return dense


def apply(context: Context, rules: list[dict[str, Any]]) -> dict[str, int]:
    """Applies the rules, first match wins. Returns how many modules each rule changed.

    Raises EngineRefused for a rule that changed nothing, or whose group size doesn't divide a matched layer.
    """
    compiled = [re.compile(rule["match"]) for rule in rules]
    allowed = getattr(context.model, "model_quant_predicate", lambda path, module: True)
    counts, changed = [0] * len(rules), []
    for path, module in context.model.named_modules():
        if not (hasattr(module, "to_quantized") or isinstance(module, QUANTISED)):
            continue
        index = next((i for i, pattern in enumerate(compiled) if pattern.search(path)), None)
        if index is None or CASTS_TO_WEIGHTS.search(path) or not allowed(path, module):
            continue
        rule = rules[index]
        if rule.get("keep"):
            counts[index] += 1
            continue
        dense = to_dense(module)
        if rule.get("dense"):
            replacement = dense
        else:
            group = rule.get("group_size", 64)
            if dense.weight.shape[-1] % group:
                raise EngineRefused(
                    f"The quantisation rule {rule['match']!r} reaches {path}, whose rows of {dense.weight.shape[-1]} values can't be split "
                    f"into groups of {group}: narrow the rule, or keep that module with a rule before it."
                )
            replacement = dense.to_quantized(group_size=group, bits=rule["bits"], mode=rule.get("mode", "affine"))
        counts[index] += 1
        changed.append((path, replacement))
    for rule, count in zip(rules, counts, strict=True):
        if not count:
            raise EngineRefused(f"The quantisation rule {rule['match']!r} matches no module of this model: check the path it names.")
    context.model.update_modules(tree_unflatten(changed))
    mx.eval(context.model.parameters())
    return {rule["match"]: count for rule, count in zip(rules, counts, strict=True)}
