"""Low-rank adapters: kept beside the weights they change, or added into them in float32 and quantised again as they were."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_unflatten

from synth.engine.levers import Context
from synth.engine.levers.quantise import to_dense
from synth.engine.protocol import EngineRefused

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
        if match:
            found.setdefault(match[1], {})[match[2].lower()] = value.T if match[3] else value
    whole = {path: (ab["a"], ab["b"]) for path, ab in found.items() if len(ab) == 2}
    if not whole or len(whole) != len(found):
        raise EngineRefused(f"The file {file.name} holds no complete adapter: pairs named lora_a and lora_b (mlx-lm, PEFT) are expected.")
    return whole


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
    adapter = read(file)
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
        if middle > RETAINED:
            raise EngineRefused(
                f"Merging loses the adapter: after quantisation half of its layers are {middle:.2f} of its size away from the unmerged "
                "weights. Use adapter.apply: merge-dense, or wrap."
            )
    context.model.update_modules(tree_unflatten(changed))
    context.model.eval()  # new modules start in training mode
    mx.eval(context.model.parameters())
    return {how: len(changed)}


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
            raise EngineRefused(f"The adapter {adapter['id']} can't be fetched on this worker: {type(error).__name__}.") from error
    path = Path(adapter["path"])
    return models / path if len(path.parts) == 1 else path


def digest_of(file: Path) -> str:
    """What the adapter's weights are, as sha256 over its safetensors."""
    import hashlib

    files = sorted(file.glob("*.safetensors")) if file.is_dir() else [file]
    digest = hashlib.sha256()
    for one in files:
        digest.update(one.read_bytes())
    return digest.hexdigest()
