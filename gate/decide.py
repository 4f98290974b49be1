"""Evidence and plan to a verdict with reasons (design, section 6). Pure: the same case gives the same decision."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ACCEPTED, PROVISIONAL, REJECTED, NO_BENEFIT, INCONCLUSIVE = "accepted", "provisional", "rejected", "no-benefit", "inconclusive"
CORE = ("cer", "dnsmos", "length")
SPEED_NEEDED = 1.03
SLOWER_LIMIT = 0.97

PASS, FAIL, OPEN = "pass", "fail", "open"


@dataclass(frozen=True)
class Endpoint:
    """A measured quantity with its interval. One-sided endpoints are on a badness scale (larger is worse) with `margin`;
    two-sided ones lie inside (`low`, `high`). `may_pass` is False below the size floor, panel or assay."""

    name: str
    lower: float
    upper: float
    margin: float | None = None
    low: float | None = None
    high: float | None = None
    may_pass: bool = True
    why_open: str = ""

    @property
    def state(self) -> str:
        """pass strictly inside, fail wholly beyond, open otherwise; equality and NaN are open."""
        if math.isnan(self.lower) or math.isnan(self.upper):
            return OPEN
        if self.margin is not None:
            inside, beyond = self.upper < self.margin, self.lower > self.margin
        else:
            low, high = self.low or 0.0, self.high if self.high is not None else math.inf
            inside, beyond = self.lower > low and self.upper < high, self.upper < low or self.lower > high
        return FAIL if beyond else PASS if inside and self.may_pass else OPEN

    @property
    def significantly_worse(self) -> bool:
        return self.margin is not None and self.lower > 0


@dataclass(frozen=True)
class Speed:
    """Speed-up factors (above 1 is faster). With `lower`/`upper`, limits of the smaller factor; else `spread` stands in."""

    rtf_speedup: float | None = None
    wall_speedup: float | None = None
    spread: float | None = None
    contaminated: bool = False
    lower: float | None = None
    upper: float | None = None
    #: The factor by other averages of the same clips: their mean, their median.
    averages: tuple[float, ...] = ()

    @property
    def disagree(self) -> bool:
        """Fast enough by one average of its clips and not by another: a few that always stall are in the mean and not in the median."""
        return (self.factor or 0.0) >= SPEED_NEEDED and any(a < SPEED_NEEDED for a in self.averages)

    @property
    def factor(self) -> float | None:
        given = [s for s in (self.rtf_speedup, self.wall_speedup) if s is not None]
        return min(given) if given else None

    @property
    def state(self) -> str:
        """shown, absent, open, invalid or unknown."""
        if self.contaminated:
            return "invalid"
        s = self.factor
        if s is None or (self.lower is None and self.spread is None):
            return "unknown"
        if self.lower is None or self.upper is None:
            return "shown" if s >= SPEED_NEEDED and s - 1 > (self.spread or 0.0) else "absent"
        if s < SPEED_NEEDED or self.upper < SPEED_NEEDED:
            return "absent"
        return "shown" if self.lower > 1 and not self.disagree else "open"


@dataclass(frozen=True)
class Case:
    """Everything a verdict depends on."""

    bit_identical: bool = False
    claims_identical: bool = False
    evidence_complete: bool = True
    final_look: bool = False
    required: tuple[str, ...] = CORE
    endpoints: tuple[Endpoint, ...] = ()
    benefit: str = "speed"
    speed: Speed = field(default_factory=Speed)
    #: State of a benefit that is not speed: shown, absent, open, invalid or unknown.
    gain: str = "unknown"
    human: Endpoint | None = None
    human_required: bool = False
    caps: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    #: Codes that are shown beside any verdict and change none.
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Decision:
    verdict: str
    reasons: tuple[str, ...]
    evidence: str = ""


def case_from_mapping(mapping: Mapping[str, Any]) -> Case:
    """Reads a row's `case` as tests/vectors/verdicts.json writes it."""
    human = mapping.get("human")
    return Case(
        bit_identical=mapping["bit_identical"], claims_identical=mapping["claims_identical"],
        evidence_complete=mapping["evidence_complete"], final_look=mapping["final_look"],
        required=tuple(mapping["required"]), endpoints=tuple(Endpoint(**e) for e in mapping["endpoints"]),
        benefit=mapping.get("benefit", "speed"), speed=Speed(**mapping.get("speed", {})),
        human=Endpoint(**human) if human else None, human_required=mapping["human_required"],
        caps=tuple(mapping.get("caps", ())),
    )  # fmt: skip


def decide(case: Case) -> Decision:
    """The verdict of a case. The steps are numbered as in the design."""
    if not case.evidence_complete:  # 1
        return Decision(INCONCLUSIVE, ("evidence_incomplete", *case.missing))
    notes = _notes(case)
    gating = [] if case.bit_identical else [*case.endpoints, *([case.human] if case.human else [])]  # 2
    failed = [e for e in gating if e.state == FAIL]
    if failed:  # 3
        reasons = [f"{e.name}:beyond_margin" for e in failed]
        return Decision(REJECTED, (*reasons, *(f"length:{_direction(e)}" for e in failed if e.name == "length"), *notes))
    benefit = _benefit(case)
    if case.benefit != "speed" and case.speed.upper is not None and not case.speed.contaminated and case.speed.upper < SLOWER_LIMIT:
        return Decision(REJECTED, ("slower", *notes))
    if benefit == "absent":  # 4
        return Decision(NO_BENEFIT, ("speed_below_threshold_or_spread" if case.benefit == "speed" else f"{case.benefit}:absent", *notes))
    unmeasured = _unmeasured(case)
    if benefit in ("invalid", "unknown"):  # 5
        return Decision(INCONCLUSIVE, (f"speed_{benefit}" if case.benefit == "speed" else f"{case.benefit}:{benefit}", *notes))
    if unmeasured:
        return Decision(INCONCLUSIVE, (*(f"{name}:not_measured" for name in unmeasured), *notes))
    opened = [e for e in gating if e.state == OPEN]
    if opened or benefit == "open":  # 6
        return _undecided(case, opened, benefit, notes)
    if case.human_required and case.human is None and not case.bit_identical:  # 7
        return Decision(INCONCLUSIVE, ("human_votes_pending", *notes))
    evidence = "bit-identical" if case.bit_identical else "heard" if case.human else "automatic-only"
    caps = (*case.caps, *_missing_core(case))
    if caps:  # 8
        return Decision(PROVISIONAL, (*caps, *notes), evidence)
    return Decision(ACCEPTED, (f"evidence:{evidence}", *notes), evidence)  # 9


def _direction(length: Endpoint) -> str:
    return "longer" if length.low is not None and length.lower > length.low else "shorter"


def _notes(case: Case) -> tuple[str, ...]:
    """What is shown beside any verdict and changes none."""
    notes = ["averages_disagree"] if case.benefit == "speed" and case.speed.disagree else []
    if case.bit_identical:
        return (*notes, "human_votes_ignored_identical_audio") if case.human else tuple(notes)
    if case.claims_identical:
        notes.append("not_bit_identical_full_gate_applies")
    notes += [f"{e.name}:significantly_worse" for e in case.endpoints if e.significantly_worse]
    return (*notes, *case.remarks)


def _benefit(case: Case) -> str:
    if case.benefit == "quality":
        return _quality(case)
    return {"none": "shown", "speed": case.speed.state}.get(case.benefit, case.gain)


def _quality(case: Case) -> str:
    """Superiority: listeners prefer the candidate, or its error rate is lower, beyond doubt. Nothing is said before they voted."""
    if case.bit_identical:
        return "absent"  # the same sound is no better
    if case.human is None:
        return "shown" if case.human_required else "unknown"
    better = case.human.upper < 0 or any(e.name == "cer" and e.upper < 0 for e in case.endpoints)
    return "shown" if better else "absent" if case.final_look else "open"


def _missing_core(case: Case) -> tuple[str, ...]:
    if case.bit_identical:
        return ()
    measured = {e.name for e in case.endpoints}
    return tuple(f"core_endpoint_missing:{name}" for name in CORE if name not in measured)


def _unmeasured(case: Case) -> list[str]:
    """Endpoints the plan requires and nobody measured. A core endpoint the plan doesn't require caps the verdict instead."""
    if case.bit_identical:
        return []
    measured = {e.name for e in case.endpoints}
    return [name for name in case.required if name not in measured]


def _undecided(case: Case, opened: list[Endpoint], benefit: str, notes: tuple[str, ...]) -> Decision:
    reasons = [f"{e.name}:{e.why_open or 'not_established'}" for e in opened]
    if benefit == "open":
        reasons.append(f"{case.benefit}:not_established")
    # A final rejection needs a fair chance to have passed: floor, panel and assay met.
    fair = opened and all(e.may_pass for e in opened)
    if case.final_look and fair:
        return Decision(REJECTED, (*reasons, "final_look", *notes))
    return Decision(INCONCLUSIVE, (*reasons, "collect_more", *notes))
