"""Celery tasks of the worker: each message is permission to do one unit of its kind."""

from __future__ import annotations

import logging
import os
import signal
from functools import cache

from django.conf import settings

from config import environment
from config.celery import app
from synth import desk
from synth.worker import Bench

log = logging.getLogger("earwitness.worker")
MESSAGE_S = 60  # the same as queue.RING_AGAIN: an old permission is replaced, not added to


@cache
def bench() -> Bench:
    connection = desk.Desk(settings.DESK_URL, settings.WORKER_TOKEN)
    scratch = settings.VAR / "run" / "scratch"
    return Bench(connection, settings.MODELS, settings.WORKER_MODULES, scratch, environment.integer("EARWITNESS_IDLE_WAIT_S", 600))


def _one(kind: str) -> None:
    try:
        bench().run(kind)
    except desk.Denied as error:
        log.error("%s Stopping.", error)
        os.kill(os.getpid(), signal.SIGTERM)


@app.task(expires=MESSAGE_S)
def preflight_one() -> None:
    _one("preflight")


@app.task(expires=MESSAGE_S)
def render_one() -> None:
    _one("render")


@app.task(expires=MESSAGE_S)
def time_one() -> None:
    _one("block")


@app.task(expires=MESSAGE_S)
def diagnose_one() -> None:
    _one("diagnosis")


#: The task for each kind of unit.
ONE = {"preflight": preflight_one, "render": render_one, "block": time_one, "diagnosis": diagnose_one}
