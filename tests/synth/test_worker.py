"""A worker against a real server over a real socket: beats, lost leases, refusals, uploads that are refused."""

import threading
import time
from datetime import timedelta

import pytest
from django.utils import timezone

from gate.models import Token
from synth import desk, heart, worker
from synth.models import Leased, Render, RenderGroup, TimedBlock, Worker
from tests import factories

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def start(live_server, tmp_path, monkeypatch):
    monkeypatch.setattr(heart, "BEAT_S", 0.2)
    made = []

    def start(name="mac", modules=("tests.tone",)):
        connection = desk.Desk(live_server.url, Token.issue(name, "worker"), patience=3)
        connection.hello({"name": name, "device_class": "test"})
        made.append(worker.Bench(connection, tmp_path / "models", list(modules), tmp_path / name, idle_wait_s=0))
        return made[-1]

    yield start
    for bench in made:
        bench.close()


def render(place=0, **extra):
    config = factories.configuration("tone", **extra)
    group = factories.group("draw", place, config)
    return Render.objects.create(
        group=group, configuration=config, sentence=factories.sentence(f"Number {chr(97 + place)}."), draw_key="draw", seed=5
    )


def meanwhile(work, watch, every=0.1):
    """Runs `work` on a thread and collects what `watch` sees until it ends."""
    seen, thread = [], threading.Thread(target=work)
    thread.start()
    while thread.is_alive():
        seen.append(watch())
        time.sleep(every)
    return seen


def test_a_lease_is_kept_while_many_short_clips_are_made(start):
    config = factories.configuration("tone", slow_s=0.15)
    sentences = [{"sentence": str(k), "text": f"Number {k}.", "language": "en", "seed": k} for k in range(6)]
    TimedBlock.objects.create(
        first=config, second=factories.configuration("other", slow_s=0.1), draw_key="d", number=0, sentences=sentences
    )
    bench = start()
    first = []

    def left():
        block = TimedBlock.objects.get()
        if block.state == Leased.State.LEASED:
            first.append(block.lease_until)
        return block.state

    meanwhile(lambda: bench.run("block"), left)
    assert TimedBlock.objects.get().state == Leased.State.DONE
    assert first[-1] - first[0] > timedelta(seconds=2)  # every clip was far shorter than any wait


def test_a_lost_lease_ends_the_child_and_leaves_the_unit_to_the_other(start):
    render(slow_s=30)
    bench = start()

    def rob():
        RenderGroup.objects.filter(state=Leased.State.LEASED).update(lease="12345678123456781234567812345678")

    begin = time.monotonic()
    meanwhile(lambda: bench.run("render"), rob)
    assert time.monotonic() - begin < 20
    assert not bench.child.alive()
    assert str(RenderGroup.objects.get().lease).startswith("12345678") and Render.objects.get().outcome == ""


def test_what_one_worker_can_not_do_waits_for_another_and_costs_no_attempt(start):
    row = render()
    poor, rich = start("poor", modules=()), start("rich")
    assert poor.run("render") is True
    group = RenderGroup.objects.get()
    assert (group.state, group.attempts, group.worker) == ("queued", 0, None) and "EARWITNESS_MODULES" in group.error
    assert poor.run("render") is False
    assert list(Worker.objects.get(name="poor").refuses) == [row.configuration.digest]
    assert rich.run("render") is True
    assert Render.objects.get().outcome == "made"


def test_a_failure_leaves_the_unit_to_any_worker(start):
    render(crash_on="Number")
    bench, other = start(), start("other")
    bench.run("render")
    group = RenderGroup.objects.get()
    assert (group.state, group.attempts, group.worker) == ("queued", 1, None) and "SIGKILL" in group.error
    RenderGroup.objects.update(due_at=timezone.now())
    assert other.run("render") is True


def test_a_clip_the_host_will_not_have_is_that_clips_outcome(start, monkeypatch):
    render()
    monkeypatch.setattr("synth.pcm.MAX_SECONDS", 0.1)
    start().run("render")
    made = Render.objects.get()
    assert (made.outcome, made.group.state) == ("error", "done") and "the limit is 0 s" in made.error


def test_a_token_that_is_revoked_ends_the_worker(start):
    render()
    bench = start()
    Token.objects.update(revoked_at=timezone.now())
    with pytest.raises(desk.Denied):
        bench.run("render")


def test_a_worker_that_has_nothing_to_do_is_still_there(start, monkeypatch):
    monkeypatch.setattr(worker, "ALIVE_S", 0.2)
    start()
    Worker.objects.update(last_seen=timezone.now() - timedelta(hours=1))
    deadline = time.monotonic() + 5
    while Worker.objects.get().last_seen < timezone.now() - timedelta(minutes=1):
        assert time.monotonic() < deadline
        time.sleep(0.1)
