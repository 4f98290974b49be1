"""Figures that explain a look and decide nothing: outliers, what a change of length is made of, a second recogniser's view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gate import policy
from gate.measured import Row, Table, tally
from gate.metrics import battery, textnorm
from gate.statistics.intervals import mean_interval
from gate.statistics.results import finite

#: What a clip's duration is made of, in seconds; the three sum to it.
PARTS = {"speech_s": "Speech", "pauses_s": "Pauses inside", "edges_s": "Silence at the ends"}
#: A parent that fails this much more often than the candidate makes it look good.
PARENT_WORSE = 0.01


def _mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _errors(rows: list[Row]) -> dict[str, Any]:
    """Other averages of the same transcripts, capped at 1 as the gate's; a failed clip is wholly wrong here, too. None of them gates."""
    counted = [r.scores.get("details", {}).get("cer") if r.scores else None for r in rows]
    heard = [c for c in counted if c]
    length = sum(c["reference_length"] for c in heard)

    def capped(name: str) -> float | None:
        return _mean([min(1.0, c[name]) if c else battery.WORST_CER for c in counted]) if heard else None

    return {
        "outliers": sum(r.cer > battery.OUTLIER_CER for r in rows), "cer_no_space": capped("no_space"), "cer_lenient": capped("lenient"),
        # Of a clip that failed nobody counted characters: this one is of those that could be heard.
        "cer_of_all_characters": sum(min(c["edits"], c["reference_length"]) for c in heard) / length if length else None,
    }  # fmt: skip


def arms(table: Table) -> dict[str, dict[str, Any]]:
    """Means and counts of each arm."""
    out = {}
    for arm in ("parent", "candidate"):
        rows = [r for both in table.values() for r in both[arm]]
        out[arm] = {
            "clips": len(rows), "failed": sum(bool(r.failed) for r in rows), "cer": _mean([r.cer for r in rows]),
            "dnsmos": _mean([r.dnsmos for r in rows]), "seconds": _mean([r.seconds for r in rows if r.seconds]),
            **_errors(rows), **tally(table, arm),
        }  # fmt: skip
    return out


def _per_sentence(table: Table, value: Callable[[Row], float | None]) -> list[float]:
    """Candidate's mean less parent's, of the sentences where both have one."""
    found = []
    for both in table.values():
        p, c = ([v for v in map(value, both[arm]) if v is not None] for arm in ("parent", "candidate"))
        if p and c:
            found.append(float(np.mean(c) - np.mean(p)))
    return found


def length_parts(table: Table, tail: float) -> list[dict[str, Any]]:
    """The mean change of length, in seconds a sentence, taken apart; each part with its interval."""
    out = []
    for name, label in PARTS.items():
        interval = mean_interval(_per_sentence(table, lambda r, name=name: (r.scores or {}).get(name)), tail)  # type: ignore[misc]
        out.append(
            {
                "label": label,
                "estimate": finite(interval.estimate),
                "lower": finite(interval.lower),
                "upper": finite(interval.upper),
                "n": interval.n,
            }
        )
    return out


def disagreement(table: Table, plan: policy.Plan, language: str) -> dict[str, Any] | None:
    """What the second recogniser says of the same clips: shown beside the first one's, to be asked about when they differ."""
    rows = [
        r for both in table.values() for arm in both.values() for r in arm if r.scores and r.scores.get("second_transcript") is not None
    ]
    if not rows:
        return None
    texts = [(r.scores["transcript"], r.scores["second_transcript"]) for r in rows]  # type: ignore[index]
    differ = sum(textnorm.normalise(a, language) != textnorm.normalise(b, language) for a, b in texts)
    interval = mean_interval(_per_sentence(table, _second), plan.share)
    return {
        "clips": len(rows), "differ": differ, "estimate": finite(interval.estimate), "lower": finite(interval.lower),
        "upper": finite(interval.upper), "margin": plan.margins.cer,
    }  # fmt: skip


def _second(row: Row) -> float | None:
    if row.scores is None or row.scores["failed"]:
        return battery.WORST_CER
    found: float | None = row.scores.get("second_cer")
    return found


def warnings(found: dict[str, dict[str, Any]], second: dict[str, Any] | None, cer: dict[str, Any] | None) -> list[str]:
    """Sentences for the page about what could mislead."""
    said = []
    parent, candidate = found["parent"], found["candidate"]
    if parent["clips"] and candidate["clips"]:
        more = parent["failed"] / parent["clips"] - candidate["failed"] / candidate["clips"]
        if more > PARENT_WORSE:
            said.append("The parent fails more often than the candidate: a broken parent makes any candidate look good.")
    uppers = [x["upper"] for x in (second, cer) if x and x["upper"] is not None]
    if second and len({upper < second["margin"] for upper in uppers}) == 2:
        said.append("The two recognisers would not decide alike on the character error rate: listen to the sentences where they differ.")
    if any(arm["flags"].get("spelling_only") for arm in (parent, candidate)):
        said.append("Some transcripts differ from their text in spelling only; a second recogniser tells whether that is heard.")
    return said
