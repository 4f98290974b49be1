"""The only place that moves a lever forward. Running it twice, or from two processes, changes nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from gate import annotations, decide, evidence, history, identity, ledger, lock, measured, policy, recognisers, scoring, standing
from gate.lock import plan_of
from gate.models import Lever, Look, Measurement, Verdict
from gate.pace import blocks_of
from listening import pairs
from synth import bell
from synth.canonical import digest_of
from synth.configuration import difference, sections
from synth.models import Leased, Preflight, RenderGroup, TimedBlock, seed_of

log = logging.getLogger("earwitness.advance")
State = Lever.State
SETTLED = (Leased.State.DONE, Leased.State.FAILED)
VOID_BLOCKS = 3


class Elsewhere(Exception):
    """Another process moved this lever first; nothing of ours is kept."""


def _move(lever: Lever, state: str) -> None:
    if not Lever.objects.filter(pk=lever.pk, state=lever.state).update(state=state, problem=""):
        raise Elsewhere
    lever.state, lever.problem = state, ""


def _trouble(lever: Lever, text: str) -> None:
    """Shows what holds the lever up, or takes it away; of two processes that find the same, one writes it down."""
    if Lever.objects.filter(pk=lever.pk, state=lever.state).exclude(problem=text).update(problem=text) and text:
        history.note(lever, text)


def advance(lever_id: int) -> None:
    """Moves one lever as far as the facts allow."""
    while True:
        lever = Lever.objects.select_related("parent", "candidate", "draw", "study").get(pk=lever_id)
        step = STEPS.get(lever.state)
        try:
            if step is None or not (_close(lever) or step(lever)):
                return
        except Elsewhere:
            continue


def advance_open() -> None:
    """Every lever that is not settled. One that breaks must not hold the others."""
    for pk in Lever.objects.exclude(state=State.SETTLED).values_list("pk", flat=True):
        try:
            advance(pk)
        except Exception as error:  # noqa: BLE001 - shown on its page, logged with its trace; the next round tries again
            log.exception("lever %s could not be advanced", pk)
            _trouble(Lever.objects.get(pk=pk), f"This lever can't go on: {type(error).__name__}: {error}"[:500])


def _close(lever: Lever) -> bool:
    """What is undecided on the plan's closing date ends there; votes that are in get one last look (see _heard)."""
    if lever.plan is None or lever.state == State.LISTENING or timezone.now().isoformat() < lever.plan.body["closes_at"]:
        return False
    with transaction.atomic():
        _move(lever, State.SETTLED)
        _judge(lever, None, decide.Decision(decide.INCONCLUSIVE, ("evidence_incomplete", "closed")))
    return True


# -- checking: preflight of both configurations, then the lock ------------------------------------------------------


def _check(lever: Lever) -> bool:
    flights = {p.configuration_id: p for p in Preflight.objects.filter(configuration__in=[lever.parent, lever.candidate])}
    for configuration in (lever.parent, lever.candidate):
        flight = flights.get(configuration.pk)
        if flight is not None and flight.state == Leased.State.FAILED:
            _trouble(lever, f"{configuration.name}: {flight.error}")
            return False
        if flight is None or flight.state != Leased.State.DONE:
            if flight is not None and flight.error and flight.attempts:
                _trouble(lever, f"{configuration.name}: {flight.error} (tried {flight.attempts} times)")
            return False
    parent, candidate = (flights[c.pk].report for c in (lever.parent, lever.candidate))
    if parent["device_class"] != candidate["device_class"]:
        tried = f"The parent was tried on {parent['device_class']}, the candidate on {candidate['device_class']}"
        _trouble(lever, f"{tried}: check again, and both are tried on the candidate's kind.")
        return False
    if _no_effect(lever, parent, candidate):
        _trouble(lever, "The candidate loads exactly what its parent loads (no_effect): nothing that differs reaches the model.")
        return False
    plan = plan_of(lever)
    try:
        battery = scoring.battery_for(plan.recogniser or settings.RECOGNISER, plan.second_recogniser)
    except (ModuleNotFoundError, recognisers.Unavailable) as error:
        missing = (
            f"{error.name} is not installed on this host; install requirements-speech.lock"
            if isinstance(error, ModuleNotFoundError)
            else error
        )
        _trouble(lever, f"The plan can't name its metrics: {str(missing).rstrip('.')}.")
        return False
    with transaction.atomic():
        _move(lever, State.RENDERING)
        lock.lock(lever, candidate["device_class"], battery, candidate.get("environment", {}))
    return True


def _no_effect(lever: Lever, parent: dict, candidate: dict) -> bool:
    """Only the place the weights are read from differs, and the weights are the same."""
    touched = sections(difference(lever.candidate.parsed(), lever.parent.parsed()))
    return touched == ["model"] and parent["digests"].get("weights") == candidate["digests"].get("weights")


# -- rendering and timing -------------------------------------------------------------------------------------------


def groups_of(lever: Lever):
    """The render groups this lever waits for; repeated clips only matter to one that claims to be bit-identical."""
    mine = RenderGroup.objects.filter(draw_key=lever.draw.key, configuration__in=list(identity.arms(lever)))
    return mine if lever.wanted["claims_identical"] else mine.filter(renders__repetition=0).distinct()


def _rendered(lever: Lever) -> bool:
    waiting = groups_of(lever).exclude(state__in=SETTLED)
    if waiting.exists():
        stuck = waiting.exclude(error="").filter(state=Leased.State.QUEUED).first()
        _trouble(lever, f"Rendering is held up: {stuck.error}" if stuck else "")
        return False
    plan = plan_of(lever)
    with transaction.atomic():
        if plan.timed:
            _move(lever, State.TIMING)
            for number in range(plan.timing.blocks):
                _block(lever, plan, number)
            history.note(lever, f"all clips rendered; {plan.timing.blocks} timed blocks follow")
            bell.ring_after_commit()
        else:
            _to_scoring(lever)
    return True


def _block(lever: Lever, plan: policy.Plan, number: int) -> bool:
    """Asks for a block; False when another process has asked for it already."""
    sentences = [
        {"sentence": s.digest, "text": s.text, "language": s.language, "seed": seed_of(lever.draw.key, s.digest, 0)}
        for s in lever.draw.sentences()[: plan.timing.sentences]
    ]
    _, made = TimedBlock.objects.get_or_create(
        first=lever.parent, second=lever.candidate, draw_key=lever.draw.key, number=number,
        defaults={"sentences": sentences, "device_class": lever.plan.body["device_class"]},
    )  # fmt: skip
    return made


def _timed(lever: Lever) -> bool:
    """A contended block is void and is run again, three times in all."""
    plan, blocks = plan_of(lever), list(blocks_of(lever))
    if any(b.state not in SETTLED for b in blocks):
        return False
    good = [b for b in blocks if b.state == Leased.State.DONE and not b.contended]
    void = [b for b in blocks if b not in good]
    if len(good) < plan.timing.blocks and len(void) < VOID_BLOCKS:
        programs = sorted({name for b in void[-1:] for seen in b.contended.values() for name in seen})
        with transaction.atomic():
            if _block(lever, plan, len(blocks)):
                history.note(lever, f"a timed block is void ({', '.join(programs) or 'it could not be finished'}); it is run again")
            bell.ring_after_commit()
        return False
    with transaction.atomic():
        _to_scoring(lever)
    return True


# -- scoring and the automatic look ---------------------------------------------------------------------------------


def _to_scoring(lever: Lever) -> None:
    _move(lever, State.SCORING)
    if not identity.identical(lever).settled:
        for render in identity.all_renders(lever):
            if render.clip_id:
                row, _ = Measurement.objects.get_or_create(
                    clip_id=render.clip_id, sentence_id=render.sentence_id, identity=lever.plan.body["metrics"]
                )
                # What failed for an earlier lever is tried again for this one: the scorer may have been mended.
                Measurement.objects.filter(pk=row.pk, state=Leased.State.FAILED).update(
                    state=Leased.State.QUEUED, attempts=0, due_at=timezone.now(), rung_at=None, error="", settled_at=None
                )
        history.note(lever, "all clips are there; they are measured now")
    else:
        history.note(lever, "every clip is bit for bit its parent's: quality is settled without measuring")
    transaction.on_commit(_ring_scoring)


def _ring_scoring() -> None:
    from gate.tasks import score_batch

    bell.ring(Measurement.objects.all(), score_batch)


def _scored(lever: Lever) -> bool:
    if not identity.identical(lever).settled:
        waiting = measured.waiting(lever)
        if waiting:
            _trouble(lever, measured.held_up(waiting))
            return False
    case, facts = evidence.automatic(lever)
    decision = decide.decide(case)
    plan = plan_of(lever)
    if decision.reasons[0] == "human_votes_pending":
        return _open_listening(lever, plan, facts)
    with transaction.atomic():
        _move(lever, State.SETTLED)
        _judge(lever, _look(lever, Look.Kind.AUTOMATIC, 1, facts), decision)
        _look_closer(lever)
    return True


def _look_closer(lever: Lever) -> None:
    """Annotations, asked for once the look is committed: nothing waits for them and nothing can fail by them."""

    def ask() -> None:
        try:
            annotations.want(lever)
            annotations.ring()
        except Exception:  # noqa: BLE001 - a judge that can't be made must not hold a verdict
            log.exception("annotations of %s could not be asked for", lever.slug)

    transaction.on_commit(ask)


def _look(lever: Lever, kind: str, number: int, facts: dict) -> Look:
    return Look.objects.create(plan=lever.plan, kind=kind, number=number, evidence=facts, evidence_sha256=digest_of(facts))


def _judge(lever: Lever, look: Look | None, decision: decide.Decision) -> None:
    verdict = Verdict.objects.create(
        lever=lever, plan=lever.plan, look=look, verdict=decision.verdict, reasons=list(decision.reasons),
        evidence=decision.evidence, code_version=settings.VERSION,
    )  # fmt: skip
    ledger.verdict_given(verdict)
    standing.judge_children_again(lever)
    if lever.study_id:
        pairs.close(lever.study)
    history.note(lever, f"verdict: {decision.verdict} ({', '.join(decision.reasons)})")


# -- listening and its looks ----------------------------------------------------------------------------------------


def _open_listening(lever: Lever, plan: policy.Plan, facts: dict) -> bool:
    by_sentence = evidence.pairs_to_hear(lever, plan)
    if not by_sentence:
        with transaction.atomic():
            _move(lever, State.SETTLED)
            _judge(lever, _look(lever, Look.Kind.AUTOMATIC, 1, facts), decide.Decision(decide.INCONCLUSIVE, ("identical_undeclared",)))
        return True
    prepared = pairs.prepare(by_sentence)  # reads sound: outside of the transaction
    sample = evidence.sample_clip(lever)
    with transaction.atomic():
        _move(lever, State.LISTENING)
        _look(lever, Look.Kind.AUTOMATIC, 1, facts)
        study = pairs.open_study(lever.corpus.language, plan.listening.votes_per_pair, prepared, sample)
        Lever.objects.filter(pk=lever.pk).update(study=study)
        _look_closer(lever)
        history.note(lever, f"measured and within its margins; {len(prepared)} pairs wait for listeners")
    return True


def planned_votes(lever: Lever, plan: policy.Plan) -> int:
    return lever.study.pairs.count() * plan.listening.votes_per_pair


def _heard(lever: Lever) -> bool:
    plan = plan_of(lever)
    done = Look.objects.filter(plan=lever.plan, kind=Look.Kind.HUMAN).count()
    if done >= len(plan.listening.looks):
        return False
    closing = timezone.now().isoformat() > lever.plan.body["closes_at"]
    planned, cast = planned_votes(lever, plan), pairs.votes_cast(lever.study)
    if cast < round(plan.listening.looks[done] * planned) and not closing:
        return False
    last = done + 1 == len(plan.listening.looks) and cast >= planned
    final = closing or last
    case, facts = evidence.human(lever, plan, done, last)
    decision = decide.decide(case)
    if closing and decision.verdict == decide.INCONCLUSIVE:
        decision = decide.Decision(decide.INCONCLUSIVE, (*decision.reasons, "closed"))
    try:
        with transaction.atomic():
            look = _look(lever, Look.Kind.HUMAN, done + 1, facts)
            if final or decision.verdict != decide.INCONCLUSIVE:
                _move(lever, State.SETTLED)
                _judge(lever, look, decision)
            else:
                history.note(lever, f"look {done + 1} of {len(plan.listening.looks)} at {cast} votes: not decided yet")
    except IntegrityError as error:
        raise Elsewhere from error  # two processes reached the same look
    return True


STEPS: dict[str, Callable[[Lever], bool]] = {
    State.CHECKING: _check,
    State.RENDERING: _rendered,
    State.TIMING: _timed,
    State.SCORING: _scored,
    State.LISTENING: _heard,
}
