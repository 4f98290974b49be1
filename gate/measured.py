"""What is measured of a lever's clips, what is still to come, and what holds it up."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from gate import stages
from gate.identity import all_renders
from gate.identity import arms as arms_of
from gate.metrics import battery
from gate.models import Lever, Measurement, Scorer, ScoringBatch
from synth.models import Leased, Render

NO_SCORER = timedelta(minutes=3)
#: More transcripts than this in the wrong script, in the parent's arm, and the recogniser can't be used at all.
WRONG_SCRIPT_SHARE = 0.02


@dataclass(frozen=True)
class Row:
    """One clip's scores; a clip that was not made, or failed its checks, has the worst values. Times in seconds, level in dBFS."""

    cer: float
    dnsmos: float
    level: float | None
    seconds: float | None
    failed: str
    flags: tuple[str, ...] = ()
    scores: dict[str, Any] | None = None


Table = dict[int, dict[str, list[Row]]]


def _row(render: Render, measurements: dict[tuple[int, int], Measurement]) -> Row | None:
    """None when the evidence is incomplete: neither made nor failed, or made and not measured."""
    if render.outcome == Render.Outcome.PENDING:
        return None
    if render.clip is None:
        return Row(battery.WORST_CER, battery.FLOOR_DNSMOS, None, None, render.outcome)
    found = measurements.get((render.clip_id, render.sentence_id))
    if found is None:
        return None
    s = found.scores
    wrong = s["failed"] or ", ".join(s.get("catastrophes", ()))
    return Row(s["cer"], s["dnsmos"], s["level_dbfs"], None if s["failed"] else s["duration_s"], wrong, tuple(s.get("flags", ())), s)


def table(lever: Lever) -> tuple[Table, list[str]]:
    """sentence -> arm -> rows, and what is missing."""
    listed, arms = list(all_renders(lever)), arms_of(lever)
    found = Measurement.usable().filter(clip__in={r.clip_id for r in listed if r.clip_id}, identity=lever.plan.body["metrics"])
    measurements = {(m.clip_id, m.sentence_id): m for m in found}
    rows: Table = defaultdict(lambda: {arm: [] for arm in arms.values()})
    # A row that is not there is as lost as a clip: both arms are judged on one list of sentences, all of it.
    expected = len(stages.covered(lever)) * lever.plan.body["replicates"] * len(arms)
    lost, unmeasured = expected - len(listed), 0
    for render in listed:
        row = _row(render, measurements)
        if row is None:
            lost += render.outcome == Render.Outcome.PENDING
            unmeasured += render.outcome != Render.Outcome.PENDING
            continue
        rows[render.sentence_id][arms[render.configuration_id]].append(row)
    missing = ([f"clips_lost:{lost}"] if lost else []) + ([f"clips_not_measured:{unmeasured}"] if unmeasured else [])
    return rows, missing + _wrong_script(rows)


def _wrong_script(rows: Table) -> list[str]:
    parent = [r for found in rows.values() for r in found["parent"]]
    wrong = sum("wrong_script" in r.flags and "second_recogniser_counts" not in r.flags for r in parent)
    return [f"asr_wrong_script:{wrong}"] if parent and wrong > WRONG_SCRIPT_SHARE * len(parent) else []


def tally(rows: Table, arm: str) -> dict[str, dict[str, int]]:
    """How many clips of an arm have each catastrophe and each flag."""
    mine = [r for arms in rows.values() for r in arms[arm]]
    wrong = Counter(name for r in mine if r.failed for name in r.failed.split(", "))
    return {"catastrophes": dict(sorted(wrong.items())), "flags": dict(sorted(Counter(f for r in mine for f in r.flags).items()))}


def waiting(lever: Lever) -> list[Measurement]:
    """Measurements that will still come, or come again: not made, or in a batch that does not count yet."""
    wanted = {(r.clip_id, r.sentence_id) for r in all_renders(lever) if r.clip_id}
    rows = Measurement.objects.filter(clip__in={clip for clip, _ in wanted}, identity=lever.plan.body["metrics"])
    coming = rows.exclude(state=Leased.State.FAILED).exclude(pk__in=Measurement.usable().values("pk"))
    return [m for m in coming.select_related("batch") if (m.clip_id, m.sentence_id) in wanted]


def held_up(coming: list[Measurement]) -> str:
    """What holds measuring up, or ''."""
    now = timezone.now()
    if any(m.state == Leased.State.LEASED or (m.batch and m.batch.state == ScoringBatch.State.OPEN) for m in coming):
        return ""
    seen = Scorer.objects.order_by("-last_seen").first()
    since = min((m.due_at for m in coming), default=now)
    if now - max(since, seen.last_seen if seen else since) > NO_SCORER:
        start = "start one (`manage.py up`, or a Celery worker for the queue `score`)"
        return f"Measuring is held up: no scorer was seen for {NO_SCORER.seconds // 60} minutes; {start}."
    broken = next((m.error for m in coming if m.error), "") or (seen.trouble if seen else "")
    return f"Measuring is held up: {broken}" if broken else ""
