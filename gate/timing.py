"""Timed blocks of a lever: asking for them, and asking again where other programs disturbed them."""

from __future__ import annotations

from dataclasses import dataclass

from gate import policy
from gate.models import Lever
from synth.batches import whole_batches
from synth.models import Configuration, Leased, TimedBlock

#: So many void blocks, and nothing can be said.
VOID_BLOCKS = 3


@dataclass(frozen=True)
class Blocks:
    """A comparison by timed blocks of `first` (A) with `second` (B), on the sentences of a lever's draw."""

    lever: Lever
    first: Configuration
    second: Configuration
    key: str

    def rows(self) -> list[TimedBlock]:
        return list(TimedBlock.objects.filter(first=self.first, second=self.second, draw_key=self.key).order_by("number"))

    def wanted(self) -> int:
        return policy.of(self.lever.plan.body).timing.blocks

    def start(self) -> None:
        """Asks for as many blocks as the plan says."""
        for number in range(self.wanted()):
            self._ask(number)

    def _ask(self, number: int) -> bool:
        """Asks for a block; False when another process has asked for it already."""
        draw, body = self.lever.draw, self.lever.plan.body
        count = whole_batches(policy.of(body).timing.sentences, batch_sizes(self.first, self.second), len(draw.order)) or len(draw.order)
        _, made = TimedBlock.objects.get_or_create(
            first=self.first, second=self.second, draw_key=self.key, number=number,
            defaults={"sentences": draw.to_speak(count), "device_class": body["device_class"]},
        )  # fmt: skip
        return made

    def settled(self) -> bool:
        """Whether there is nothing to wait for: enough blocks count, or too many are void."""
        found = self.rows()
        return _over(found) and self._enough(found)

    def _enough(self, found: list[TimedBlock]) -> bool:
        good = len(undisturbed(found))
        return good >= self.wanted() or len(found) - good >= VOID_BLOCKS

    def again(self) -> str:
        """Where all blocks are over and too few count, asks for another one. Why the last one is void, or '' if nothing was asked for."""
        found = self.rows()
        if not found or not _over(found) or self._enough(found):
            return ""
        void = [b for b in found if b not in undisturbed(found)]
        programs = sorted({name for b in void[-1:] for seen in b.contended.values() for name in seen})
        return (", ".join(programs) or "it could not be finished") if self._ask(len(found)) else ""


def batch_sizes(*configurations: Configuration) -> list[int]:
    """How many sentences each of them that batches speaks at once."""
    return [c.body["batching"]["size"] for c in configurations if c.body.get("batching")]


def against_parent(lever: Lever) -> Blocks:
    # Levers of one campaign share blocks that are the same: of as many sentences.
    return Blocks(lever, lever.parent, lever.candidate, f"{lever.draw.key}:{policy.of(lever.plan.body).timing.sentences}")


def _over(blocks: list[TimedBlock]) -> bool:
    return all(b.state in Leased.SETTLED for b in blocks)


def undisturbed(blocks: list[TimedBlock]) -> list[TimedBlock]:
    return [b for b in blocks if b.state == Leased.State.DONE and not b.contended]
