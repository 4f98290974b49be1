"""Which sentences a configuration speaks in one call. Pure: host and worker both need it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

Item = TypeVar("Item")


def in_batches(items: Sequence[Item], batching: dict[str, Any] | None, text: Callable[[Item], str]) -> list[list[Item]]:
    """The items that are spoken together, in the frozen order in which they are spoken. `batching`: that section, or None."""
    if not batching:
        return [[item] for item in items]
    ordered = sorted(items, key=lambda item: len(text(item))) if batching.get("sort") == "length" else list(items)
    size = batching["size"]
    return [ordered[k : k + size] for k in range(0, len(ordered), size)]


def whole_batches(count: int, sizes: Sequence[int], most: int | None = None) -> int:
    """About `count`, at most `most`, and whole batches of every size: a part of one would be judged at another. 0 where none fits."""
    step = math.lcm(*sizes)
    found = -(-count // step) * step
    return found if most is None or found <= most else most // step * step
