"""Low-rank adapters: kept beside the weights they change, or added into them in float32 and quantised again as they were."""

from __future__ import annotations

import hashlib
import json
import math
import re
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_unflatten

from synth.engine.levers import Context
from synth.engine.levers.quantise import to_dense
from synth.engine.protocol import EngineRefused, offline_hint

_NAME = re.compile(r"(?:base_model\.model\.)?(.+)\.lora_([abAB])(\.weight)?$")
#: A merge keeps the adapter when it stays this much nearer to the unmerged sum than to the model without it.
RETAINED = 0.5
Pair = tuple[Any, Any]


class Wrapped(nn.Module):
    """A layer with its adapter beside it: base(x) + scale * (x a) b."""

    def __init__(self, base: Any, a: Any, b: Any, scale: float) -> None:
        super().__init__()
        self.base, self.lora_a, self.lora_b, self.scale = base, a, b, scale

    def __call__(self, x: Any) -> Any:
        return self.base(x) + (self.scale * ((x @ self.lora_a) @ self.lora_b)).astype(x.dtype)


def read(file: Path) -> dict[str, Pair]:
    """module path -> (a of [in, rank], b of [rank, out]); names as mlx-lm or PEFT write them. Raises EngineRefused."""
    if file.is_dir():
        file = next((f for name in ("adapters", "adapter_model") if (f := file / f"{name}.safetensors").is_file()), file)
    try:
        tensors = mx.load(str(file))
    except (OSError, RuntimeError, ValueError) as error:
        raise EngineRefused(f"There is no adapter at {str(file)!r} on this worker: put it there, or correct adapter.path.") from error
    found: dict[str, dict[str, Any]] = {}
    for name, value in tensors.items():
        match = _NAME.match(name)
        if not match or (match[2].isupper() and not match[3]):
            raise EngineRefused(
                f"The adapter {file.name} holds {name}, which is more than a low-rank pair (mlx-lm, PEFT): it would be lost."
            )
        found.setdefault(match[1], {})[match[2].lower()] = value.T if match[3] else value
    whole = {path: (ab["a"], ab["b"]) for path, ab in found.items() if len(ab) == 2}
    if not whole or len(whole) != len(found):
        raise EngineRefused(f"The file {file.name} holds no complete adapter: pairs named lora_a and lora_b (mlx-lm, PEFT) are expected.")
    return whole


def check_settings(file: Path, scale: float) -> None:
    """Refuses what a PEFT adapter's own settings ask for and this does not do, and a scale that is not theirs."""
    settings = (file if file.is_dir() else file.parent) / "adapter_config.json"
    if not settings.is_file():
        return
    told = json.loads(settings.read_text(encoding="utf-8"))
    for name in ("use_dora", "fan_in_fan_out", "alpha_pattern", "rank_pattern", "modules_to_save"):
        if told.get(name):
            raise EngineRefused(
                f"The adapter's adapter_config.json sets {name}, which is not supported: merge it with its own tools first."
            )
    if "lora_alpha" in told and told.get("r"):
        own = told["lora_alpha"] / (math.sqrt(told["r"]) if told.get("use_rslora") else told["r"])
        if abs(own - scale) > 1e-6 * max(1.0, abs(own)):
            raise EngineRefused(f"adapter.scale is {scale:g}; the adapter's own settings make it {own:g} (lora_alpha over r). Give that.")


def _targets(model: Any, adapter: dict[str, Pair], name: str) -> dict[str, Any]:
    modules = dict(model.named_modules())
    missing = sorted(path for path in adapter if path not in modules)
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise EngineRefused(f"The adapter {name} changes {missing[0]}{more}, which this model has not: it was trained on another one.")
    for path, (a, b) in adapter.items():
        module = modules[path]
        if not isinstance(module, nn.Linear | nn.QuantizedLinear):
            raise EngineRefused(f"The adapter {name} changes {path}, which is a {type(module).__name__}, not a linear layer.")
        outputs, inputs = to_dense(module).weight.shape
        if a.shape[0] != inputs or b.shape[1] != outputs or a.shape[1] != b.shape[0]:
            raise EngineRefused(
                f"The adapter {name} has another shape than {path}: {tuple(a.shape)} and {tuple(b.shape)} for a layer of "
                f"{inputs} inputs and {outputs} outputs."
            )
    return {path: modules[path] for path in adapter}


def apply(context: Context, file: Path, scale: float, how: str) -> dict[str, int]:
    """Applies the adapter: `wrap` beside the weights; `merge` into them, quantised again where they were; `merge-dense` left dense.

    Returns how many layers it changed. Raises EngineRefused when a merge lost what the adapter had taught.
    """
    check_settings(file, scale)
    adapter = read(file)
    _check_sizes(adapter, scale, file.name)
    targets = _targets(context.model, adapter, file.name)
    if how == "wrap":
        changed = [(path, Wrapped(module, *adapter[path], scale)) for path, module in targets.items()]
    else:
        changed, errors = [], []
        for path, module in targets.items():
            merged, error = _merged(module, *adapter[path], scale, keep_dense=how == "merge-dense")
            changed.append((path, merged))
            errors.append(error)
        middle = sorted(errors)[len(errors) // 2]
        context.notes["adapter"] = {
            "layers": len(errors),
            "median_distance_to_unmerged": round(middle, 6),
            "largest": round(max(errors), 6),
        }
        if not middle <= RETAINED:
            remedy = "wrap" if how == "merge-dense" else "merge-dense, or wrap"
            raise EngineRefused(
                f"Merging loses the adapter: rounded as the weights are, half of its layers are {middle:.2f} of its size away from the "
                f"unmerged ones. Use adapter.apply: {remedy}."
            )
    context.model.update_modules(tree_unflatten(changed))
    context.model.eval()  # new modules start in training mode
    mx.eval(context.model.parameters())
    return {how: len(changed)}


def _check_sizes(adapter: dict[str, Pair], scale: float, name: str) -> None:
    sizes = [mx.linalg.norm(scale * (a.astype(mx.float32) @ b.astype(mx.float32))).item() for a, b in adapter.values()]
    if not all(math.isfinite(size) for size in sizes):
        raise EngineRefused(f"The adapter {name} holds values that are not finite: it is damaged, or its training was.")
    if not any(sizes):
        raise EngineRefused(f"The adapter {name} adds nothing to any layer (no_effect): it was not trained.")


def _merged(module: Any, a: Any, b: Any, scale: float, keep_dense: bool) -> tuple[Any, float]:
    """The layer with the adapter added in float32, and how far it is from that sum, in sizes of what was added."""
    dense = to_dense(module)
    kind = dense.weight.dtype
    added = scale * (b.astype(mx.float32).T @ a.astype(mx.float32).T)
    wanted = dense.weight.astype(mx.float32) + added
    dense = nn.Linear(1, 1, bias=False)
    if "bias" in module:
        dense.bias = module.bias
    if isinstance(module, nn.QuantizedLinear) and not keep_dense:
        dense.weight = wanted
        result = dense.to_quantized(group_size=module.group_size, bits=module.bits, mode=module.mode)
        result.scales = result.scales.astype(module.scales.dtype)
        if result.get("biases") is not None:
            result.biases = result.biases.astype(module.scales.dtype)
    else:
        dense.weight = wanted.astype(kind)
        result = dense
    off = mx.linalg.norm(to_dense(result).weight.astype(mx.float32) - wanted)
    size = mx.linalg.norm(added)
    return result, (off / mx.maximum(size, 1e-12)).item()


def locate(adapter: dict[str, Any], models: Path) -> Path:
    """The adapter's file or folder on this worker. Raises EngineRefused."""
    if adapter.get("id"):
        from huggingface_hub import snapshot_download

        try:
            return Path(snapshot_download(adapter["id"], revision=adapter.get("revision")))
        except Exception as error:
            raise EngineRefused(
                f"The adapter {adapter['id']} can't be fetched on this worker: {type(error).__name__}.{offline_hint(adapter)}"
            ) from error
    path = Path(adapter["path"])
    return models / path if len(path.parts) == 1 else path


def digest_of(file: Path) -> str:
    """What the adapter's weights are, as sha256 over its safetensors."""
    files = sorted(file.glob("*.safetensors")) if file.is_dir() else [file]
    digest = hashlib.sha256()
    for one in files:
        digest.update(one.read_bytes())
    return digest.hexdigest()
