"""The published levers this project grew from, judged by our rules (docs/seed-verdicts.md). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gate.decide import Case, Decision, Endpoint, Speed, decide

#: Run-to-run spreads the report gives: between passes of different processes, and within one.
SPREAD_PASSES, SPREAD_ONE = 0.048, 0.01
CER, DNSMOS, LENGTH = 0.02, 0.05, 0.03
#: Published as "merge + compile against unmerged, 300 new sentences": the length interval "includes zero"; 1.7 % either side is assumed.
CONFIRMED = {
    "id": "lora-merge-q8 + compile (new set)", "speed_rtf": 1.56, "speed_wall": 1.58, "dCER": [-0.002, -0.012, 0.008],
    "dDNSMOS": [-0.014, -0.038, 0.005], "length_ci_rel_derived": [-0.012, 0.022], "seed_verdict": "accepted",
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One lever: its authors' label, our verdict now, and at a plan's last look."""

    name: str
    theirs: str
    ours: Decision
    last: Decision

    @property
    def differs(self) -> bool:
        return self.ours.verdict not in self.theirs


def case_of(row: Mapping[str, Any]) -> Case:
    """The case of a row of tests/vectors/seeds.json, table `levers`. Only what was published is judged: nothing is filled in."""
    identical = row.get("bit_identical")
    claims = identical is not None
    all_of_them = identical is True or (isinstance(identical, Sequence) and identical[0] == identical[1])
    wall = row.get("speed_wall", row.get("speed_abba", row.get("speed")))
    several = "speed_abba" in row or "speed_rtf" in row
    speed = Speed(row.get("speed_rtf", wall), wall, SPREAD_PASSES if "speed_abba" in row else SPREAD_ONE) if several or wall else Speed()
    endpoints = []
    if "dCER" in row:
        endpoints.append(Endpoint("cer", row["dCER"][1], row["dCER"][2], margin=CER))
    if "dDNSMOS" in row:
        endpoints.append(Endpoint("dnsmos", -row["dDNSMOS"][2], -row["dDNSMOS"][1], margin=DNSMOS))
    if "length_ci_rel_derived" in row:
        low, high = row["length_ci_rel_derived"]
        endpoints.append(Endpoint("length", 1 + low, 1 + high, low=1 - LENGTH, high=1 + LENGTH))
    measured = tuple(e.name for e in endpoints)
    return Case(bit_identical=all_of_them, claims_identical=claims, required=measured, endpoints=tuple(endpoints), speed=speed)


def judged(levers: Sequence[Mapping[str, Any]]) -> list[Row]:
    found = []
    for row in [*levers, CONFIRMED]:
        case = case_of(row)
        found.append(Row(row["id"], row["seed_verdict"], decide(case), decide(replace(case, final_look=True))))
    return found
