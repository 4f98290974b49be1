"""Writing the ledger, and showing that nothing in it was changed."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from gate.models import LedgerEntry, Lever, Look, Plan, Verdict
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


def _verdict(verdict: Verdict) -> dict[str, Any]:
    look = verdict.look
    shown = {"name", "estimate", "lower", "upper", "margin", "low", "high", "state", "n"}
    return {
        "verdict": verdict.verdict, "reasons": verdict.reasons, "evidence": verdict.evidence, "plan": verdict.plan.digest,
        "parent": verdict.lever.parent.digest, "candidate": verdict.lever.candidate.digest, "code_version": verdict.code_version,
        "look": {"kind": look.kind, "number": look.number, "evidence_sha256": look.evidence_sha256} if look else None,
        "endpoints": [{k: v for k, v in e.items() if k in shown} for e in look.evidence.get("endpoints", [])] if look else [],
        "speed": {k: look.evidence.get("speed", {}).get(k) for k in ("speedup", "lower", "upper")} if look else {},
    }  # fmt: skip


def verify() -> list[str]:
    """What is wrong with the ledger and with the rows it speaks of, a sentence each; nothing when all is well."""
    wrong, previous, number = [], FIRST, 0
    told: dict[str, set[str]] = {"plan": set(), "verdict": set()}
    for entry in LedgerEntry.objects.select_related("lever").order_by("number").iterator():
        number += 1
        if entry.number != number:
            wrong.append(f"Entry {number} is missing: the next one there is {entry.number}.")
            number = entry.number
        if entry.previous != previous:
            wrong.append(f"Entry {entry.number} does not follow the one before it.")
        if entry.sha256 != _hash(entry.number, entry.at, entry.kind, entry.lever.slug, entry.body, entry.previous):
            wrong.append(f"Entry {entry.number} ({entry.kind} of {entry.lever.slug}) was changed after it was written.")
        previous = entry.sha256
        told[entry.kind].add(f"{entry.lever_id}:{digest_of(entry.body)}")
    first = LedgerEntry.objects.order_by("number").first()
    since = first.at if first else timezone.now()  # what an older version locked or judged has no line
    for plan in Plan.objects.select_related("lever__parent", "lever__candidate", "lever__draw"):
        if digest_of(plan.body) != plan.digest:
            wrong.append(f"The plan of {plan.lever.slug} is not what was locked: its digest is another.")
        if plan.locked_at >= since and f"{plan.lever_id}:{digest_of(_plan(plan.lever, plan))}" not in told["plan"]:
            wrong.append(f"The plan of {plan.lever.slug} stands otherwise in the ledger, or not at all.")
    for look in Look.objects.select_related("plan__lever"):
        if digest_of(look.evidence) != look.evidence_sha256:
            wrong.append(f"The evidence of {look.plan.lever.slug}'s {look.kind} look {look.number} is not what was read.")
    for verdict in Verdict.objects.select_related("lever__parent", "lever__candidate", "plan", "look"):
        if verdict.at >= since and f"{verdict.lever_id}:{digest_of(_verdict(verdict))}" not in told["verdict"]:
            wrong.append(f"A verdict of {verdict.lever.slug} ({verdict.verdict}) stands otherwise in the ledger, or not at all.")
    return wrong
