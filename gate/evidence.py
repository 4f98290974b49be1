"""Rows to the frozen case that `decide` judges, and to the facts a look stores."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np

from gate import described, ears, lineage, lock, measured, policy, site_policy, stages
from gate.decide import Case, Endpoint, Speed
from gate.identity import Identity, clip_pairs, identical
from gate.models import Lever, Look
from gate.pace import measured_gain, measured_speed
from gate.statistics import length, rates
from gate.statistics.intervals import mean_interval
from gate.statistics.results import Interval, finite
from gate.timing import against_parent
from synth.models import Clip, Preflight

#: A parent that the recogniser understands no better than this leaves no room to see a candidate being worse.
WEAK_CER = 0.30

#: name -> (label, unit). Badness scale: larger is worse; length is a ratio, level in dB.
UNITS = {
    "cer": ("Character error rate", "share"), "dnsmos": ("DNSMOS OVRL lost", "points"), "length": ("Length ratio", "x"),
    "level": ("Level difference", "dB"), "catastrophe": ("Sentences newly failing", "share"),
    "preference": ("Preference lost", "net share"),
}  # fmt: skip


# -- automatic endpoints ----------------------------------------------------------------------------------------------


def _differences(table: measured.Table, reference: str = "parent") -> dict[str, Any]:
    """Per-sentence differences from the reference arm on the badness scale, logs of length ratios, failures."""
    cer, dnsmos, level, ratio, only_candidate, only_parent = [], [], [], [], 0, 0
    for arms in table.values():
        p, c = arms[reference], arms["candidate"]
        cer.append(np.mean([r.cer for r in c]) - np.mean([r.cer for r in p]))
        dnsmos.append(np.mean([r.dnsmos for r in p]) - np.mean([r.dnsmos for r in c]))
        heard = [[r for r in rows if r.seconds] for rows in (p, c)]
        if all(heard):
            ratio.append(float(np.mean([math.log(r.seconds) for r in heard[1]]) - np.mean([math.log(r.seconds) for r in heard[0]])))  # type: ignore[arg-type]
        loud = [[r.level for r in rows if r.level is not None] for rows in (p, c)]
        if all(loud):
            level.append(np.mean(loud[1]) - np.mean(loud[0]))
        failed = [any(r.failed for r in rows) for rows in (p, c)]
        only_candidate += failed[1] and not failed[0]
        only_parent += failed[0] and not failed[1]
    return {"cer": cer, "dnsmos": dnsmos, "level": level, "ratio": ratio, "b": only_candidate, "c": only_parent, "n": len(table)}


def _endpoints(plan: policy.Plan, d: dict[str, Any], tail: float, prefix: str = "") -> list[tuple[Endpoint, Interval]]:
    m, clips = plan.margins, d["n"] * plan.replicates
    floor_met = d["n"] >= plan.floor.sentences and clips >= plan.floor.clips
    why = "" if floor_met else "below_floor"

    def one(name: str, interval: Interval, **limits: float) -> tuple[Endpoint, Interval]:
        return Endpoint(prefix + name, interval.lower, interval.upper, may_pass=floor_met, why_open=why, **limits), interval

    return [
        one("cer", mean_interval(d["cer"], tail), margin=m.cer),
        one("dnsmos", mean_interval(d["dnsmos"], tail), margin=m.dnsmos),
        one(
            "length",
            length.ratio_interval(d["ratio"], tail),
            low=plan.length_shift * (1 - m.length),
            high=plan.length_shift * (1 + m.length),
        ),
        one("level", mean_interval(d["level"], tail), low=-m.level, high=m.level),
        one("catastrophe", rates.paired_difference_upper(d["b"], d["c"], d["n"], tail), margin=m.catastrophe),
    ]


# -- cases ------------------------------------------------------------------------------------------------------------


def caps(lever: Lever, plan: policy.Plan, identity: Identity) -> tuple[str, ...]:
    """Why the verdict can be no better than provisional."""
    found = policy.caps(plan, site_policy.locked_under(lever.plan))
    if identity.settled:  # what is settled by hash needs no sentences, panel or margins; its speed still needs tail and blocks
        kept = {"floor_lowered", "speed_unmeasured"} | ({"tail_loosened", "timing_lowered"} if plan.timed else set())
        found = [cap for cap in found if cap in kept]
    elif not lever.plan.body.get("anchor") and lineage.anchor(lever) is not None:
        found.append("unanchored")
    attempt, reserved = lock.attempt_of(lever)  # not the plan's: a link to an earlier lever may have been declared since
    if max(attempt, lever.plan.body["attempt"]) > min(reserved, lever.plan.body.get("reserved", 1)):
        found.append("unreserved_attempt")
    if lineage.shared_sentences(lever):
        found.append("sentences_spent")
    if lever.plan.body.get("amended"):
        found.append("plan_amended")
    below = lineage.makers(lever.parent)
    if below and not any(b.verdict and b.verdict.verdict == "accepted" for b in below):
        found.append("parent_not_accepted")
    return tuple(found)


def _as_fact(endpoint: Endpoint, interval: Interval) -> dict[str, Any]:
    base = endpoint.name.removeprefix("anchor_")
    label, unit = UNITS[base]
    label += " against the anchor" if base != endpoint.name else ""
    return {
        "name": endpoint.name, "label": label, "unit": unit, "estimate": finite(interval.estimate), "lower": finite(endpoint.lower),
        "upper": finite(endpoint.upper), "margin": endpoint.margin, "low": endpoint.low, "high": endpoint.high,
        "may_pass": endpoint.may_pass, "why_open": endpoint.why_open, "state": endpoint.state, "n": interval.n, "reason": interval.reason,
    }  # fmt: skip


def _from_fact(fact: dict[str, Any]) -> Endpoint:
    lower, upper = fact["lower"], fact["upper"]
    ends = (-math.inf if lower is None else lower, math.inf if upper is None else upper)
    return Endpoint(fact["name"], *ends, fact["margin"], fact["low"], fact["high"], fact["may_pass"], fact["why_open"])


def automatic(lever: Lever) -> tuple[Case, dict[str, Any]]:
    """The case of the automatic look, and the facts it stores."""
    plan, identity = policy.of(lever.plan.body), identical(lever)
    covered, look = stages.counts(plan, len(lever.draw.order)), stages.current(lever)
    tail, last = stages.tails(plan, covered)[look], look + 1 == len(covered)
    table, missing = ({}, []) if identity.settled else measured.table(lever)
    if identity.settled:
        found = []
    else:
        complete = {s: arms for s, arms in table.items() if all(len(rows) == plan.replicates for rows in arms.values())}
        found = _endpoints(plan, _differences(complete), tail)
        if lever.plan.body.get("anchor"):  # small losses of a stack of changes add up: the same margins hold against where it began
            found += _endpoints(plan, _differences(complete, "anchor"), tail, "anchor_")
    pace, pace_facts = measured_speed(against_parent(lever), plan) if plan.timed else (Speed(), {})
    gain, gained = (
        measured_gain(against_parent(lever), plan) if plan.timed and plan.benefit in policy.READ_FROM_BLOCKS[1:] else ("unknown", {})
    )
    means = described.arms(table)
    if (means["parent"]["cer"] or 0.0) > WEAK_CER:
        missing.append("asr_too_weak")
    if identity.same == identity.clips > 0 and not lever.plan.body["claims_identical"]:
        missing.append("identical_undeclared")
    endpoints = [_as_fact(e, i) for e, i in found]
    second = described.disagreement(table, plan, lever.corpus.language)
    facts = {
        "plan": lever.plan.digest, "identity": asdict(identity) | {"settled": identity.settled, "deterministic": identity.deterministic},
        "claims_identical": lever.plan.body["claims_identical"], "missing": missing,
        "endpoints": endpoints, "arms": means, "speed": pace_facts, "benefit": gained, "gain": gain,
        "look": look + 1, "looks": len(covered), "sentences": covered[look], "tail": tail,
        "caps": list(caps(lever, plan, identity)), "metrics": lever.plan.body["metrics"],
        "length_parts": described.length_parts(table, plan.share) if table else [], "second": second,
        "warnings": described.warnings(means, second, next((f for f in endpoints if f["name"] == "cer"), None)),
    }  # fmt: skip
    case = Case(
        bit_identical=identity.settled, claims_identical=facts["claims_identical"], evidence_complete=not missing, final_look=last,
        endpoints=tuple(e for e, _ in found), benefit=plan.benefit, speed=pace, gain=gain, human_required=plan.listening.required,
        caps=tuple(facts["caps"]), missing=tuple(missing),
    )  # fmt: skip
    return case, facts


def human(lever: Lever, plan: policy.Plan, look: int, final: bool) -> tuple[Case, dict[str, Any]]:
    """The case of human look `look` (from 0): the sealed automatic evidence, and the votes so far at this look's level."""
    stored = Look.objects.filter(plan=lever.plan, kind=Look.Kind.AUTOMATIC).order_by("number").last().evidence
    endpoint, heard = ears.human(lever.study, plan, look, final)
    net = heard["net"]
    estimate = math.nan if net["estimate"] is None else -net["estimate"]
    fact = _as_fact(endpoint, Interval(estimate, endpoint.lower, endpoint.upper, net["n"], net["reason"]))
    capped = caps(lever, plan, identical(lever))  # anew: a parent may have fallen, or a variant been declared, while raters listened
    facts = heard | {
        "preference": fact, "endpoints": [*stored["endpoints"], fact], "caps": list(capped), "plan": lever.plan.digest,
        "speed": stored["speed"], "benefit": stored.get("benefit", {}),
    }  # fmt: skip
    pace = stored["speed"] if stored["speed"].get("wall_speedup") else {}
    case = Case(
        claims_identical=stored["claims_identical"], final_look=final, endpoints=tuple(_from_fact(e) for e in stored["endpoints"]),
        benefit=plan.benefit, gain=stored.get("gain", "unknown"), human=endpoint, human_required=True, caps=capped,
        speed=Speed(
            rtf_speedup=pace["wall_speedup"] * pace["length_ratio"], wall_speedup=pace["wall_speedup"], spread=pace["residual_spread"],
            lower=pace["lower"], upper=pace["upper"], averages=tuple(pace.get("averages", ())),
        )
        if pace
        else Speed(),
        remarks=_remarks(heard),
    )  # fmt: skip
    return case, facts


def _remarks(heard: dict[str, Any]) -> tuple[str, ...]:
    """What a reader should know of the listening; none of it changes the verdict."""
    known = (
        ("panel_self_declared", heard["self_declared"]), ("exclusions_matter", heard["exclusions_matter"]),
        ("sides_uneven", heard["sides"]["uneven"]), ("first_heard_uneven", heard["first_heard"]["uneven"]),
    )  # fmt: skip
    return tuple(code for code, said in known if said)


# -- for listening ----------------------------------------------------------------------------------------------------


def pairs_to_hear(lever: Lever, plan: policy.Plan) -> list[tuple[int, Clip, Clip]]:
    """(sentence, parent's clip, candidate's clip) in the draw's order; identical recordings are left out, as are failed ones."""
    found = [(s.pk, parent, candidate) for s, parent, candidate in clip_pairs(lever) if parent.pcm_sha256 != candidate.pcm_sha256]
    return found[: plan.listening.pairs]


def sample_clip(lever: Lever) -> Clip | None:
    """The preflight's "hello": speech for the sound check that no pair contains."""
    return Preflight.objects.get(configuration=lever.parent).sample
