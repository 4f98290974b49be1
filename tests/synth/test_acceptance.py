"""The checks a Mac must pass, tried on this machine: those that need none pass here, those that do say so."""

import json

import pytest
from django.core.management import CommandError, call_command

from synth import acceptance, introduction

TONE = {"name": "tone", "engine": "tests.tone:Tone", "model": {"path": "tone"}, "sampling": {"extra": {"slow_s": 0.3}}}


def tried(tmp_path, body=TONE, **changes):
    made = acceptance.Acceptance(body, tmp_path, ["tests.tone"])
    for name, value in changes.items():
        setattr(made, name, value)
    seen = []
    report = made.run(seen.append)
    assert [c.name for c in seen] == [c["name"] for c in report["checks"]]
    return {c["name"]: c for c in report["checks"]}, report


@pytest.mark.slow
def test_what_needs_no_mac_passes_here_and_nothing_is_accepted(tmp_path, settings):
    checks, report = tried(tmp_path)
    wrong = {name: c["said"] for name, c in checks.items() if c["result"] == "failed"}
    # Other programs may run beside this one, and other tests may have loaded MLX into this process.
    assert set(wrong) <= {"passes of one system take the same time", "this process never loads MLX"}, wrong
    for name in (
        "it speaks",
        "one seed is one sound, in fresh processes",
        "a killed child is told and replaced",
        "other programs are seen",
    ):
        assert checks[name]["result"] == "passed", checks[name]
    assert checks["the keychain answers"] == checks["the keychain answers"] | {"result": "not run", "said": "needs a Mac"}
    assert report["accepted"] is False and len(checks) == 13
    kept = acceptance.keep(report, introduction.folder(tmp_path))
    assert json.loads(kept.read_text())["passed"] == report["passed"]
    facts = introduction.facts("mac", tmp_path)
    assert facts["environment"]["acceptance"]["accepted"] is False and facts["environment"]["memory_gb"] > 0


@pytest.mark.slow
def test_each_check_can_fail_and_the_others_go_on(tmp_path):
    checks, _ = tried(tmp_path, TONE | {"sampling": {"extra": {"noise": True}}})
    assert checks["one seed is one sound, in fresh processes"]["result"] == "failed"
    assert checks["a killed child is told and replaced"]["result"] == "passed"
    checks, _ = tried(tmp_path, TONE | {"sampling": {"extra": {"mute": True}}})
    assert "silent" in checks["it speaks"]["said"]
    checks, report = tried(tmp_path, TONE | {"model": {"id": "missing/model"}})
    assert "can't be loaded" in checks["it speaks"]["said"] and report["failed"] >= 5


def test_a_report_that_is_not_there_or_broken_is_none(tmp_path):
    assert acceptance.latest(tmp_path) is None
    (tmp_path / "latest.json").write_text("{")
    assert acceptance.latest(tmp_path) is None


def test_a_configuration_that_can_not_be_read_is_one_sentence(tmp_path):
    with pytest.raises(CommandError, match="can't be read"):
        call_command("accept_mac", configuration=tmp_path / "none.yaml")
    (tmp_path / "bad.yaml").write_text("name: x\nmodel: {path: y}\ncolour: 1")
    with pytest.raises(CommandError, match="colour is not a known key"):
        call_command("accept_mac", configuration=tmp_path / "bad.yaml")
