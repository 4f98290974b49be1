"""What a plan can detect, in words: for the planner's page, the command and the warning at registration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gate import policy
from gate.statistics import planner

#: Spreads of per-sentence differences that published studies and ours show; a site's own levers replace them as they settle.
TYPICAL_SD = {"cer": (0.064, 0.088, 0.12), "dnsmos": (0.15, 0.20, 0.30), "length": (0.05, 0.10, 0.15), "level": (0.3, 0.5, 1.0)}
LABELS = {
    "cer": "Character error rate",
    "dnsmos": "DNSMOS",
    "length": "Length",
    "level": "Level",
    "catastrophe": "Catastrophes",
    "preference": "Net preference",
}
#: Seconds of speech of a sentence, and what making, measuring and hearing take of them.
CLIP_S, RTF, MEASURE_S, HEAR_S = 5.0, 0.5, 3.0, 25.0
#: Share of sentences that fail in either arm by themselves; of those, b and c each.
FAILING = 0.003


@dataclass(frozen=True)
class Chance:
    """Of one endpoint: chance to pass when nothing is wrong, at a typical spread and at a low and a high one."""

    name: str
    label: str
    margin: float
    low: float
    typical: float
    high: float
    needed: int | None
    spread: float


@dataclass(frozen=True)
class Outlook:
    """What to expect of a plan. `passes`: chance that every endpoint passes when nothing is wrong (independent endpoints)."""

    chances: tuple[Chance, ...]
    passes: float
    sentences: int
    clips: int
    synthesis_h: float
    measuring_h: float
    listening_h: float
    votes: int
    raters: int
    hint: str
    problems: tuple[str, ...]

    @property
    def undecided(self) -> float:
        return 1.0 - self.passes


def _spread(sd: float, replicates: int) -> float:
    """A typical spread is of one replicate; three quarters of its variance are taken to be the seed's."""
    return planner.difference_sd(sd * 0.5, sd * (0.75 / 2) ** 0.5, replicates)


def _chance(name: str, plan: policy.Plan, n: int, sd: float) -> float:
    margin, spread = getattr(plan.margins, name), _spread(sd, plan.replicates)
    if name == "length":
        return planner.length_power(n, spread, margin, 0.0, plan.share)
    if name == "level":
        return planner.equivalence_power(n, spread, -margin, margin, 0.0, plan.share)
    return planner.power(n, spread, margin, 0.0, plan.share)


def _catastrophes(plan: policy.Plan, n: int) -> float:
    """Chance that Tango's limit stays under the margin when each arm fails alone on three in a thousand sentences."""
    from scipy.special import pdtr

    from gate.statistics.rates import paired_difference_upper

    mean, worst = n * FAILING * plan.replicates, 0
    while worst < n and paired_difference_upper(worst + 1, 0, n, plan.share).upper < plan.margins.catastrophe:
        worst += 1
    if paired_difference_upper(0, 0, n, plan.share).upper >= plan.margins.catastrophe:
        return 0.0
    return float(pdtr(worst, mean))


def outlook(plan: policy.Plan, sentences: int, raters: int = 12, kind: str = "low") -> Outlook:
    """Args: sentences that will be drawn; raters expected; kind of panel, one of planner.TYPICAL."""
    chances = []
    for name, (low, typical, high) in TYPICAL_SD.items():
        found = [_chance(name, plan, sentences, sd) for sd in (low, typical, high)]
        needed = planner.needed(lambda n, name=name, sd=typical: _chance(name, plan, n, sd), 0.9)  # type: ignore[misc]
        chances.append(Chance(name, LABELS[name], getattr(plan.margins, name), *found, needed, _spread(typical, plan.replicates)))
    rare = _catastrophes(plan, sentences)
    chances.append(Chance("catastrophe", LABELS["catastrophe"], plan.margins.catastrophe, rare, rare, rare, None, FAILING))
    passes, votes, hint = 1.0, 0, ""
    if plan.listening.required:
        pairs = min(plan.listening.pairs or sentences, sentences)
        votes = pairs * plan.listening.votes_per_pair
        panels = {
            k: planner.votes_power(raters, pairs, votes, plan.margins.preference, planner.Components(*v), 0.0, plan.share)
            for k, v in planner.TYPICAL.items()
        }
        chances.append(
            Chance(
                "preference", LABELS["preference"], plan.margins.preference, panels["low"], panels[kind], panels["rater-heavy"], None, 0.0
            )
        )
        advice = planner.advice(raters, pairs, votes, plan.margins.preference, planner.Components(*planner.TYPICAL[kind]), plan.share)
        hint = {
            "raters": "More raters would help most; more sentences hardly.", "sentences": "More sentences would help most.",
            "votes": "More votes of the same raters would help most.", "enough": "",
        }[advice]  # fmt: skip
    for chance in chances:
        passes *= chance.typical
    clips = sentences * plan.replicates
    return Outlook(
        tuple(chances), passes, sentences, clips, 2 * clips * CLIP_S * RTF / 3600, 2 * clips * MEASURE_S / 3600,
        votes * HEAR_S / 3600, votes,
        raters if votes else 0, hint, _problems(plan, sentences, clips),
    )  # fmt: skip


def _problems(plan: policy.Plan, sentences: int, clips: int) -> tuple[str, ...]:
    said = []
    if sentences < plan.floor.sentences or clips < plan.floor.clips:
        said.append(
            f"Below the floor of {plan.floor.sentences} sentences and {plan.floor.clips} clips an endpoint can fail, but none can pass."
        )
    return tuple(said)


def warning(plan: policy.Plan, sentences: int) -> str:
    """A sentence for a plan that would more likely than not end undecided with nothing wrong, or ''."""
    found = outlook(plan, sentences)
    if found.passes >= 0.5 or found.problems:
        return ""
    weakest = min(found.chances, key=lambda c: c.typical)
    return (
        f"With nothing wrong, and sentences that vary as in published studies, this plan passes with a chance of {found.passes:.0%}; "
        f"its weakest part is {weakest.label.lower()} "
        f"({weakest.typical:.0%}): add {'raters' if weakest.name == 'preference' else 'sentences or replicates'}."
    )


def as_table(found: Outlook) -> list[dict[str, Any]]:
    return [
        {
            "label": c.label, "margin": c.margin, "low": round(100 * c.low), "typical": round(100 * c.typical), "high": round(100 * c.high),
            "needed": c.needed,
        }
        for c in found.chances
    ]  # fmt: skip
