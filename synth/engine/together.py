"""Several sentences at once through a model's batch_generate(): what it is called with, and how much of its work was needed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from synth.engine.levers import Context
from synth.engine.protocol import EngineRefused, resolve


def speaker(context: Context, engine: str, modules: list[str]) -> Callable[..., Any]:
    """The function that speaks a list of texts: the model's own, or what `module:attribute` makes of the context."""
    if engine != "stock":
        made: Callable[..., Any] = resolve(engine, "earwitness.engines", {}, modules)(context)
        return made
    stock: Callable[..., Any] | None = getattr(context.model, "batch_generate", None)
    if stock is None:
        raise EngineRefused("This model speaks one sentence at a time (it has no batch_generate): leave the section batching out.")
    return stock


def arguments(accepted: Collection[str], single: dict[str, Any], rows: int) -> dict[str, Any]:
    """The arguments of generate() as batch_generate() takes them: by the same name, or one for each row by its plural.

    Raises EngineRefused for a name it has in neither form: it would be swallowed, and another system measured.
    """
    found: dict[str, Any] = {}
    for name, value in single.items():
        if name in accepted:
            found[name] = value
        elif f"{name}s" in accepted:
            found[f"{name}s"] = [value] * rows
        else:
            raise EngineRefused(f"This model's batch_generate() takes no {name!r}; it takes {', '.join(sorted(accepted))}.")
    return found


def useful_share(tokens: Sequence[int]) -> float | None:
    """Share of the computed rows that were needed, where every row goes on until the longest ends. None without any token."""
    return sum(tokens) / (max(tokens) * len(tokens)) if tokens and max(tokens) else None
