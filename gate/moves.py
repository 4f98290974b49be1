"""What every step of a lever does: move it, say what holds it up, keep a look, give the verdict."""

from __future__ import annotations

import logging

from django.conf import settings
from django.db import transaction

from gate import annotations, decide, history, ledger, standing
from gate.models import Lever, Look, Verdict
from listening import pairs
from synth.canonical import digest_of

log = logging.getLogger("earwitness.advance")


class Elsewhere(Exception):
    """Another process moved this lever first; nothing of ours is kept."""


def move(lever: Lever, state: str) -> None:
    if not Lever.objects.filter(pk=lever.pk, state=lever.state).update(state=state, problem=""):
        raise Elsewhere
    lever.state, lever.problem = state, ""


def trouble(lever: Lever, text: str) -> None:
    """Shows what holds the lever up, or takes it away; of two processes that find the same, one writes it down."""
    if Lever.objects.filter(pk=lever.pk, state=lever.state).exclude(problem=text).update(problem=text) and text:
        history.note(lever, text)


def look_closer(lever: Lever) -> None:
    """Annotations, asked for once the look is committed: nothing waits for them and nothing can fail by them."""

    def ask() -> None:
        try:
            annotations.want(lever)
            annotations.ring()
        except Exception:  # noqa: BLE001 - a judge that can't be made must not hold a verdict
            log.exception("annotations of %s could not be asked for", lever.slug)

    transaction.on_commit(ask)


def keep_look(lever: Lever, kind: str, number: int, facts: dict) -> Look:
    if lever.plan.digest != facts.get("plan", lever.plan.digest):  # it was amended while the evidence was read
        raise Elsewhere
    return Look.objects.create(plan=lever.plan, kind=kind, number=number, evidence=facts, evidence_sha256=digest_of(facts))


def judge(lever: Lever, look: Look | None, decision: decide.Decision) -> None:
    verdict = Verdict.objects.create(
        lever=lever, plan=lever.plan, look=look, verdict=decision.verdict, reasons=list(decision.reasons),
        evidence=decision.evidence, code_version=settings.VERSION,
    )  # fmt: skip
    ledger.verdict_given(verdict)
    standing.judge_children_again(lever)
    if lever.study_id:
        pairs.close(lever.study)
    history.note(lever, f"verdict: {decision.verdict} ({', '.join(decision.reasons)})")
