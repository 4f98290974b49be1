"""Closer looks that are shown and decide nothing: parity of two recordings, a language model's scorecard.

They are asked for once the automatic look has read its evidence, and nothing that decides imports this module.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.db import connection
from django.utils import timezone

from gate import identity, judges, scoring
from gate.metrics import parity
from gate.models import Comparison, Judgement, Lever
from synth import bell, clips, queue
from synth.heart import Heart
from synth.models import Clip, Leased, Sentence

log = logging.getLogger("earwitness.annotations")
MOST_COMPARED = 100


def _different(lever: Lever) -> list[tuple[Sentence, Clip, Clip]]:
    """Pairs that should be one sound and are not; only a lever that says so should be near-identical."""
    if not lever.wanted["claims_identical"]:
        return []
    return [(s, a, b) for s, a, b in identity.clip_pairs(lever) if a.pk != b.pk][:MOST_COMPARED]


def want(lever: Lever) -> None:
    """Asks for whatever there is to see closer; asking twice is asking once."""
    for _, first, second in _different(lever):
        Comparison.objects.get_or_create(first=first, second=second)
    judge = judges.configured()
    if judge is not None:
        for sentence, first, second in identity.clip_pairs(lever)[: settings.JUDGE_SENTENCES]:
            for clip in (first, second):
                Judgement.objects.get_or_create(clip=clip, sentence=sentence, judge=judge.name)


def ring() -> None:
    """One message for each closer look that waits; none for a judge that is not the site's any more."""
    from gate.tasks import compare_one, judge_one

    bell.ring(Comparison.objects.all(), compare_one)
    judge = judges.configured()
    if judge is not None:
        bell.ring(Judgement.objects.filter(judge=judge.name), judge_one)


def _do(rows: Any, work: Any, store: Any) -> bool:
    """Claims one of the rows and does it; False when there was none, or while a timed pass wants this host for itself."""
    model = rows.model
    unit = None if scoring.a_block_runs_here() else queue.claim(rows.order_by("pk"), timezone.now())
    if unit is None:
        return False
    heart = Heart(lambda: queue.beat(model, unit.lease, timezone.now()), (queue.Lost,), at_end=lambda: connection.close())
    heart.start()
    try:
        result = work(unit)
    except Exception as error:  # noqa: BLE001 - told on the row; nothing waits for it
        if not isinstance(error, judges.JudgeFailed):
            log.exception("%s %s could not be done", model.__name__.lower(), unit.pk)
        try:
            queue.fail(
                model,
                unit.lease,
                timezone.now(),
                str(error) if isinstance(error, judges.JudgeFailed) else f"{type(error).__name__}: {error}",
            )
        except queue.Lost:
            pass
        return True
    finally:
        heart.stop()
    try:
        queue.finish(model, unit.lease, timezone.now(), lambda row: store(row, result))
    except queue.Lost:
        pass
    return True


def compare_one() -> bool:
    def work(unit: Comparison) -> dict[str, Any]:
        a, b = clips.samples(unit.first), clips.samples(unit.second)
        return asdict(parity.compare(a.samples, a.sample_rate, b.samples, b.sample_rate))

    def store(unit: Comparison, figures: dict[str, Any]) -> None:
        unit.figures = figures
        unit.save(update_fields=["figures"])

    return _do(Comparison.objects.all(), work, store)


def judge_one() -> bool:
    judge = judges.configured()
    if judge is None:
        return False

    def work(unit: Judgement) -> judges.Scorecard:
        sound = clips.samples(unit.clip)
        return judges.ask(judge, judges.Request(sound.samples, sound.sample_rate, unit.sentence.text, unit.sentence.language))

    def store(unit: Judgement, card: judges.Scorecard) -> None:
        unit.scorecard = card.model_dump()
        unit.save(update_fields=["scorecard"])

    return _do(Judgement.objects.filter(judge=judge.name), work, store)


def comparisons(lever: Lever) -> list[dict[str, Any]]:
    """What was found of a lever's differing pairs, in the draw's order."""
    wanted = _different(lever)
    found = {(c.first_id, c.second_id): c for c in Comparison.objects.filter(first__in={a.pk for _, a, _ in wanted})}
    rows = ((s, found.get((a.pk, b.pk))) for s, a, b in wanted)
    return [{"sentence": s.text, "state": c.state, "error": c.error, **c.figures} for s, c in rows if c]


def judgements(lever: Lever) -> list[dict[str, Any]]:
    """Scorecards of a lever's clips, parent's and candidate's beside each other."""
    wanted = identity.clip_pairs(lever)
    found: dict[tuple[int, int], list[Judgement]] = defaultdict(list)
    for row in Judgement.objects.filter(clip__in={c.pk for _, a, b in wanted for c in (a, b)}).order_by("judge"):
        found[row.clip_id, row.sentence_id].append(row)
    judge, out = judges.configured(), []
    asked = judge.name if judge else ""
    for sentence, *both in wanted:
        for arm, clip in zip(("parent", "candidate"), both, strict=True):
            for row in found.get((clip.pk, sentence.pk), []):
                settled = row.state in (Leased.State.DONE, Leased.State.FAILED)
                if not settled and row.judge != asked:
                    continue  # of a judge the site has no more: it will never be answered
                said = {"transcription": None, "error": row.error if settled else "", **row.scorecard}
                out.append({"sentence": sentence.text, "arm": arm, "judge": row.judge, **said})
    return out
