"""Celery tasks of the deciding side: score one clip, advance what can move."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from dataclasses import asdict
from functools import cache

from django.conf import settings
from django.db import connection
from django.utils import timezone

from config.celery import app
from gate.metrics import asr, battery
from gate.models import Measurement
from synth import clips, pcm, queue
from synth.models import Leased, TimedBlock

log = logging.getLogger("earwitness.score")


@cache
def _recogniser() -> asr.Recogniser:
    return asr.default(settings.MODELS)


def a_block_runs_here() -> bool:
    """A timed pass wants the machine for itself; scoring waits. Only a worker on this host counts."""
    return TimedBlock.objects.filter(
        state=Leased.State.LEASED, lease_until__gt=timezone.now(), worker__name=settings.WORKER_NAME
    ).exists()  # fmt: skip


class Heart(threading.Thread):
    """Keeps the lease of a measurement while it is made: a long clip takes longer than a lease lasts."""

    def __init__(self, lease: uuid.UUID) -> None:
        super().__init__(daemon=True, name="heart")
        self.lease, self._stopped = lease, threading.Event()

    def run(self) -> None:
        while not self._stopped.wait(8):
            try:
                queue.beat(Measurement, self.lease, timezone.now())
            except queue.Lost:
                break
        connection.close()

    def stop(self) -> None:
        self._stopped.set()
        self.join()


@app.task(expires=60)
def score_one() -> None:
    """Claims one measurement and does it. A scorer that can't work gives it back; a bad clip is a result."""
    if a_block_runs_here():
        return
    unit = queue.claim(Measurement.objects.order_by("pk"), timezone.now())
    if unit is None:
        return
    begin = time.perf_counter()
    heart = Heart(unit.lease)
    heart.start()
    try:
        recogniser = _recogniser()
        if unit.identity != battery.identity(settings.MODELS):
            raise RuntimeError(f"this host measures with {battery.identity(settings.MODELS)}, the plan names {unit.identity}")
        try:
            sound = clips.samples(unit.clip)
        except pcm.BadAudio as error:
            scores = battery.failed(f"unreadable: {error}")
        else:
            references = unit.sentence.spoken_refs or [unit.sentence.text]
            scores = battery.score(sound.samples, sound.sample_rate, references, unit.sentence.language, recogniser)
    except Exception as error:  # noqa: BLE001 - a scorer that is down is not a bad clip
        log.exception("measuring clip %s failed", unit.clip_id)
        try:
            queue.fail(Measurement, unit.lease, timezone.now(), f"the scorer failed: {type(error).__name__}: {error}")
        except queue.Lost:
            pass
        return
    finally:
        heart.stop()

    def store(measured: Measurement) -> None:
        measured.scores, measured.seconds = asdict(scores), time.perf_counter() - begin
        measured.save(update_fields=["scores", "seconds"])

    try:
        queue.finish(Measurement, unit.lease, timezone.now(), store)
    except queue.Lost:
        return
    if not Measurement.objects.exclude(state__in=[Leased.State.DONE, Leased.State.FAILED]).exists():
        advance_all()


@app.task(expires=10)
def advance_all() -> None:
    from gate import advance

    advance.advance_open()
