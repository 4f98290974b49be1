"""The site's default margins, floors and panels, and the schema of a plan."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from gate import recognisers
from synth.configuration import Refused, refusal


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Margins(Part):
    """How much worse is still not worse. Units: CER share, DNSMOS points, ratio, dB, share of sentences, share of votes."""

    cer: float = Field(0.02, gt=0, le=1)
    dnsmos: float = Field(0.05, gt=0, le=4)
    length: float = Field(0.03, gt=0, lt=0.9)
    level: float = Field(1.0, gt=0, le=40)
    catastrophe: float = Field(0.03, gt=0, le=1)
    preference: float = Field(0.15, gt=0, le=1)


class Floor(Part):
    """Below it an automatic endpoint may fail, never pass."""

    sentences: int = Field(100, ge=2)
    clips: int = Field(300, ge=2)


class PanelSize(Part):
    """Below it the human endpoint is descriptive."""

    raters: float = Field(4, ge=2)
    sentences: float = Field(20, ge=2)
    votes: int = Field(100, ge=4)


def rising(looks: list[float]) -> list[float]:
    """Shares at which evidence is read. Raises ValueError."""
    if not 1 <= len(looks) <= 10 or looks[-1] != 1 or min(b - a for a, b in zip([0.0, *looks], looks, strict=False)) < 0.05:
        raise ValueError("looks are one to ten rising shares, at least 0.05 apart, that end at 1")
    return looks


class Listening(Part):
    required: bool = True
    votes_per_pair: int = Field(2, ge=1, le=50)
    pairs: int | None = Field(None, ge=2, description="Pairs to hear; all sentences when empty.")
    looks: list[float] = Field([0.25, 0.5, 0.75, 1.0], description="Shares of the planned votes at which they are read.")
    futility: float = Field(0.05, ge=0, le=0.5, description="Listening stops when the chance to pass at the last look is below this.")
    assay: bool = Field(True, description="Whether the panel must show that it hears a calibrated damage.")

    @field_validator("looks")
    @classmethod
    def rising(cls, value: list[float]) -> list[float]:
        return rising(value)


class Timing(Part):
    blocks: int = Field(3, ge=2, le=12)
    sentences: int = Field(20, ge=2, le=500)


class Plan(Part):
    """All rules of one lever. What is not given is the site's policy."""

    benefit: Literal["speed", "memory", "first_audio", "streaming", "quality", "none"] = "speed"
    margins: Margins = Margins()
    tail: float = Field(0.025, gt=0, lt=0.5)
    sentences: int | None = Field(None, ge=2, description="How many to draw; all when empty.")
    replicates: int = Field(1, ge=1, le=20)
    looks: list[float] = Field([1.0], description="Shares of the sentences at which the automatic evidence is read.")
    floor: Floor = Floor()
    panel: PanelSize = PanelSize()
    listening: Listening = Listening()
    timing: Timing = Timing()
    purpose: Literal["confirmation", "tuning"] = "confirmation"
    attempts: int = Field(1, ge=1, le=5, description="Attempts of the lineage that share the error rate, this one included.")
    recogniser: str = Field("", description="The speech recogniser; the site's when empty.")
    second_recogniser: str = Field("", description="One more, whose disagreement is shown; it counts where the first one fails.")
    closes_after_days: int = Field(60, ge=1, le=730)

    @property
    def timed(self) -> bool:
        """Whether its benefit is read from timed blocks."""
        return self.benefit in ("speed", "memory", "first_audio", "streaming")

    @property
    def share(self) -> float:
        """This attempt's share of the error rate."""
        return self.tail / self.attempts

    @field_validator("looks")
    @classmethod
    def rising(cls, value: list[float]) -> list[float]:
        return rising(value)

    @field_validator("recogniser", "second_recogniser")
    @classmethod
    def known(cls, value: str) -> str:
        if value:
            recognisers.split(value)
        return value


POLICY = Plan()


def parse(mapping: Any) -> Plan:
    """Reads the plan section of a spec; raises Refused with one sentence."""
    if not isinstance(mapping, dict):
        raise Refused("plan_invalid", "plan is not a mapping of names to values.", "plan")
    try:
        return Plan.model_validate(mapping)
    except ValidationError as error:
        raise refusal(error, "plan") from error


def of(mapping: dict[str, Any]) -> Plan:
    """The plan inside a larger mapping, such as a locked plan's body."""
    return Plan.model_validate({k: v for k, v in mapping.items() if k in Plan.model_fields})


def check_reach(plan: Plan, drawn: int) -> None:
    """Refuses looks without sentences, and a listening test that could never pass: raters' time is too scarce for it. Raises Refused."""
    heard, first = plan.listening, round(plan.looks[0] * drawn)
    if first < 2:
        raise Refused(
            "look_too_small",
            f"plan.looks begins at {plan.looks[0]:g} of {drawn} sentences, which is {first}: begin later, or draw more.",
            "plan.looks",
        )
    if not heard.required:
        if plan.benefit == "quality":
            raise Refused(
                "quality_needs_listeners",
                "plan.benefit is 'quality', which only listeners can show: set plan.listening.required to true, or choose another benefit.",
                "plan.benefit",
            )
        return
    if heard.assay:
        raise Refused(
            "assay_unavailable",
            "plan.listening.assay is on, but this version plays no assay controls, so votes could only reject: set it to false "
            "(the verdict is then at best provisional), or plan.listening.required to false.",
            "plan.listening.assay",
        )
    pairs = min(heard.pairs or first, first)  # all may pass at the first look already
    votes = pairs * heard.votes_per_pair
    if pairs < plan.panel.sentences or votes < plan.panel.votes or votes < plan.panel.raters:
        raise Refused(
            "panel_out_of_reach",
            f"{pairs} pairs with {heard.votes_per_pair} votes each can't reach plan.panel ({plan.panel.raters:g} raters, "
            f"{plan.panel.sentences:g} sentences, {plan.panel.votes} votes): add sentences or votes_per_pair, or lower plan.panel.",
            "plan.panel",
        )


def caps(plan: Plan, site: Plan = POLICY) -> list[str]:
    """Why a verdict under this plan can be no better than provisional. Args: the plan, and the policy it was locked under."""
    found = []
    if plan.purpose == "tuning":
        found.append("tuning_sentences")
    if plan.floor.sentences < site.floor.sentences or plan.floor.clips < site.floor.clips:
        found.append("floor_lowered")
    if plan.listening.required:
        panel = (plan.panel.raters, plan.panel.sentences, plan.panel.votes)
        if any(ours < theirs for ours, theirs in zip(panel, (site.panel.raters, site.panel.sentences, site.panel.votes), strict=True)):
            found.append("panel_lowered")
        if not plan.listening.assay:
            found.append("assay_waived")
    if plan.timed and (plan.timing.blocks < site.timing.blocks or plan.timing.sentences < site.timing.sentences):
        found.append("timing_lowered")
    loosened = [name for name, value in plan.margins.model_dump().items() if value > getattr(site.margins, name)]
    return found + [f"margin_loosened:{name}" for name in loosened] + (["tail_loosened"] if plan.tail > site.tail else [])
