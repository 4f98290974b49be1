"""Rings for due work. A broker that is down fails no request: the row is there and `tend` rings again."""

from __future__ import annotations

import contextlib
import logging
import queue as queue_module
import threading
import time
from typing import Any

from celery import Task
from django.db import transaction
from django.utils import timezone
from kombu.exceptions import OperationalError

from synth import queue, tasks
from synth.models import UNITS

log = logging.getLogger("earwitness.bell")
TASKS: dict[type, Task] = {model: tasks.ONE[kind] for kind, model in UNITS.items()}


#: Messages leave on a thread of their own: a broker that is down makes its client try for seconds, and no request may wait for it.
_outbox: queue_module.Queue[tuple[Task, int]] = queue_module.Queue(maxsize=20)
_poster: list[threading.Thread] = []


def publish(task: Task, times: int) -> None:
    """Sends that many permissions, soon. What can't be sent is dropped: tend rings again."""
    with contextlib.suppress(queue_module.Full):
        _outbox.put_nowait((task, times))
    if not (_poster and _poster[-1].is_alive()):  # none yet, or this process is a fork of one that had it
        _poster.append(threading.Thread(target=_post, daemon=True, name="bell"))
        _poster[-1].start()


def _post() -> None:
    while True:
        task, times = _outbox.get()
        try:
            for _ in range(times):
                task.apply_async()
        except (OperationalError, OSError) as error:
            log.warning("the broker can't be reached (%s); the work is kept and will be rung for again", error)
        finally:
            _outbox.task_done()


def flush(seconds: float) -> None:
    """For a command about to end: waits for what was published, for at most this long."""
    deadline = time.monotonic() + seconds
    while _outbox.unfinished_tasks and time.monotonic() < deadline:
        time.sleep(0.02)


def ring(rows: Any, task: Task) -> int:
    """One message for each of the rows that wants one. They are marked first: a lost message costs a minute, a doubled one nothing."""
    wanted = queue.due(rows, timezone.now())
    if wanted:
        publish(task, wanted)
    return wanted


def ring_all() -> None:
    for model, task in TASKS.items():
        ring(model.objects.all(), task)


def ring_after_commit() -> None:
    transaction.on_commit(ring_all)
