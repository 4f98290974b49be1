"""kill -9 of every part in the middle of synthesis: in the end every render is done exactly once."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from tests import factories
from tests.e2e.stack import ROOT, Stack

TEXTS = [f"Sentence {word} is here." for word in ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")]


def synthesis_child(stack):
    for process in psutil.process_iter(["cmdline", "pid"]):
        if "synth.engine.child" in (process.info["cmdline"] or []) and str(stack.var) in process.environ().get("EARWITNESS_VAR", ""):
            return process.info["pid"]
    return None


def done(stack):
    return stack.ask("RenderGroup.objects.filter(state='done').count()")


@pytest.mark.slow
def test_every_render_is_done_once_whatever_is_killed():
    parent = factories.tone(slow_s=0.5)
    made = factories.spec("louder", parent=parent, change={"sampling": {"extra": {"slow_s": 0.5, "detune": 1.01}}}, texts=TEXTS)
    with Stack() as stack:
        stack.register(made)
        stack.wait(lambda: done(stack) >= 2, 60, "the first renders")
        stack.kill("worker")
        stack.wait(lambda: done(stack) >= 5, 90, "renders after the worker was killed")
        stack.wait(lambda: synthesis_child(stack), 30, "a child")
        os.kill(synthesis_child(stack), signal.SIGKILL)
        stack.kill("web")
        stack.wait(lambda: done(stack) >= 9, 90, "renders after the child and the web process were killed")
        stack.kill("broker")
        stack.kill("tend")
        stack.wait(lambda: done(stack) == 20, 150, "all renders")
        made = stack.ask("list(Render.objects.values_list('outcome', 'figures__samples', 'group__state'))")
        assert len(made) == 20 and {(o, s) for o, _, s in made} == {("made", "done")}
        assert stack.ask("Clip.objects.count()") == 20 + 2  # and the two samples of the preflight
        said = stack.said()
        assert "The worker process ended (by SIGKILL)" in said and "The broker process ended" in said


@pytest.mark.slow
def test_a_killed_supervisor_is_taken_over_and_nothing_is_left_behind():
    with Stack("--no-worker") as stack:
        left = stack.children()
        os.kill(stack.process.pid, signal.SIGKILL)
        stack.process.wait()
        assert all(psutil.pid_exists(pid) for pid in left.values())
        (stack.var / "up.log").write_text("")
        stack.start()
        assert "left over from a run that was killed" in stack.said()
        assert not any(psutil.pid_exists(pid) for pid in left.values())
        stack.process.send_signal(signal.SIGINT)
        assert stack.process.wait(30) == 0
        assert "Stopped." in stack.said()
        assert not (stack.var / "run" / "up.json").exists()


@pytest.mark.slow
def test_a_second_start_and_a_taken_port_are_said_in_one_sentence():
    with Stack("--no-worker") as stack:
        again = stack.manage("up", "--port", str(stack.port), check=False)
        assert again.returncode == 1 and "already running here" in again.stderr
        other = subprocess.run(
            [sys.executable, "manage.py", "up", "--port", str(stack.port)], cwd=ROOT, capture_output=True, text=True,
            env=stack.env | {"EARWITNESS_VAR": str(stack.var / "o")},
        )  # fmt: skip
        assert other.returncode == 1
        assert other.stderr.strip().splitlines()[-1] == (
            f"CommandError: Port {stack.port} is used by another program: choose another, as in `python3 manage.py up --port {stack.port + 1}`."
        )


@pytest.mark.slow
def test_a_worker_with_a_wrong_token_says_so_and_stops():
    with Stack("--no-worker") as stack:
        begin = time.monotonic()
        run = stack.manage("worker", "--host", stack.base, "--token", "ew_wrong", check=False)
        assert run.returncode == 1 and time.monotonic() - begin < 20
        assert "refused this worker's token" in run.stderr and "add_token" in run.stderr


@pytest.mark.slow
def test_a_model_that_can_not_be_resolved_leaves_the_lever_checking_with_the_cause():
    missing = factories.tone() | {"model": {"id": "missing/model", "revision": "0" * 40}}
    kokoro = {"name": "kokoro", "model": {"path": "kokoro-82m"}, "voice": {"preset": "jm_kumo"}}
    with Stack() as stack:
        stack.register(factories.spec("lost", parent=missing))
        stack.register(factories.spec("typo", parent=kokoro, change={"sampling": {"temperature": 0.7}}))
        stack.register(factories.spec("nothing", parent=kokoro, change={"quantisation": [{"match": "^nowhere", "bits": 4}]}))
        stack.register(factories.spec("nohub", parent=kokoro, change={"model": {"id": "no/such-model", "revision": "1" * 40}}))
        stack.wait(lambda: all(stack.state(s)["problem"] for s in ("lost", "typo", "nothing", "nohub")), 120, "the causes")
        assert "missing/model can't be loaded" in stack.state("lost")["problem"]
        assert "takes no 'temperature'" in stack.state("typo")["problem"]
        assert "matches no module" in stack.state("nothing")["problem"]
        assert "no/such-model at revision 1111" in stack.state("nohub")["problem"]
        assert {stack.state(s)["state"] for s in ("lost", "typo", "nothing", "nohub")} == {"checking"}
        page = stack.dashboard().get("/levers/typo/").text
        assert "takes no &#x27;temperature&#x27;" in page and "Check again" in page
