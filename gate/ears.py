"""The human endpoint: what listeners prefer, whether they would have heard a damage, and what could have misled them."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import asdict
from typing import Any

from django.db.models import Q

from gate import policy
from gate.decide import FAIL, PASS, Endpoint
from gate.statistics import agreement, looks, votes
from gate.statistics.intervals import z_quantile
from gate.statistics.results import finite
from listening import screening
from listening.models import Qualification, Study
from listening.pairs import Cast, assay_votes, standing_votes
from synth.models import Sentence

#: Sides are reported as uneven below this probability.
UNEVEN_P = 0.01


def _net(cast: list[Cast], tail: float, sign: int = 1) -> votes.NetPreference:
    return votes.net_preference([v.rater for v in cast], [v.sentence for v in cast], [sign * v.score for v in cast], tail)


def _endpoint(plan: policy.Plan, net: votes.NetPreference, why: str) -> Endpoint:
    return Endpoint("preference", -net.upper, -net.lower, margin=plan.margins.preference, may_pass=not why, why_open=why)


def rules(plan: policy.Plan) -> screening.Rules:
    """By which rules a plan says who counts."""
    return screening.Rules(**plan.screening.model_dump())


def human(study: Study, plan: policy.Plan, look: int, final: bool) -> tuple[Endpoint, dict[str, Any]]:
    """The endpoint at human look `look` (from 0), and the facts beside it."""
    everyone = standing_votes(study)
    out = screening.excluded({v.rater for v in everyone}, rules(plan))
    cast = [v for v in everyone if v.rater not in out and v.glitches <= plan.screening.glitches and not v.beside]
    tails = looks.tails(plan.listening.looks, plan.share)
    net, net_all = _net(cast, tails[look]), _net(everyone, tails[look])
    assay = _assay(study, plan, set(out))
    why = _too_small(plan, net) or ("" if assay["met"] or not plan.listening.assay else "assay_not_met")
    found = _endpoint(plan, net, why)
    with_all = _endpoint(plan, net_all, why)
    if found.state == PASS and with_all.state == FAIL:
        found = _endpoint(plan, net, "exclusions_decide")
    facts = {
        "net": _plain(net), "net_all": _plain(net_all), "z": z_quantile(tails[look]), "tail": tails[look], "assay": assay,
        "state_with_all": with_all.state, "exclusions_matter": with_all.state != found.state,
        "excluded": dict(sorted(Counter(out.values()).items())), "votes_excluded": sum(v.rater in out for v in everyone),
        "votes_stuttered": sum(v.glitches > plan.screening.glitches for v in everyone if v.rater not in out),
        "chance": None if final or why else _chance(plan, net, look, tails),
        "counts": {name: sum(v.score == s for v in cast) for name, s in (("candidate", 1), ("same", 0), ("parent", -1))},
        "sides": _sides(cast), "first_heard": _first_heard(cast), "tags": _tags(cast), "defects": _defects(cast),
        "agreement": _agreement(cast), "self_declared": _self_declared(study, {v.rater for v in cast}),
    }  # fmt: skip
    return found, facts


def _plain(net: votes.NetPreference) -> dict[str, Any]:
    return {k: finite(v) if isinstance(v, float) else v for k, v in asdict(net).items()}


def _too_small(plan: policy.Plan, net: votes.NetPreference) -> str:
    size = plan.panel
    small = net.effective_raters < size.raters or net.effective_sentences < size.sentences or net.votes < size.votes
    return "panel_too_small" if small else ""


def _chance(plan: policy.Plan, net: votes.NetPreference, look: int, tails: list[float]) -> float | None:
    """Chance that the last look will pass, or None where nothing can be said."""
    share, margin = plan.listening.looks[look], plan.margins.preference
    if net.reason or share >= 1:
        return None
    planned = margin / (net.error * share**0.5)
    return looks.chance_to_pass((margin + net.estimate) / net.error, share, z_quantile(tails[-1]), planned)


def _assay(study: Study, plan: policy.Plan, out: set[int]) -> dict[str, Any]:
    """Whether this panel hears a moderate damage: the lower limit of its preference for the intact side exceeds the vote margin."""
    heard = [v for v in assay_votes(study, plan.listening.assay_q_db) if v.rater not in out]
    net = _net(heard, plan.share, -1)
    return {
        "met": net.lower > plan.margins.preference, "votes": net.votes, "raters": net.raters, "estimate": finite(net.estimate),
        "lower": net.lower, "upper": net.upper, "margin": plan.margins.preference, "q_db": plan.listening.assay_q_db,
    }  # fmt: skip


def _sides(cast: list[Cast]) -> dict[str, Any]:
    """Position bias: how often the left one was preferred, whichever system it was."""
    left, right = (sum(v.choice == side for v in cast) for side in ("left", "right"))
    return {"left": left, "right": right, **_evenness(left, right)}


def _first_heard(cast: list[Cast]) -> dict[str, Any]:
    """How often the side that was played first was preferred."""
    told = [v for v in cast if v.first and v.choice != "same"]
    first = sum(v.choice == v.first for v in told)
    return {"first": first, "second": len(told) - first, **_evenness(first, len(told) - first)}


def _evenness(one: int, other: int) -> dict[str, Any]:
    p = screening.side_p(one, other)
    return {"p": p, "uneven": p < UNEVEN_P}


def _arm(vote: Cast, side: str) -> str:
    return "candidate" if side == vote.tested else "parent"


def _tags(cast: list[Cast]) -> list[dict[str, Any]]:
    """Per remark, how many listeners made it of either system; each counted once a trial."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for vote in cast:
        for tag, arm in {(t["tag"], _arm(vote, t["side"])) for t in vote.tags}:
            found[tag][arm] += 1
    return [{"tag": tag, "parent": n["parent"], "candidate": n["candidate"]} for tag, n in sorted(found.items())]


def _defects(cast: list[Cast]) -> list[dict[str, Any]]:
    """Words that listeners pointed at, by sentence: [{sentence, words: [{start, end, parent, candidate}]}]."""
    found: dict[int, dict[tuple[int, int], Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for vote in cast:
        for word, arm in {(tuple(t["word"]), _arm(vote, t["side"])) for t in vote.tags if t["word"] is not None}:
            found[vote.sentence][word][arm] += 1
    texts = dict(Sentence.objects.filter(pk__in=found).values_list("pk", "text"))
    return [
        {
            "sentence": texts[s],
            "words": [{"start": a, "end": b, "parent": n["parent"], "candidate": n["candidate"]} for (a, b), n in sorted(words.items())],
        }
        for s, words in found.items()
    ]


def _agreement(cast: list[Cast]) -> dict[str, float | None]:
    """How alike raters answer: a sign of how much sentences differ, not of how good the raters are. Gates nothing."""
    if not cast:
        return dict.fromkeys(("alpha_nominal", "alpha_ordinal", "ac1"))
    found = agreement.agreement([v.sentence for v in cast], [v.score for v in cast])
    return {"alpha_nominal": found.alpha_nominal, "alpha_ordinal": found.alpha_ordinal, "ac1": found.ac1}


def _self_declared(study: Study, raters: set[int]) -> int:
    """Raters whose knowledge of the language nobody tested."""
    tested = Qualification.objects.filter(method=Qualification.Method.TESTED, passed=True, rater__panel=study.panel_id)
    tested = tested.filter(Q(rater__in=raters) | Q(rater__first__in=raters))
    return len(raters - {q.rater.person for q in tested.select_related("rater")})
