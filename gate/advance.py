"""The only place that moves a lever forward. Running it twice, or from two processes, changes nothing."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from gate import controls, decide, evidence, history, identity, lock, measured, policy, recognisers, scoring, stages
from gate.hearing import heard, open_listening
from gate.lock import plan_of
from gate.models import Lever, Look, Measurement
from gate.moves import Elsewhere, judge, keep_look, log, look_closer, move, trouble
from gate.timing import against_parent
from synth import bell
from synth.configuration import Refused, difference, sections
from synth.models import Leased, Preflight, RenderGroup

State = Lever.State


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
        except Refused as error:  # what was fresh at registration may have been spent meanwhile
            trouble(Lever.objects.get(pk=pk), error.message)
        except Exception as error:  # noqa: BLE001 - shown on its page, logged with its trace; the next round tries again
            log.exception("lever %s could not be advanced", pk)
            trouble(Lever.objects.get(pk=pk), f"This lever can't go on: {type(error).__name__}: {error}"[:500])


def _close(lever: Lever) -> bool:
    """What is undecided on the plan's closing date ends there; votes that are in get one last look (see _heard)."""
    if lever.plan is None or lever.state == State.LISTENING or timezone.now().isoformat() < lever.plan.body["closes_at"]:
        return False
    with transaction.atomic():
        move(lever, State.SETTLED)
        judge(lever, None, decide.Decision(decide.INCONCLUSIVE, ("evidence_incomplete", "closed")))
    return True


# -- checking: preflight of both configurations, then the lock ------------------------------------------------------


def _check(lever: Lever) -> bool:
    flights = {p.configuration_id: p for p in Preflight.objects.filter(configuration__in=[lever.parent, lever.candidate])}
    for configuration in (lever.parent, lever.candidate):
        flight = flights.get(configuration.pk)
        if flight is not None and flight.state == Leased.State.FAILED:
            trouble(lever, f"{configuration.name}: {flight.error}")
            return False
        if flight is None or flight.state != Leased.State.DONE:
            if flight is not None and flight.error and flight.attempts:
                trouble(lever, f"{configuration.name}: {flight.error} (tried {flight.attempts} times)")
            return False
    parent, candidate = (flights[c.pk].report for c in (lever.parent, lever.candidate))
    if parent["device_class"] != candidate["device_class"]:
        tried = f"The parent was tried on {parent['device_class']}, the candidate on {candidate['device_class']}"
        trouble(lever, f"{tried}: check again, and both are tried on the candidate's kind.")
        return False
    if _no_effect(lever, parent, candidate):
        trouble(lever, "The candidate loads exactly what its parent loads (no_effect): nothing that differs reaches the model.")
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
        trouble(lever, f"The plan can't name its metrics: {str(missing).rstrip('.')}.")
        return False
    with transaction.atomic():
        move(lever, State.RENDERING)
        lock.lock(lever, candidate["device_class"], battery, candidate.get("environment", {}))
    return True


def _no_effect(lever: Lever, parent: dict, candidate: dict) -> bool:
    """Only the place the weights are read from differs, and the weights are the same."""
    touched = sections(difference(lever.candidate.parsed(), lever.parent.parsed()))
    return touched == ["model"] and parent["digests"].get("weights") == candidate["digests"].get("weights")


# -- rendering and timing -------------------------------------------------------------------------------------------


def groups_of(lever: Lever):
    """The render groups this lever waits for; repeated clips only matter to one that claims to be bit-identical."""
    # By what they hold: a batch stands at its first sentence's place, and others of it may be covered by an earlier look than that one.
    mine = RenderGroup.objects.filter(
        draw_key=lever.draw.key, configuration__in=list(identity.arms(lever)), renders__sentence__in=stages.covered(lever)
    ).distinct()
    own = (
        mine
        if lever.wanted["claims_identical"]
        else mine.filter(renders__repetition=0, renders__replicate__lt=plan_of(lever).replicates).distinct()
    )
    return RenderGroup.objects.filter(Q(pk__in=own.values("pk")) | Q(pk__in=controls.groups(lever, plan_of(lever)).values("pk")))


def _rendered(lever: Lever) -> bool:
    waiting = groups_of(lever).exclude(state__in=Leased.SETTLED)
    if waiting.exists():
        stuck = waiting.exclude(error="").filter(state=Leased.State.QUEUED).first()
        trouble(lever, f"Rendering is held up: {stuck.error}" if stuck else "")
        return False
    plan = plan_of(lever)
    with transaction.atomic():
        if plan.timed and not stages.taken(lever):
            move(lever, State.TIMING)
            against_parent(lever).start()
            history.note(lever, f"all clips rendered; {plan.timing.blocks} timed blocks follow")
            bell.ring_after_commit()
        else:
            _to_scoring(lever)
    return True


def _timed(lever: Lever) -> bool:
    """A contended block is void and is run again, three times in all."""
    blocks = against_parent(lever)
    with transaction.atomic():
        if why := blocks.again():
            history.note(lever, f"a timed block is void ({why}); it is run again")
            bell.ring_after_commit()
    if not blocks.settled():
        return False
    with transaction.atomic():
        _to_scoring(lever)
    return True


# -- scoring and the automatic look ---------------------------------------------------------------------------------


def _to_scoring(lever: Lever) -> None:
    move(lever, State.SCORING)
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
            trouble(lever, measured.held_up(waiting))
            return False
    case, facts = evidence.automatic(lever)
    decision = decide.decide(case)
    plan = plan_of(lever)
    if decision.reasons[0] == "human_votes_pending":
        return open_listening(lever, plan, facts)
    opened = any(e.state == decide.OPEN for e in case.endpoints)  # what only a benefit leaves open, more sentences can't settle
    if decision.verdict == decide.INCONCLUSIVE and case.evidence_complete and opened and not case.final_look:
        return _go_on(lever, plan, facts)
    with transaction.atomic():
        move(lever, State.SETTLED)
        judge(lever, keep_look(lever, Look.Kind.AUTOMATIC, facts["look"], facts), decision)
        look_closer(lever)
    return True


def _go_on(lever: Lever, plan: policy.Plan, facts: dict) -> bool:
    """Undecided at a look that is not the last one: the sentences of the next one are rendered."""
    with transaction.atomic():
        move(lever, State.RENDERING)
        keep_look(lever, Look.Kind.AUTOMATIC, facts["look"], facts)
        lock.ask_for_clips(lever, plan, facts["look"])
        read = f"look {facts['look']} of {facts['looks']} at {facts['sentences']} sentences"
        history.note(lever, f"{read}: not decided yet; more are rendered")
        bell.ring_after_commit()
    return True


STEPS: dict[str, Callable[[Lever], bool]] = {
    State.CHECKING: _check,
    State.RENDERING: _rendered,
    State.TIMING: _timed,
    State.SCORING: _scored,
    State.LISTENING: heard,
}
