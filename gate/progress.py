"""Counts of a lever's work, which anyone may see at any time; nothing here tells one arm from the other."""

from __future__ import annotations

from dataclasses import dataclass

from gate import advance, hearing, identity, lock, timing
from gate.models import Lever, Measurement
from listening import pairs
from synth.models import Leased, Preflight


@dataclass(frozen=True)
class Bar:
    label: str
    done: int
    total: int
    note: str = ""

    @property
    def percent(self) -> int:
        return round(100 * self.done / self.total) if self.total else 0


def bars(lever: Lever) -> list[Bar]:
    """One bar per step of the lever's way, those ahead of it empty."""
    plan = lock.plan_of(lever)
    ready = Preflight.objects.filter(configuration__in=[lever.parent, lever.candidate], state=Leased.State.DONE).count()
    found = [Bar("Checked on a worker", ready, 2, "configurations")]
    if not lever.draw:
        return found
    groups = advance.groups_of(lever)
    settled = groups.filter(state__in=Leased.SETTLED).count()
    found.append(Bar("Rendered", settled, groups.count(), "clips of both systems"))
    if plan.timed:
        found.append(Bar("Timed", len(timing.undisturbed(timing.against_parent(lever).rows())), plan.timing.blocks, "undisturbed blocks"))
    if lever.wanted["claims_identical"] and lever.state == Lever.State.SETTLED and not lever.study:
        return found  # settled by hash, or never measured
    if lever.state not in (Lever.State.RENDERING, Lever.State.TIMING):
        found.append(_measured(lever))
    if lever.study:
        found.append(Bar("Heard", pairs.votes_cast(lever.study), hearing.planned_votes(lever, plan), "votes"))
    return found


def _measured(lever: Lever) -> Bar:
    """Clips that need no more measuring: done, or never made. Failures are not to be told from scores here."""
    listed = list(identity.all_renders(lever).values_list("clip_id", flat=True))
    done = set(
        Measurement.objects.filter(state=Leased.State.DONE, clip__in={c for c in listed if c}, identity=lever.plan.body["metrics"])
        .values_list("clip_id", flat=True)
    )  # fmt: skip
    return Bar("Measured", sum(clip is None or clip in done for clip in listed), len(listed), "clips")
