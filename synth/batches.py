"""Which sentences a configuration speaks in one call. Pure: host and worker both need it."""

from __future__ import annotations

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


def whole_batches(count: int, sizes: Sequence[int]) -> int:
    """At least `count`, and whole batches of the largest size: a part of one would be judged at another batch size."""
    largest = max(sizes, default=1)
    return -(-count // largest) * largest
