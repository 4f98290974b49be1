"""The site's default margins, floors and panels, and the schema of a plan."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from gate import recognisers
from listening.schedule import FOR_ASSAY
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
    assay_q_db: float = Field(15.0, ge=0, le=40, description="That damage: signal to modulated noise (ITU-T P.810), dB.")
    controls: int = Field(22, ge=0, le=22, description="Sentences spoken for controls: obvious, identical, moderate, instructed, practice.")

    @field_validator("looks")
    @classmethod
    def rising(cls, value: list[float]) -> list[float]:
        return rising(value)


class Screening(Part):
    """When a rater's votes don't count; with less to go by than these numbers they do. Never a matter of direction or agreement."""

    catches: int = Field(5, ge=2)
    catch_share: float = Field(0.8, gt=0, le=1)
    side_votes: int = Field(20, ge=10)
    side_p: float = Field(0.001, gt=0, lt=0.05)
    listened_votes: int = Field(10, ge=2)
    unheard_share: float = Field(0.2, ge=0, le=1)
    glitches: int = Field(3, ge=0, description="A comparison whose sound stuttered more often is not used.")


class Timing(Part):
    blocks: int = Field(3, ge=0, le=12, description="0 only where the benefit is not read from them; the verdict is then provisional.")
    sentences: int = Field(20, ge=2, le=500)


class Plan(Part):
    """All rules of one lever. What is not given is the site's policy."""

    benefit: Literal["speed", "memory", "first_audio", "streaming", "quality", "none"] = "speed"
    margins: Margins = Margins()
    length_shift: float = Field(1.0, gt=0.2, lt=5, description="A change of length that is meant: candidate over parent.")
    tail: float = Field(0.025, gt=0, lt=0.5)
    sentences: int | None = Field(None, ge=2, description="How many to draw; all when empty.")
    replicates: int = Field(1, ge=1, le=20)
    looks: list[float] = Field([1.0], description="Shares of the sentences at which the automatic evidence is read.")
    floor: Floor = Floor()
    panel: PanelSize = PanelSize()
    listening: Listening = Listening()
    screening: Screening = Screening()
    timing: Timing = Timing()
    purpose: Literal["confirmation", "tuning"] = "confirmation"
    attempts: int = Field(1, ge=1, le=5, description="Attempts of the lineage that share the error rate, this one included.")
    recogniser: str = Field("", description="The speech recogniser; the site's when empty.")
    second_recogniser: str = Field("", description="One more, whose disagreement is shown; it counts where the first one fails.")
    closes_after_days: int = Field(60, ge=1, le=730)

    @property
    def timed(self) -> bool:
        """Whether it has timed blocks: for its benefit, or at least to show that it costs no speed."""
        return self.timing.blocks > 0

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
#: Benefits that timed blocks show; the others need them only to show that no speed is lost.
READ_FROM_BLOCKS = ("speed", "memory", "first_audio", "streaming")


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
    heard, counts = plan.listening, [round(share * drawn) for share in plan.looks]
    first = counts[0]
    if plan.timing.blocks == 1 or (plan.benefit in READ_FROM_BLOCKS and not plan.timed):
        raise Refused(
            "benefit_needs_blocks",
            f"plan.timing.blocks is {plan.timing.blocks}: a run-to-run spread takes two or more"
            + (f", and {plan.benefit!r} is read from them." if plan.benefit in READ_FROM_BLOCKS else ", or none at all."),
            "plan.timing.blocks",
        )
    if plan.length_shift != 1 and not heard.required:
        raise Refused(
            "shift_needs_listeners",
            "plan.length_shift says that the length changes on purpose, which only listeners can approve: set plan.listening.required "
            "to true.",
            "plan.length_shift",
        )
    if len(set(counts)) < len(counts):
        raise Refused(
            "look_too_small", f"Two of plan.looks cover the same number of {drawn} sentences: put them further apart.", "plan.looks"
        )
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
    if heard.assay and heard.controls < FOR_ASSAY:
        raise Refused(
            "assay_unavailable",
            f"plan.listening.assay is on and plan.listening.controls is {heard.controls}: {FOR_ASSAY} make a proof that the panel hears a "
            "damage; ask for more, or set assay to false (the verdict is then at best provisional).",
            "plan.listening.controls",
        )
    pairs = min(heard.pairs or first, first)  # all may pass at the first look already
    if not reaches_panel(plan, pairs):
        raise Refused(
            "panel_out_of_reach",
            f"{pairs} pairs with {heard.votes_per_pair} votes each can't reach plan.panel ({plan.panel.raters:g} raters, "
            f"{plan.panel.sentences:g} sentences, {plan.panel.votes} votes): add sentences or votes_per_pair, or lower plan.panel.",
            "plan.panel",
        )


def reaches_panel(plan: Plan, pairs: int) -> bool:
    """Whether so many pairs, all heard as often as planned, make a panel whose answer counts."""
    votes = pairs * plan.listening.votes_per_pair
    return pairs >= plan.panel.sentences and votes >= plan.panel.votes and votes >= plan.panel.raters


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
        elif plan.listening.assay_q_db < site.listening.assay_q_db:
            found.append("assay_eased")
        if plan.listening.controls < site.listening.controls:
            found.append("controls_lowered")
        if plan.screening != site.screening:
            found.append("screening_changed")
    if not plan.timed:
        found.append("speed_unmeasured")
    elif plan.timing.blocks < site.timing.blocks or plan.timing.sentences < site.timing.sentences:
        found.append("timing_lowered")
    loosened = [name for name, value in plan.margins.model_dump().items() if value > getattr(site.margins, name)]
    return found + [f"margin_loosened:{name}" for name in loosened] + (["tail_loosened"] if plan.tail > site.tail else [])
