"""Reading a spec from YAML or JSON, distrusting it: size, depth, aliases, duplicate keys, values no database holds."""

from __future__ import annotations

import math
from typing import Any

import yaml

from synth.configuration import Refused

MAX_CHARACTERS = 2_000_000
MAX_NODES = 200_000
MAX_DEPTH = 30


def _measure(node: yaml.Node, known: dict[int, int | None], depth: int = 0) -> int:
    """Nodes of the tree once its aliases are written out. Refuses what refers to itself, is too deep, or names a key twice."""
    if depth > MAX_DEPTH:
        raise Refused("too_deep", f"The file is nested more than {MAX_DEPTH} levels deep.")
    if id(node) in known:
        size = known[id(node)]
        if size is None:
            raise Refused("refers_to_itself", f"An alias at line {node.start_mark.line + 1} stands inside of what it names.")
        return size
    known[id(node)] = None
    size = 1
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen and key.value != "<<":
                line = key.start_mark.line + 1
                raise Refused("duplicate_key", f"The key {key.value!r} at line {line} is there twice: keep one.", key.value)
            seen.add(getattr(key, "value", None) if isinstance(key, yaml.ScalarNode) else id(key))
            size += 1 + _measure(value, known, depth + 1)
    elif isinstance(node, yaml.SequenceNode):
        size += sum(_measure(item, known, depth + 1) for item in node.value)
    if size > MAX_NODES:
        raise Refused("too_large", f"The file holds more than {MAX_NODES} values once its aliases are written out.")
    known[id(node)] = size
    return size


def mapping(text: str) -> dict[str, Any]:
    """The one mapping of a YAML file. Raises Refused with the line."""
    if len(text) > MAX_CHARACTERS:
        raise Refused("too_large", f"The file has {len(text)} characters; the limit is {MAX_CHARACTERS}.")
    try:
        tree = yaml.compose(text, Loader=yaml.SafeLoader)
        if tree is not None:
            _measure(tree, {})
        document = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        if isinstance(error, Refused):
            raise
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "it can not be read"
        raise Refused("not_yaml", f"The file is not one YAML document{where}: {problem}.") from error
    if not isinstance(document, dict):
        raise Refused("not_a_mapping", "A lever's spec is a mapping of names to values: start from one in examples/.")
    return document


def read_yaml(text: str) -> list[dict[str, Any]]:
    """The specs of a YAML file: one lever, or `levers`, a list with what they share under `shared`. Raises Refused with the line."""
    document = mapping(text)
    if "levers" not in document:
        return [document]
    shared, levers = document.get("shared") or {}, document["levers"]
    extra = sorted(set(map(str, document)) - {"shared", "levers"})
    if extra:
        raise Refused("unknown_key", f"{extra[0]} is not a known key beside levers: put it under shared.", extra[0])
    if not isinstance(shared, dict) or not isinstance(levers, list) or not levers or not all(isinstance(x, dict) for x in levers):
        raise Refused("levers_invalid", "levers is a list of specs, shared a mapping of what they have in common.", "levers")
    return [{**shared, **lever} for lever in levers]


def plain(value: Any, where: str = "spec", depth: int = 0) -> None:
    """Refuses what JSON or a database can't hold: NUL, infinities, NaN, other types, keys that aren't text."""
    if depth > MAX_DEPTH:
        raise Refused("too_deep", f"{where} is nested more than {MAX_DEPTH} levels deep.", where)
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise Refused("key_not_text", f"{where} has the key {key!r}, which is not text: put it in quotes.", where)
            plain(key, where, depth + 1)
            plain(item, f"{where}.{key}", depth + 1)
    elif isinstance(value, list | tuple):
        for item in value:
            plain(item, where, depth + 1)
    elif isinstance(value, str):
        if "\0" in value:
            raise Refused("not_storable", f"{where} holds a NUL character: remove it.", where)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise Refused("not_finite", f"{where} is {value}: write a finite number.", where)
    elif not isinstance(value, bool | int | None):
        raise Refused("not_plain", f"{where} is a {type(value).__name__}: write it as text, in quotes.", where)
