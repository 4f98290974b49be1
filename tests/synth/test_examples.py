"""The configurations of the published reports: each is valid, and differs from its parent in one thing only."""

from pathlib import Path

import pytest
import yaml

from synth import configuration as schema

SEEDS = Path(__file__).resolve().parent.parent.parent / "examples" / "seeds"
FILES = {file.stem: file for file in sorted(SEEDS.glob("*.yaml"))}


def read(name):
    return schema.parse(yaml.safe_load(FILES[name].read_text(encoding="utf-8")), name)


@pytest.mark.parametrize("name", FILES)
def test_each_is_valid_says_what_was_measured_and_changes_one_section(name):
    system = read(name)
    assert system.name == name and FILES[name].read_text(encoding="utf-8").startswith("# ")
    if system.parent:
        changed = schema.sections(schema.difference(system, read(system.parent)))
        assert len(changed) == 1, changed


def test_all_five_reports_and_every_section_are_there():
    systems = [read(name) for name in FILES]
    assert {s.parent is None for s in systems} == {True, False} and sum(s.parent is None for s in systems) == 5
    used = {section for s in systems for section in s.canonical()}
    assert {
        "adapter",
        "batching",
        "compile",
        "engine",
        "levers",
        "model",
        "quantisation",
        "runtime",
        "sampling",
        "streaming",
        "voice",
    } <= used
    assert len({s.digest() for s in systems}) == len(systems)
