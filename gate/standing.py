"""Whether a verdict still stands: judged again when its parent's changes, and expired when what it was measured on is gone."""

from __future__ import annotations

from django.conf import settings

from gate import decide, evidence, history, ledger, lineage
from gate.identity import identical
from gate.lock import plan_of
from gate.models import Lever, Verdict
from synth.models import Preflight, Worker

#: Parts of a worker's environment that make another parent of the same configuration.
DECIDING = ("mlx", "mlx-audio", "platform", "device")


def judge_children_again(lever: Lever) -> None:
    """After a verdict on `lever`: the levers that stand on its candidate keep theirs only as far as it carries them."""
    for child in Lever.objects.filter(parent=lever.candidate, state=Lever.State.SETTLED).exclude(pk=lever.pk).select_related("draw"):
        judge_again(child)


def judge_again(lever: Lever) -> bool:
    """A new verdict beside the old one when the caps on it are others now; the measurements are not looked at again."""
    old = lever.verdict
    if old is None or old.verdict not in (decide.ACCEPTED, decide.PROVISIONAL):
        return False  # nothing its parent could give or take
    caps = evidence.caps(lever, plan_of(lever), identical(lever))
    notes = [code for code in old.reasons if code.endswith(":significantly_worse") or code.startswith("not_bit_identical")]
    missing = [code for code in old.reasons if code.startswith("core_endpoint_missing")]
    now = [*caps, *missing, *notes] if caps or missing else [f"evidence:{old.evidence}", *notes]
    word = decide.PROVISIONAL if caps or missing else decide.ACCEPTED
    if word == old.verdict and set(now) == set(old.reasons):
        return False
    verdict = Verdict.objects.create(
        lever=lever, plan=old.plan, look=None, verdict=word, reasons=now, evidence=old.evidence, code_version=settings.VERSION
    )
    ledger.verdict_given(verdict)
    history.note(lever, f"judged again, as its parent's verdict changed: {word} ({', '.join(now)})")
    judge_children_again(lever)
    return True


def why_not(lever: Lever) -> list[str]:
    """Why the newest verdict does not hold any more: `stale-parent`, `expired`; nothing when it stands."""
    verdict = lever.verdict
    if verdict is None:
        return []
    found = []
    below = [maker.pk for maker in lineage.makers(lever.parent)]
    newest = Verdict.objects.filter(lever__in=below).order_by("-pk").first()
    if (
        newest is not None
        and newest.verdict in (decide.REJECTED, decide.NO_BENEFIT)
        and verdict.verdict in (decide.ACCEPTED, decide.PROVISIONAL)
    ):
        found.append("stale-parent")
    body = lever.plan.body if lever.plan else {}
    worker = Worker.objects.filter(device_class=body.get("device_class", "")).order_by("-last_seen").first()
    flight = Preflight.objects.filter(configuration=lever.candidate, state="done").first()
    then = body.get("environment") or {}
    tried = flight.report.get("environment") if flight else None
    machine = worker.environment if worker else {}  # what it says of itself without loading an engine: less than a trial says
    changed = tried and then and any(tried.get(name) != then.get(name) for name in DECIDING)
    if changed or any(machine[name] != then[name] for name in DECIDING if name in machine and name in then):
        found.append("expired")
    return found
