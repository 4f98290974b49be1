"""Writing the ledger, and showing that nothing in it was changed."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from gate.models import LedgerEntry, Lever, Look, Plan, Verdict
from gate.sentences import list_digest
from synth.canonical import canonical, digest_of

FIRST = "0" * 64
TRIES = 20


def _hash(number: int, at: datetime, kind: str, lever: str, body: dict[str, Any], previous: str) -> str:
    line = {"number": number, "at": at.isoformat(), "kind": kind, "lever": lever, "body": body, "previous": previous}
    return hashlib.sha256(canonical(line).encode()).hexdigest()


def _append(kind: str, lever: Lever, body: dict[str, Any]) -> LedgerEntry:
    """Adds a line after the last one. Two writers at once: the second waits for the first's commit and goes after it."""
    at = timezone.now()
    for attempt in range(TRIES):
        last = LedgerEntry.objects.order_by("-number").first()
        number, previous = (last.number + 1, last.sha256) if last else (1, FIRST)
        try:
            with transaction.atomic():
                return LedgerEntry.objects.create(
                    number=number, at=at, kind=kind, lever=lever, body=body, previous=previous,
                    sha256=_hash(number, at, kind, lever.slug, body, previous),
                )  # fmt: skip
        except IntegrityError:
            if attempt == TRIES - 1:
                raise
    raise AssertionError  # pragma: no cover


def plan_locked(lever: Lever, plan: Plan) -> None:
    _append("plan", lever, _plan(lever, plan))


def verdict_given(verdict: Verdict) -> None:
    _append("verdict", verdict.lever, _verdict(verdict))


def _plan(lever: Lever, plan: Plan) -> dict[str, Any]:
    body = plan.body
    return {
        "parent": lever.parent.digest, "candidate": lever.candidate.digest, "plan": plan.digest, "plan_number": plan.number,
        "attempt": body.get("attempt", 1), "reserved": body.get("reserved", 1), "list_sha256": body.get("list_sha256", ""),
        "sentences": len(lever.draw.order) if lever.draw else 0, "code_version": body.get("code_version", ""),
    }  # fmt: skip


def _figures(look: Look | None) -> dict[str, Any]:
    shown = {"name", "estimate", "lower", "upper", "margin", "low", "high", "state", "n"}
    return {
        "look": {"kind": look.kind, "number": look.number, "evidence_sha256": look.evidence_sha256} if look else None,
        "endpoints": [{k: v for k, v in e.items() if k in shown} for e in look.evidence.get("endpoints", [])] if look else [],
        "speed": {k: look.evidence.get("speed", {}).get(k) for k in ("speedup", "lower", "upper")} if look else {},
    }  # fmt: skip


def _verdict(verdict: Verdict) -> dict[str, Any]:
    body = {
        "verdict": verdict.verdict, "reasons": verdict.reasons, "evidence": verdict.evidence, "plan": verdict.plan.digest,
        "parent": verdict.lever.parent.digest, "candidate": verdict.lever.candidate.digest, "code_version": verdict.code_version,
        "attempt": verdict.plan.body.get("attempt", 1), **_figures(verdict.look),
    }  # fmt: skip
    if verdict.look is None:  # judged again: on the figures of the verdict before it
        before = verdict.lever.verdicts.filter(pk__lt=verdict.pk).exclude(look=None).order_by("-pk").first()
        body["stands_on"] = _figures(before.look) if before else None
    return body


def verify() -> list[str]:
    """What is wrong with the ledger and with the rows it speaks of, a sentence each; nothing when all is well."""
    entries = list(LedgerEntry.objects.select_related("lever").order_by("number"))
    return _chain(entries) + _rows(entries)


def _chain(entries: list[LedgerEntry]) -> list[str]:
    wrong, previous, number = [], FIRST, 0
    for entry in entries:
        number += 1
        if entry.number != number:
            wrong.append(f"Entry {number} is missing: the next one there is {entry.number}.")
            number = entry.number
        if entry.previous != previous:
            wrong.append(f"Entry {entry.number} does not follow the one before it.")
        if entry.sha256 != _hash(entry.number, entry.at, entry.kind, entry.lever.slug, entry.body, entry.previous):
            wrong.append(f"Entry {entry.number} ({entry.kind} of {entry.lever.slug}) was changed after it was written.")
        previous = entry.sha256
    return wrong


def _agrees(told: dict[str, Any], now: dict[str, Any]) -> bool:
    """Whether a line says what its row says; an older line may say less."""
    return all(now.get(name) == value for name, value in told.items())


def _rows(entries: list[LedgerEntry]) -> list[str]:
    """Lines without rows, rows without lines, rows that are not what was locked or read."""
    wrong: list[str] = []
    plans = list(Plan.objects.select_related("lever__parent", "lever__candidate", "lever__draw"))
    verdicts = list(Verdict.objects.select_related("lever__parent", "lever__candidate", "plan", "look"))
    if not entries and plans:
        return [f"The ledger is empty, but {len(plans)} plans were locked."]
    since = entries[0].at - timedelta(seconds=5) if entries else timezone.now()  # what an older version locked or judged has no line
    bodies: dict[str, dict[int, list[dict[str, Any]]]] = {"plan": defaultdict(list), "verdict": defaultdict(list)}
    for plan in plans:
        bodies["plan"][plan.lever_id].append(_plan(plan.lever, plan))
        if digest_of(plan.body) != plan.digest:
            wrong.append(f"The plan of {plan.lever.slug} is not what was locked: its digest is another.")
        draw = plan.lever.draw
        if draw and {draw.list_sha256, plan.body.get("list_sha256")} != {list_digest(draw.order)}:
            wrong.append(f"The sentences drawn for {plan.lever.slug} are not those that were locked.")
    for verdict in verdicts:
        bodies["verdict"][verdict.lever_id].append(_verdict(verdict))
    told: dict[str, dict[int, list[dict[str, Any]]]] = {"plan": defaultdict(list), "verdict": defaultdict(list)}
    for entry in entries:
        told[entry.kind][entry.lever_id].append(entry.body)
        if not any(_agrees(entry.body, body) for body in bodies[entry.kind][entry.lever_id]):
            wrong.append(f"Entry {entry.number} speaks of a {entry.kind} of {entry.lever.slug} that is not there, or is another now.")
    for plan in plans:
        if plan.locked_at >= since and not any(_agrees(b, _plan(plan.lever, plan)) for b in told["plan"][plan.lever_id]):
            wrong.append(f"The plan of {plan.lever.slug} stands otherwise in the ledger, or not at all.")
    for verdict in verdicts:
        if verdict.at >= since and not any(_agrees(b, _verdict(verdict)) for b in told["verdict"][verdict.lever_id]):
            wrong.append(f"A verdict of {verdict.lever.slug} ({verdict.verdict}) stands otherwise in the ledger, or not at all.")
    for look in Look.objects.select_related("plan__lever"):
        if digest_of(look.evidence) != look.evidence_sha256:
            wrong.append(f"The evidence of {look.plan.lever.slug}'s {look.kind} look {look.number} is not what was read.")
    return wrong
