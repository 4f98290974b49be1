"""Amending a locked plan: a new, dated plan beside the old one, while no look has read anything."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from gate import history, ledger, policy, site_policy
from gate.models import Lever, Look, Plan
from synth.canonical import digest_of
from synth.configuration import Refused

#: What the draw, the renders and the measurements were made for; another lever is another plan.
FIXED = ("sentences", "replicates", "looks", "purpose", "attempts", "recogniser", "second_recogniser", "benefit")


def amend(lever: Lever, mapping: Any, note: str, user: Any = None) -> Plan:
    """A new plan that differs in what the mapping says. Changing more than the closing date caps the verdict (`plan_amended`).

    Raises Refused: nothing is locked yet, a look has read evidence, a fixed part would change, nothing would.
    """
    with transaction.atomic():
        row = Lever.objects.select_for_update().get(pk=lever.pk)
        old = row.plan
        if old is None:
            raise Refused("not_locked", f"The plan of {row.slug} is not locked yet: register it again as you want it.", "plan")
        if row.state == Lever.State.SETTLED or Look.objects.filter(plan__lever=row).exists():
            raise Refused("evidence_read", f"A look has read the evidence of {row.slug}: its plan can't be amended any more.", "plan")
        if not isinstance(mapping, dict) or not note.strip():
            raise Refused("amendment_invalid", "An amendment is a mapping of plan keys to new values, with a note that says why.", "plan")
        before = policy.of(old.body)
        plan = policy.parse(site_policy.merged(before.model_dump(mode="json"), mapping))
        for name in FIXED:
            if getattr(plan, name) != getattr(before, name):
                raise Refused(
                    "amendment_fixed", f"plan.{name} was fixed when the sentences were drawn: register another lever.", f"plan.{name}"
                )
        if plan == before:
            raise Refused("amendment_empty", "The amendment changes nothing.", "plan")
        policy.check_reach(plan, len(row.draw.order))
        later = plan.closes_after_days >= before.closes_after_days
        more = not later or plan.model_copy(update={"closes_after_days": before.closes_after_days}) != before
        closes = Plan.objects.get(lever=row, number=1).locked_at + timedelta(days=plan.closes_after_days)
        body = old.body | plan.model_dump(mode="json") | {
            "closes_at": closes.isoformat(), "amends": old.digest, "amended": bool(old.body.get("amended")) or more, "note": note[:300],
        }  # fmt: skip
        new = Plan.objects.create(lever=row, number=old.number + 1, body=body, digest=digest_of(body), locked_at=timezone.now())
        ledger.plan_locked(row, new)
        history.note(row, f"plan amended ({note[:200]}); digest {new.digest[:12]}", user)
    return new
