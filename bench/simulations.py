"""False acceptance of every endpoint at its margin and of the whole gate, as docs/statistics.md, section 10, shows it.

python -m bench.simulations            about a minute; the same worlds and code as tests/statistics/test_simulations.py
"""

from __future__ import annotations

import math

import numpy as np

from gate.statistics import length, rates
from gate.statistics.intervals import mean_interval
from gate.statistics.votes import net_preference
from tests.statistics import worlds
from tests.statistics.test_simulations import gate_passes

STUDIES = 20_000


def row(name: str, truth: str, passed: int, count: int) -> None:
    rate = passed / count
    print(f"| {name} | {truth} | {100 * rate:.2f} % | {100 * math.sqrt(rate * (1 - rate) / count):.2f} | {count:,} |", flush=True)


def main() -> None:
    print("| endpoint | truth | accepted | standard error | studies |\n|---|---|---|---|---|")
    for language in ("hi", "en"):
        for harm in ("diffuse", "sparse"):
            rng = np.random.default_rng([21, len(harm), ord(language[0])])
            margin = worlds.true_mean(language, harm, np.random.default_rng(1))
            passed = 0
            for _ in range(STUDIES // 500):
                passed += sum(mean_interval(d).upper < margin for d in worlds.cer_differences(language, harm, 500, 300, 1, rng))
            row(f"CER, {language}, {harm}", "on its margin", passed, STUDIES)
    rng = np.random.default_rng(22)
    row(
        "DNSMOS",
        "on its margin",
        sum(mean_interval(d).upper < 0.05 for d in worlds.dnsmos_differences(0.05, STUDIES, 300, 1, rng)),
        STUDIES,
    )
    for shift in (-0.03, 0.03):
        found = [length.ratio_interval(d) for d in worlds.log_ratios(shift, 0.10, STUDIES, 300, rng)]
        row("length", f"{100 * shift:+.0f} %", sum(i.lower > 0.97 and i.upper < 1.03 for i in found), STUDIES)
    alone, parents = rng.binomial(300, 0.033, STUDIES), rng.binomial(300, 0.003, STUDIES)
    limits = (rates.paired_difference_upper(int(b), int(c), 300).upper for b, c in zip(alone, parents, strict=True))
    row("catastrophes", "on its margin", sum(u < 0.03 for u in limits), STUDIES)
    for panel in worlds.PANELS:
        worst, at = -1, (0, 0)
        for raters, sentences in ((4, 20), (8, 50), (12, 100)):
            passed = sum(net_preference(*worlds.votes(panel, raters, sentences, -0.10, rng)).lower > -0.10 for _ in range(STUDIES // 4))
            worst, at = max((worst, at), (passed, (raters, sentences)))
        row(f"preference, {panel}, worst at {at[0]} x {at[1]}", "on its margin", worst, STUDIES // 4)
    for language in ("hi", "en"):
        for harm in ("diffuse", "sparse", "none"):
            rng = np.random.default_rng([23, len(harm), ord(language[0])])
            cer = worlds.cer_differences(language, harm, STUDIES // 2, 300, 1, rng)
            dnsmos = worlds.dnsmos_differences(0.0, STUDIES // 2, 300, 1, rng)
            ratios = worlds.log_ratios(0.0, 0.05, STUDIES // 2, 300, rng)
            b, c = (cer > 0.9).sum(axis=1), (cer < -0.9).sum(axis=1)
            passed = sum(gate_passes(cer[k], dnsmos[k], ratios[k], int(b[k]), int(c[k])) for k in range(len(cer)))
            row(f"the whole gate, {language}", "nothing wrong" if harm == "none" else f"CER on its margin, {harm}", passed, len(cer))


if __name__ == "__main__":
    main()
