"""How much faster a system is than the root it grew from: timed when somebody asks, as products of single speed-ups mislead."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from gate import export, history, lineage, pace, policy
from gate.models import Lever
from gate.timing import Blocks
from synth import bell
from synth.configuration import Refused
from synth.models import TimedBlock

SUFFIX = ":root"


def against_root(lever: Lever) -> Blocks | None:
    """The comparison with the root; None where the root is the parent itself, or nothing is locked yet."""
    root = lineage.root(lever)
    if lever.draw is None or lever.plan is None or root.pk == lever.parent_id:
        return None
    return Blocks(lever, root, lever.candidate, lever.draw.key + SUFFIX)


def ask(lever: Lever, user: Any = None) -> None:
    """Has root and candidate timed in blocks of their own. Raises Refused where there is nothing to time, or it is under way."""
    blocks = against_root(lever)
    if blocks is not None and not export.clips_unsealed(lever):
        raise Refused("still_sealed", f"{lever.slug} is not measured yet: its speed is sealed until then. Ask again later.")
    if blocks is None:
        raise Refused("no_root_to_time", f"{lever.slug} stands on a root, or its plan is not locked: its own speed-up is the whole one.")
    with transaction.atomic():
        if blocks.rows():
            raise Refused("root_timed_already", f"{lever.slug} was timed against its root already, or is about to be.")
        blocks.start()
        history.note(lever, f"to be timed against its root, {blocks.first.name}", user)
        bell.ring_after_commit()


def tend() -> None:
    """Disturbed blocks are run again."""
    keys = TimedBlock.objects.filter(draw_key__endswith=SUFFIX).values_list("draw_key", "second_id").distinct()
    for key, candidate in keys:
        for lever in Lever.objects.filter(draw__key=key.removesuffix(SUFFIX), candidate=candidate).select_related("draw"):
            blocks = against_root(lever)
            if blocks is not None and (why := blocks.again()):
                history.note(lever, f"a timed block against the root is void ({why}); it is run again")


def facts(lever: Lever) -> dict[str, Any] | None:
    """For a page: what is known of the speed-up over the root, or how many blocks are still to come; None where nobody asked."""
    blocks = against_root(lever)
    if blocks is None or not export.clips_unsealed(lever) or not (rows := blocks.rows()):
        return None
    found = {"root": blocks.first, "settled": blocks.settled(), "done": sum(b.state == b.State.DONE for b in rows), "of": len(rows)}
    return found | pace.measured_speed(blocks, policy.of(lever.plan.body))[1] if found["settled"] else found
