"""Celery tasks of the deciding side: measure a batch of clips, look closer at some, advance what can move."""

from __future__ import annotations

from config.celery import app
from gate.models import ScoringBatch


@app.task(expires=60)
def score_batch() -> None:
    """Permission to measure one batch. When it counts, whatever waited for it moves on."""
    from gate import scoring

    batch = scoring.run()
    if batch is not None and batch.state == ScoringBatch.State.SOUND:
        advance_all()


@app.task(expires=60)
def compare_one() -> None:
    from gate import annotations

    annotations.compare_one()


@app.task(expires=60)
def judge_one() -> None:
    from gate import annotations

    annotations.judge_one()


@app.task(expires=10)
def advance_all() -> None:
    from gate import advance

    advance.advance_open()
