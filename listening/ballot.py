"""Casting a vote: once per trial, whoever sends it how often. Undoing the last one."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from listening import allocate, listened
from listening.models import Rater, Trial, Vote
from listening.signals import vote_cast

LOG_LIMIT = 4000
State = Trial.State


class NotTaken(Exception):
    """A vote that can't count: `code` for the browser, a sentence for the person."""

    def __init__(self, code: str, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code, self.status, self.sentence = code, status, sentence


@dataclass(frozen=True)
class Answer:
    """What somebody said of a trial: the choice; how sure; what was wrong, if they said; how they listened."""

    choice: str
    strength: str = ""
    tags: list[dict[str, Any]] = field(default_factory=list)
    log: dict[str, Any] = field(default_factory=dict)


def cast(rater: Rater, vote_id: uuid.UUID, trial_key: str, answer: Answer) -> bool:
    """Stores the vote; True when it is new, False when this very vote was there already. Raises NotTaken."""
    trial = _mine(rater, trial_key)
    tags = _checked(answer, trial)
    known = Vote.objects.filter(pk=vote_id).select_related("trial").first()
    if known is not None:
        return _same(known, trial)
    log = listened.kept(answer.log)
    pair, now = trial.pair, timezone.now()
    log["doubt"] = listened.doubt(log, max(pair.reference.seconds, pair.tested.seconds), (now - trial.created_at).total_seconds())
    try:
        with transaction.atomic():
            # An answer to a lapsed trial counts if its slot is still free: the unique slot decides, not we.
            open_ = Trial.objects.filter(pk=trial.pk, state__in=[State.OPEN, State.AHEAD, State.LAPSED], pair__study__open=True)
            if not open_.update(state=State.VOTED):
                raise NotTaken("answered", 409, "This comparison was answered already, or is closed.")
            Vote.objects.create(
                id=vote_id, trial=trial, choice=answer.choice, strength=answer.strength, tags=tags, log=log, cast_at=now,
                build=settings.VERSION,
            )  # fmt: skip
            transaction.on_commit(lambda: vote_cast.send_robust(sender=Vote, study=pair.study_id))
    except (IntegrityError, NotTaken) as error:
        known = Vote.objects.filter(pk=vote_id).select_related("trial").first()
        if known is not None:
            return _same(known, trial)  # its twin was a moment faster
        if isinstance(error, NotTaken):
            raise
        raise NotTaken("too_late", 409, "Somebody else answered this comparison while it waited.") from error
    return True


def _mine(rater: Rater, key: str) -> Trial:
    trial = rater.trials.filter(key=key).select_related("pair__sentence", "pair__reference", "pair__tested").first()
    if trial is None:
        raise NotTaken("not_yours", 404, "This comparison is not yours; reload the page.")
    return trial


def _checked(answer: Answer, trial: Trial) -> list[dict[str, Any]]:
    """The answer's tags, once everything in it is what it may be. Raises NotTaken."""
    if answer.choice not in Vote.Choice.values:
        raise NotTaken("bad_choice", 422, "Choose left, same or right.")
    if answer.strength not in Vote.Strength.values or (answer.strength and answer.choice == Vote.Choice.SAME):
        raise NotTaken("bad_strength", 422, "Say slightly or clearly, and only of a side that is better.")
    tags = listened.tags(answer.tags, len(trial.pair.sentence.text))
    if tags is None:
        raise NotTaken("bad_tags", 422, "These remarks are none this page can send.")
    return tags


def _same(known: Vote, trial: Trial) -> bool:
    if known.trial_id != trial.pk:
        raise NotTaken("id_reused", 409, "This answer's number belongs to another comparison; reload the page.")
    return False


def undo(rater: Rater, trial_key: str) -> Trial:
    """Takes the rater's last answer back: superseded, not deleted; its trial stands open again, what came after waits. Raises NotTaken."""
    trial = _mine(rater, trial_key)
    try:
        _take_back(rater, trial)
    except IntegrityError as error:  # another tab asked for the next comparison at this very moment
        raise NotTaken("too_late_to_undo", 409, "This answer can't be taken back any more.") from error
    trial.refresh_from_db()
    return trial


def _take_back(rater: Rater, trial: Trial) -> None:
    with transaction.atomic():
        Rater.objects.select_for_update().get(pk=rater.pk)
        last = (
            Vote.objects.filter(trial__rater=rater, superseded_at=None).order_by("-cast_at", "-pk").select_related("trial").first()
        )  # fmt: skip
        if last is None or last.trial_id != trial.pk or not trial.pair.study.open:
            raise NotTaken("too_late_to_undo", 409, "Only your last answer can be taken back, and only while its comparison is open.")
        if not Vote.objects.filter(pk=last.pk, superseded_at=None).update(superseded_at=timezone.now()):
            raise NotTaken("too_late_to_undo", 409, "This answer was taken back already.")
        # What stands open comes next; if that place is taken, it comes back as one that was left lying.
        waits = State.LAPSED if rater.trials.filter(state=State.AHEAD).exists() else State.AHEAD
        rater.trials.filter(state=State.OPEN).update(state=waits)
        if not Trial.objects.filter(pk=trial.pk, state=State.VOTED).update(state=State.OPEN, lease_until=timezone.now() + allocate.LEASE):
            raise NotTaken("too_late_to_undo", 409, "This answer can't be taken back any more.")
