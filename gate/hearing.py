"""A lever before its listeners: the test is opened, votes are read at planned looks."""

from __future__ import annotations

from django.db import IntegrityError, transaction
from django.utils import timezone

from gate import controls, decide, ears, evidence, history, policy
from gate.lock import plan_of
from gate.models import Lever, Look
from gate.moves import Elsewhere, judge, keep_look, look_closer, move
from listening import pairs, screening
from listening.models import Pair
from synth import voices

State = Lever.State


def open_listening(lever: Lever, plan: policy.Plan, facts: dict) -> bool:
    """Opens the listening test, after an automatic look that everything passed. Pairs that are the same sound are left out."""
    by_sentence = evidence.pairs_to_hear(lever, plan)
    if not by_sentence:
        return _nobody_asked(lever, facts, "identical_undeclared")
    if not policy.reaches_panel(plan, len(by_sentence)):  # too many pairs are the same sound, or were not made
        return _nobody_asked(lever, facts, "preference:panel_too_small")
    # Reads and writes sound: outside of the transaction.
    prepared = [pairs.prepared(*found) for found in by_sentence]
    known = controls.pairs(lever, plan)
    sample = evidence.sample_clip(lever)
    with transaction.atomic():
        move(lever, State.LISTENING)
        keep_look(lever, Look.Kind.AUTOMATIC, facts["look"], facts)
        study = pairs.open_study(lever.corpus.language, plan.listening.votes_per_pair, [*prepared, *known], sample, voices.of(lever.parent))
        Lever.objects.filter(pk=lever.pk).update(study=study)
        look_closer(lever)
        history.note(lever, f"measured and within its margins; {len(prepared)} pairs wait for listeners, {len(known)} controls among them")
    return True


def _nobody_asked(lever: Lever, facts: dict, reason: str) -> bool:
    """Ends a lever whose listening test would show nothing."""
    with transaction.atomic():
        move(lever, State.SETTLED)
        look = keep_look(lever, Look.Kind.AUTOMATIC, facts["look"], facts)
        judge(lever, look, decide.Decision(decide.INCONCLUSIVE, (reason,)))
    return True


def planned_votes(lever: Lever, plan: policy.Plan) -> int:
    return lever.study.pairs.filter(kind=Pair.Kind.TEST).count() * plan.listening.votes_per_pair


def heard(lever: Lever) -> bool:
    """Reads the votes when a planned look is due, or the plan's closing date has come."""
    plan = plan_of(lever)
    done = Look.objects.filter(plan=lever.plan, kind=Look.Kind.HUMAN).count()
    if done >= len(plan.listening.looks):
        return False
    closing = timezone.now().isoformat() > lever.plan.body["closes_at"]
    screening.stand_in(lever.study, ears.rules(plan))
    planned, cast = planned_votes(lever, plan), pairs.votes_cast(lever.study)
    if cast < round(plan.listening.looks[done] * planned) and not closing:
        return False
    last = done + 1 == len(plan.listening.looks) and cast >= planned
    final = closing or last
    case, facts = evidence.human(lever, plan, done, last)
    decision = decide.decide(case)
    if decision.verdict == decide.INCONCLUSIVE:
        chance = facts["chance"]
        ends = ("closed",) if closing else ("futile",) if chance is not None and chance < plan.listening.futility else ()
        decision = decide.Decision(decide.INCONCLUSIVE, (*decision.reasons, *ends))
        final = final or bool(ends)
    try:
        with transaction.atomic():
            look = keep_look(lever, Look.Kind.HUMAN, done + 1, facts)
            if final or decision.verdict != decide.INCONCLUSIVE:
                move(lever, State.SETTLED)
                judge(lever, look, decision)
            else:
                history.note(lever, f"look {done + 1} of {len(plan.listening.looks)} at {cast} votes: not decided yet")
    except IntegrityError as error:
        raise Elsewhere from error  # two processes reached the same look
    return True
