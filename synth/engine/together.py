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


class Rows:
    """Counts the rows that are really computed, step by step: some models go on with all until the longest ends, others let rows go."""

    def __init__(self, model: Any) -> None:
        self.steps = self.computed = 0
        stock = getattr(model, "_sample_token_batch", None)
        self.seen = stock is not None
        if stock is None:
            return

        def sample(logits: Any, *args: Any, **options: Any) -> Any:
            if options.get("suppress_tokens"):  # the talker's own call, once a step
                self.steps, self.computed = self.steps + 1, self.computed + logits.shape[0]
            return stock(logits, *args, **options)

        object.__setattr__(model, "_sample_token_batch", sample)

    def taken(self) -> tuple[int, int] | None:
        """(steps, rows computed) since the last call; None where the model doesn't let them be counted."""
        found = (self.steps, self.computed) if self.seen and self.computed else None
        self.steps = self.computed = 0
        return found


def work(tokens: Sequence[int], counted: tuple[int, int] | None) -> dict[str, int]:
    """{"steps", "needed", "computed"} of a call whose rows took so many tokens; uncounted, as if all went on until the longest ends."""
    steps, computed = counted or (max(tokens), max(tokens) * len(tokens))
    return {"steps": steps, "needed": sum(tokens), "computed": computed}
