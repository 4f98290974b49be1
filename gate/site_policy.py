"""The policy in force, and the one a plan was locked under."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from gate import history, policy
from gate.models import Plan, Policy


def newest() -> Policy | None:
    return Policy.objects.order_by("-pk").first()


def current() -> policy.Plan:
    """What plans have unless they say otherwise; the built-in policy until a lead has set one."""
    row = newest()
    return policy.of(row.body) if row else policy.POLICY


def locked_under(plan: Plan) -> policy.Plan:
    """The policy that was in force when a plan was locked: a later one changes no lever under way."""
    row = Policy.objects.filter(pk=plan.body.get("policy")).first()
    return policy.of(row.body) if row else policy.POLICY


def merged(base: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """`base` with the values of `given` put in, part by part."""
    both = dict(base)
    for key, value in given.items():
        both[key] = merged(base[key], value) if isinstance(value, dict) and isinstance(base.get(key), dict) else value
    return both


def filled(mapping: Any) -> Any:
    """The plan part of a spec with what it leaves out taken from the policy in force. What is no mapping stays what it is."""

    return merged(current().model_dump(mode="json"), mapping) if isinstance(mapping, dict) else mapping


def replace(mapping: Any, note: str, user: Any) -> Policy:
    """A new version; what the mapping leaves out is the built-in policy's. Raises Refused."""
    plan = policy.parse(mapping)
    with transaction.atomic():
        row = Policy.objects.create(body=plan.model_dump(mode="json"), note=note[:300], by=user)
        history.note(None, f"policy {row.pk}: {note}", user)
    return row
