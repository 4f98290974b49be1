"""Casting a vote: once per trial, whoever sends it how often. Undoing the last one."""

from __future__ import annotations

import uuid
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from listening import allocate, listened
from listening.models import Pair, Rater, Study, Trial, Vote
from listening.signals import vote_cast
from synth.models import Sentence

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


@dataclass(frozen=True)
class Shown:
    """What a vote has to know of its trial: read in one statement, because a hundred raters may answer at once."""

    trial: int
    side: int
    since: datetime
    pair: int
    kind: str
    identical: bool
    study: int
    lengths_s: tuple[float, float]


@dataclass(frozen=True)
class Taken:
    """A stored vote: whether it is new, and what it was on."""

    new: bool
    shown: Shown


def cast(listener: uuid.UUID, vote_id: uuid.UUID, trial_key: str, answer: Answer) -> Taken:
    """Stores the vote of the rater with this key, once however often it comes. Raises NotTaken."""
    shown = _shown(listener, trial_key)
    if shown is None:
        raise NotTaken("not_yours", 404, "This comparison is not yours; reload the page.")
    tags = _checked(answer, shown)
    log, now = listened.kept(answer.log), timezone.now()
    row = {
        "id": vote_id, "trial": shown.trial, "choice": answer.choice, "strength": answer.strength, "tags": tags, "log": log, "cast_at": now,
        "doubt": listened.doubt(log, shown.lengths_s, (now - shown.since).total_seconds()), "build": settings.VERSION,
        "glitches": min(int(log["glitches"]), 32_000),
    }  # fmt: skip
    try:
        return Taken(_store(shown, row), shown)
    except IntegrityError:
        # The place of a lapsed trial went to somebody else. So it is for a control, too, or this answer would tell it from a test.
        raise NotTaken("too_late", 409, "Somebody else answered this comparison while it waited.") from None


def _store(shown: Shown, row: dict[str, Any]) -> bool:
    """Trial and vote in one transaction. False when this very vote was there already. Raises NotTaken, IntegrityError."""
    try:
        if not _write(shown, row):
            raise NotTaken("answered", 409, "This comparison was answered already, or is closed.")
        transaction.on_commit(lambda: vote_cast.send_robust(sender=Vote, study=shown.study))
    except (IntegrityError, NotTaken):
        known = Vote.objects.filter(pk=row["id"]).values_list("trial_id", flat=True).first()
        if known is None:
            raise
        if known != shown.trial:
            raise NotTaken("id_reused", 409, "This answer's number belongs to another comparison; reload the page.") from None
        return False  # it came before, or its twin was a moment faster
    return True


# The statements of a vote are written out: building them anew for each costs ten times what the database needs to run them.
_T, _P, _V = Trial._meta.db_table, Pair._meta.db_table, Vote._meta.db_table
_READ = f"""
SELECT t.id, t.tested_side, t.created_at, p.id, p.kind, p.reference_id = p.tested_id, p.study_id, p.shorter_s, p.longer_s
FROM {_T} t JOIN {Rater._meta.db_table} r ON r.id = t.rater_id JOIN {_P} p ON p.id = t.pair_id
WHERE t.key = %s AND r.key = %s AND r.erased_at IS NULL AND r.screened_out_at IS NULL
"""
# An answer to a lapsed trial counts if its slot is still free: the unique slot decides, not we.
_TAKE = f"""
UPDATE {_T} SET state = 'voted' WHERE id = %s AND (state IN ('open', 'ahead') OR (state = 'lapsed' AND undeliverable = 0))
AND EXISTS (SELECT 1 FROM {Study._meta.db_table} y WHERE y.id = %s AND y.open)
AND EXISTS (SELECT 1 FROM {Rater._meta.db_table} r WHERE r.id = rater_id AND r.erased_at IS NULL AND r.screened_out_at IS NULL)
"""  # noqa: S608 - names of our own tables


def _shown(listener: uuid.UUID, key: str) -> Shown | None:
    with connection.cursor() as cursor:
        cursor.execute(_READ, [key, Rater._meta.get_field("key").get_db_prep_value(listener, connection)])
        row = cursor.fetchone()
    if row is None:
        return None
    trial, side, since, pair, kind, identical, study, *lengths = row
    since = since if since.tzinfo else since.replace(tzinfo=UTC)
    return Shown(trial, side, since, pair, kind, bool(identical), study, (lengths[0], lengths[1]))


def _write(shown: Shown, row: dict[str, Any]) -> bool:
    """Takes the trial and stores the vote, both or neither; False where the trial can't be taken. Raises IntegrityError."""
    fields = [Vote._meta.get_field(name) for name in row]
    into = f"INSERT INTO {_V} ({', '.join(f.column for f in fields)})"
    places = ", ".join("%s" for _ in fields)
    values = [f.get_db_prep_save(value, connection) for f, value in zip(fields, row.values(), strict=True)]
    take = [shown.trial, shown.study]
    if connection.vendor == "postgresql":  # one statement is a transaction by itself, and three ways to the server less
        whole = transaction.atomic() if connection.in_atomic_block else nullcontext()
        with whole, connection.cursor() as cursor:
            cursor.execute(f"WITH taken AS ({_TAKE} RETURNING id) {into} SELECT {places} FROM taken", [*take, *values])
            return bool(cursor.rowcount)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_TAKE, take)
        if not cursor.rowcount:
            return False
        cursor.execute(f"{into} VALUES ({places})", values)
        return True


def _characters(shown: Shown) -> int:
    return len(Sentence.objects.get(pair=shown.pair).text)


def _mine(rater: Rater, key: str) -> Trial:
    trial = rater.trials.filter(key=key).select_related("pair__study").first()
    if trial is None:
        raise NotTaken("not_yours", 404, "This comparison is not yours; reload the page.")
    return trial


def _checked(answer: Answer, shown: Shown) -> list[dict[str, Any]]:
    """The answer's tags, once everything in it is what it may be. Raises NotTaken."""
    if answer.choice not in Vote.Choice.values:
        raise NotTaken("bad_choice", 422, "Choose left, same or right.")
    if answer.strength not in Vote.Strength.values or (answer.strength and answer.choice == Vote.Choice.SAME):
        raise NotTaken("bad_strength", 422, "Say slightly or clearly, and only of a side that is better.")
    tags = listened.tags(answer.tags, _characters(shown) if answer.tags else 0)
    if tags is None:
        raise NotTaken("bad_tags", 422, "These remarks are none this page can send.")
    return tags


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
