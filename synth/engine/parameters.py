"""Which names a model's function really takes: those of its signature, without those it has for the looks of it."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any


def accepted(function: Callable[..., Any]) -> set[str]:
    """Names of its parameters, without what swallows any other name."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}


def unread(function: Callable[..., Any]) -> set[str]:
    """Those of them that its body never reads: given, they would change nothing, and a system be measured that is its parent."""
    try:
        source = textwrap.dedent(inspect.getsource(inspect.unwrap(function)))
    except (OSError, TypeError):  # made at run time, or not in Python
        return set()
    read = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return set() if "locals" in read else accepted(function) - read
