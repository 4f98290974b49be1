"""Rings for due work. A broker that is down fails no request: the row is there and `tend` rings again."""

from __future__ import annotations

import logging
from typing import Any

from celery import Task
from django.db import transaction
from django.utils import timezone
from kombu.exceptions import OperationalError

from synth import queue, tasks
from synth.models import Preflight, RenderGroup, TimedBlock

log = logging.getLogger("earwitness.bell")
TASKS: dict[type, Task] = {Preflight: tasks.preflight_one, RenderGroup: tasks.render_one, TimedBlock: tasks.time_one}


def publish(task: Task, times: int) -> bool:
    """Sends that many permissions; False when the broker is not there."""
    try:
        for _ in range(times):
            task.apply_async()
    except (OperationalError, OSError) as error:
        log.warning("the broker can't be reached (%s); the work is kept and will be rung for again", error)
        return False
    return True


def ring(model: Any, task: Task) -> int:
    """One message for each unit that wants one. Rows are marked first: a lost message costs a minute, a doubled one nothing."""
    wanted = queue.due(model.objects.all(), timezone.now())
    return wanted if wanted and publish(task, wanted) else 0


def ring_all() -> None:
    for model, task in TASKS.items():
        ring(model, task)


def ring_after_commit() -> None:
    transaction.on_commit(ring_all)
