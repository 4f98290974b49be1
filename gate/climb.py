"""A ladder from a file: rungs that stand on one another, registered as each earlier one gets its verdict. All state is in the database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gate import history, pace, policy, register, specfile, timing
from gate.models import LedgerEntry, Lever
from synth.configuration import Refused, refusal

#: Verdicts that the next rung may stand on.
CARRIES = ("accepted", "provisional")


class Rung(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    rung: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,30}$")
    title: str = Field("", max_length=160)
    change: dict[str, Any]
    plan: dict[str, Any] = {}


class Ladder(BaseModel):
    """`go_on`: whether a rung is climbed from whatever its verdict, which only a trial of the mechanics wants.

    `makes`: folder of a model -> module of this checkout that writes it, for checkpoints of random weights.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    ladder: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,15}$")
    makes: dict[str, str] = {}
    root: dict[str, Any]
    sentences: dict[str, Any]
    plan: dict[str, Any] = {}
    go_on: Literal["accepted", "any"] = "accepted"
    rungs: list[Rung] = Field(min_length=1, max_length=40)


@dataclass(frozen=True)
class Step:
    """A rung as it stands: not begun, under way, or judged."""

    rung: Rung
    slug: str
    lever: Lever | None

    @property
    def settled(self) -> bool:
        return self.lever is not None and self.lever.verdict is not None

    @property
    def stuck(self) -> str:
        """What only a person can mend, or ''."""
        return self.lever.problem if self.lever is not None and self.lever.state == Lever.State.CHECKING else ""


def read(text: str) -> Ladder:
    """The ladder of a YAML file. Raises Refused."""
    try:
        ladder = Ladder.model_validate(specfile.mapping(text))
    except ValidationError as error:
        raise refusal(error, "ladder") from error
    names = [rung.rung for rung in ladder.rungs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise Refused("rung_twice", f"The rung {twice!r} is there twice: give each a name of its own.", "rungs")
    return ladder


def steps(ladder: Ladder) -> list[Step]:
    slugs = [f"{ladder.ladder}-{rung.rung}" for rung in ladder.rungs]
    known = {lever.slug: lever for lever in Lever.objects.filter(slug__in=slugs).select_related("candidate", "parent", "draw")}
    return [Step(rung, slug, known.get(slug)) for rung, slug in zip(ladder.rungs, slugs, strict=True)]


def climb(ladder: Ladder) -> str:
    """Registers the next rung where the one below carries it. Why the ladder ends below its top, or ''. Twice is once. Raises Refused."""
    below = None
    for step in steps(ladder):
        if step.lever is None:
            if below is not None and ladder.go_on == "accepted" and below.lever.verdict.verdict not in CARRIES:
                return f"{step.slug} is not begun: {below.slug}, which it stands on, is {below.lever.verdict.verdict}."
            _begin(ladder, step, below)
            return ""
        wanted = register.systems(_spec(ladder, step, below))[2].digest()
        if step.lever.candidate.digest != wanted:
            raise Refused(
                "rung_changed",
                f"{step.slug} was registered as another system than the file now says: give the rung a new name, or the ladder.",
                "rungs",
            )
        if not step.settled:
            return step.stuck
        below = step
    return ""


def _spec(ladder: Ladder, step: Step, below: Step | None) -> dict[str, Any]:
    return {
        "lever": step.slug, "title": step.rung.title, "change": {"name": step.slug} | step.rung.change,
        "parent": below.lever.candidate.body if below is not None and below.lever is not None else ladder.root,
        "sentences": ladder.sentences, "plan": ladder.plan | step.rung.plan,
    }  # fmt: skip


def _begin(ladder: Ladder, step: Step, below: Step | None) -> None:
    (lever,) = register.register([_spec(ladder, step, below)])
    history.note(lever, f"a rung of the ladder {ladder.ladder}")


def row(step: Step) -> tuple[str, str, str, str]:
    """(rung, verdict or state, speed-up with its interval, line of the ledger) for a table on a terminal."""
    lever = step.lever
    if lever is None:
        return step.slug, "not begun", "", ""
    verdict = lever.verdict
    if verdict is None:
        return step.slug, lever.state, "", ""
    entry = LedgerEntry.objects.filter(lever=lever, kind="verdict").order_by("-number").first()
    speed = ""
    plan = policy.of(lever.plan.body)
    if plan.timing.blocks:
        found = pace.measured_speed(timing.against_parent(lever), plan)[1]
        if "speedup" in found:
            ends = " … ".join("?" if found[end] is None else f"{found[end]:.3f}" for end in ("lower", "upper"))
            speed = f"{found['speedup']:.3f} [{ends}]"
    return step.slug, f"{verdict.verdict} ({', '.join(verdict.reasons[:2])})", speed or "not measured", f"#{entry.number}" if entry else ""
