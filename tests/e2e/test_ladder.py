"""A whole ladder as one command, killed in the middle and run again: each rung is there once, and the ledger holds."""

import os
import shutil
import signal
import subprocess
import sys
import time

import psutil
import pytest
from django.core.management import CommandError, call_command

from gate import climb
from gate.models import LedgerEntry, Lever
from synth.configuration import Refused
from tests.e2e.stack import ROOT, Stack

EXAMPLE = ROOT / "examples" / "qwen3_tiny_ladder.yaml"


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_the_tiny_ladder_is_climbed_though_it_is_killed(tmp_path):
    stack = Stack()  # only its folder, database and settings: the command brings up its own
    models = tmp_path / "models"
    models.mkdir()
    for known in (ROOT / "var" / "models").iterdir():  # recognisers and DNSMOS; the tiny checkpoint is written anew
        if known.name != "tiny-qwen3":
            (models / known.name).symlink_to(known)
    (models / "adapter-mlx").unlink(missing_ok=True)
    (models / "adapter-peft").unlink(missing_ok=True)
    untimed = "    plan: {benefit: none, timing: {blocks: 0}}\n"  # one rung's blocks show as much as three's, in a third of the time
    text = EXAMPLE.read_text().replace("    - Close the window before the rain.\n    - Nobody told the driver.\n", "")
    for rung in ("    title: The adapter", "    title: The code predictor in"):
        text = text.replace(rung, untimed + rung)
    file = tmp_path / "ladder.yaml"
    file.write_text(text)
    env = stack.env | {"EARWITNESS_MODELS": str(models), "EARWITNESS_IDLE_WAIT_S": "0"}
    command = [sys.executable, "manage.py", "ladder", str(file), "--timeout", "1200"]
    log = (tmp_path / "log").open("w+")
    try:
        first = subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=log)
        deadline = time.monotonic() + 400
        while "qwen3-tiny-merge: rendering" not in (tmp_path / "log").read_text():
            assert first.poll() is None and time.monotonic() < deadline, (tmp_path / "log").read_text()
            time.sleep(0.3)
        hosts = psutil.Process(first.pid).children(recursive=True)
        for process in (first, *hosts):  # everything at once, as when the power goes
            os.kill(process.pid, signal.SIGKILL)
        first.wait()
        again = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
        assert again.returncode == 0, again.stdout + again.stderr
        rows = again.stdout.split("Rung ")[1].splitlines()[1:]
        assert [row.split()[0] for row in rows] == ["qwen3-tiny-merge", "qwen3-tiny-compile", "qwen3-tiny-predictor-q4"]
        assert all("#" in row for row in rows)
        told = stack.ask(
            "[[l.slug, l.verdict.verdict, l.verdict.evidence, l.parent.name, l.candidate.name] for l in Lever.objects.order_by('pk')]"
        )
        assert [t[0] for t in told] == [row.split()[0] for row in rows]
        assert [t[3] for t in told] == ["hindi-tiny", "qwen3-tiny-merge", "qwen3-tiny-compile"]  # each stands on the one below
        assert told[1][1] in ("accepted", "provisional", "no-benefit", "inconclusive")
        identity = stack.ask("Look.objects.get(plan__lever__slug='qwen3-tiny-compile', kind='automatic').evidence['identity']")
        assert identity["settled"] and identity["same"] == identity["clips"] == 2  # the compiled frame is its parent bit for bit
        assert stack.ask(
            "Render.objects.values('draw_key','configuration','sentence','replicate','repetition').distinct().count()"
        ) == stack.ask("Render.objects.count()")
        assert stack.ask("TimedBlock.objects.filter(state='done').count()") >= 2
        assert "all as they were written" in stack.manage("ledger", "--verify").stdout
    finally:
        log.close()
        for process in psutil.process_iter(["cmdline"]):
            if str(stack.var) in " ".join(process.info["cmdline"] or []):
                process.kill()
        stack.drop()
        shutil.rmtree(models, ignore_errors=True)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("rungs:", "colour: 1\nrungs:"), "unknown_key"),
        (("rung: compile", "rung: merge"), "rung_twice"),
        (("go_on: any", "go_on: never"), "configuration_invalid"),
        (("root:", "base:"), "missing_key"),
    ],
)
def test_a_ladder_that_can_not_be_read_is_one_sentence(change, code):
    with pytest.raises(Refused) as caught:
        climb.read(EXAMPLE.read_text().replace(*change))
    assert caught.value.code in (code, "unknown_key")


@pytest.mark.parametrize(
    "makes",
    ["{..: tests.synth.tiny_qwen3}", "{/tmp/x: tests.synth.tiny_qwen3}", "{x: nope.nope}", "{x: .x}", "{x: yaml.nodes}", "{x: json}"],
)
def test_what_a_ladder_may_make_is_a_model_by_a_module_of_this_checkout(tmp_path, settings, makes):
    settings.MODELS = tmp_path / "models"
    file = tmp_path / "ladder.yaml"
    file.write_text(EXAMPLE.read_text().replace("{tiny-qwen3: tests.synth.tiny_qwen3}", makes))
    with pytest.raises(CommandError, match="makes has"):
        call_command("ladder", str(file))


def test_a_rung_that_is_another_system_by_now_is_refused(db):
    ladder = climb.read(EXAMPLE.read_text())
    climb.climb(ladder)
    changed = climb.read(EXAMPLE.read_text().replace("apply: merge-dense", "apply: merge"))
    with pytest.raises(Refused) as caught:
        climb.climb(changed)
    assert caught.value.code == "rung_changed"


def test_a_rung_waits_for_the_one_below_and_a_failed_one_ends_the_climb(db):
    ladder = climb.read(EXAMPLE.read_text().replace("go_on: any", "go_on: accepted"))
    assert climb.climb(ladder) == "" and climb.climb(ladder) == ""
    assert list(Lever.objects.values_list("slug", flat=True)) == ["qwen3-tiny-merge"]  # twice is once
    Lever.objects.update(problem="The model can't be loaded.")
    assert climb.climb(ladder) == "The model can't be loaded."
    assert climb.row(climb.steps(ladder)[0])[1] == "checking" and climb.row(climb.steps(ladder)[1])[1] == "not begun"
    assert not LedgerEntry.objects.exists()
