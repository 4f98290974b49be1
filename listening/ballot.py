"""Casting a vote: once per trial, whoever sends it how often."""

from __future__ import annotations

import uuid
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from listening.models import Rater, Trial, Vote
from listening.signals import vote_cast

LOG_LIMIT = 4000


class NotTaken(Exception):
    """A vote that can't count: `code` for the browser, a sentence for the person."""

    def __init__(self, code: str, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code, self.status, self.sentence = code, status, sentence


def cast(rater: Rater, vote_id: uuid.UUID, trial_key: str, choice: str, log: dict[str, Any]) -> bool:
    """Stores the vote; True when it is new, False when this very vote was there already. Raises NotTaken."""
    if choice not in Vote.Choice.values:
        raise NotTaken("bad_choice", 422, "Choose left, same or right.")
    trial = Trial.objects.filter(key=trial_key, rater=rater).select_related("pair").first()
    if trial is None:
        raise NotTaken("not_yours", 404, "This comparison is not yours; reload the page.")
    known = Vote.objects.filter(pk=vote_id).select_related("trial").first()
    if known is not None:
        return _same(known, trial)
    try:
        with transaction.atomic():
            # An answer to a lapsed trial counts if its slot is still free: the unique slot decides, not we.
            if not Trial.objects.filter(pk=trial.pk, state__in=[Trial.State.OPEN, Trial.State.LAPSED], pair__study__open=True).update(
                state=Trial.State.VOTED
            ):
                raise NotTaken("answered", 409, "This comparison was answered already, or is closed.")
            Vote.objects.create(id=vote_id, trial=trial, choice=choice, log=log, cast_at=timezone.now())
            transaction.on_commit(lambda: vote_cast.send_robust(sender=Vote, study=trial.pair.study_id))
    except (IntegrityError, NotTaken) as error:
        known = Vote.objects.filter(pk=vote_id).select_related("trial").first()
        if known is not None:
            return _same(known, trial)  # its twin was a moment faster
        if isinstance(error, NotTaken):
            raise
        raise NotTaken("too_late", 409, "Somebody else answered this comparison while it waited.") from error
    return True


def _same(known: Vote, trial: Trial) -> bool:
    if known.trial_id != trial.pk:
        raise NotTaken("id_reused", 409, "This answer's number belongs to another comparison; reload the page.")
    return False
