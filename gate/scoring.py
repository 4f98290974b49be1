"""Measuring clips in batches: between two readings of the canaries, leased like renders, thrown away whole when anything changed.

A batch: claim a clip, measure it, store it as *not yet counting*, again; at the end the canaries are read once more, and only when they
are what they always were does the batch - and with it every measurement in it - count (Measurement.usable).
"""

from __future__ import annotations

import logging
import time
import uuid
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import F, Max, Min
from django.utils import timezone

from gate import history, recognisers, site_policy
from gate.metrics import asr, battery, cer, defects, repeatability
from gate.models import Battery, Canary, Lever, Measurement, Scorer, ScoringBatch
from gate.statistics.results import finite
from synth import clips, pcm, queue
from synth.heart import Heart
from synth.models import Clip, Leased, Render, Sentence, TimedBlock

log = logging.getLogger("earwitness.score")

CANARIES = 10
MOST_CLIPS, MOST_S = 40, 180.0
#: A reading of the canaries is good for the next batch of the same process when that follows at once.
FRESH_S = 30.0
AGAIN_AFTER = timedelta(seconds=30)
TRIED_AGAIN = timedelta(days=1)
State = ScoringBatch.State


class Changed(Exception):
    """A canary is not transcribed as it always was."""


@dataclass(frozen=True)
class Ears:
    """A battery's recognisers, loaded."""

    battery: Battery
    first: asr.Recogniser
    second: asr.Recogniser | None

    def score(self, clip: Clip, sentence: Sentence) -> battery.Scores:
        sound = clips.samples(clip)  # it was checked when it came: one that can't be read now is the storage's fault
        references = sentence.spoken_refs or [sentence.text]
        return battery.score(
            sound.samples, sound.sample_rate, references, sentence.language, self.first, self.second, making(clip, sentence)
        )

    def transcripts(self, clip: Clip, language: str) -> list[str]:
        sound = clips.samples(clip)
        heard = [self.first] + ([self.second] if self.second else [])
        return [r.transcribe(sound.samples, sound.sample_rate, language).text for r in heard]


def making(clip: Clip, sentence: Sentence) -> battery.Making:
    """What the engines said of this sound; of several renders with the same samples, any that hit the cap counts."""
    figures = [r.figures for r in Render.objects.filter(clip=clip, sentence=sentence)]
    seams = next((f["seams"] for f in figures if isinstance(f.get("seams"), list) and f["seams"]), [])
    return battery.Making(any(f.get("hit_cap") is True for f in figures), tuple(s for s in seams if isinstance(s, int)))


def battery_for(recogniser: str, second: str) -> Battery:
    """The battery these recognisers make on this host. Raises recognisers.Unavailable or ModuleNotFoundError."""
    names = recognisers.identity(recogniser, settings.MODELS), recognisers.identity(second, settings.MODELS) if second else ""
    found, _ = Battery.objects.get_or_create(
        identity=battery.identity(*names), defaults={"recogniser": recogniser, "second_recogniser": second}
    )
    return found


def a_block_runs_here() -> bool:
    """A timed pass wants the machine for itself; scoring waits. Only a worker on this host counts."""
    return TimedBlock.objects.filter(
        state=Leased.State.LEASED, lease_until__gt=timezone.now(), worker__name=settings.WORKER_NAME
    ).exists()  # fmt: skip


def waiting(now: datetime):
    return Measurement.objects.filter(queue.available(now)).order_by("pk")


def able(scorer: Scorer, now: datetime) -> tuple[Battery, str] | None:
    """The battery and language of the oldest waiting clip that this host can measure; notes on the scorer's row why it can't."""
    trouble = ""
    by_age = waiting(now).order_by().values("identity").annotate(oldest=Min("pk")).order_by("oldest")
    for identity in by_age.values_list("identity", flat=True):
        named = Battery.objects.filter(identity=identity).first()
        try:
            mine = battery_for(named.recogniser, named.second_recogniser) if named else None
        except (recognisers.Unavailable, ModuleNotFoundError, OSError) as error:
            trouble = str(error)
            continue
        if mine is None or mine.identity != identity:
            here = mine.identity if mine else battery.VERSION
            trouble = f"Clips wait for other metrics than this host has: it measures with {here}, they were promised {identity}."
            continue
        if _refused(scorer, identity, now):
            trouble = scorer.trouble
            continue
        oldest = waiting(now).filter(identity=identity).select_related("sentence").first()
        if oldest is not None:
            return mine, oldest.sentence.language
    if trouble != scorer.trouble:
        Scorer.objects.filter(pk=scorer.pk).update(trouble=trouble)
    return None


def _refused(scorer: Scorer, identity: str, now: datetime) -> bool:
    """Whether this host measures unsteadily with the battery; after a day it may try again."""
    found = scorer.spreads.get(identity, {})
    return bool(found.get("refused")) and now.timestamp() - found.get("at", 0) < TRIED_AGAIN.total_seconds()


# -- canaries ----------------------------------------------------------------------------------------------------------


def canaries(ears: Ears, language: str) -> tuple[list[Canary], list[Canary]]:
    """The fixed recordings of this battery and language, and those just made: the first clips to be measured become them, up to ten."""
    made_now: list[Canary] = []
    kept = Canary.objects.filter(battery=ears.battery, language=language).select_related("clip").order_by("pk")
    known = {c.clip_id for c in kept}
    found = [c for c in kept if c.retired_at is None]
    if len(found) >= CANARIES:
        return found, made_now
    measured = Measurement.objects.filter(identity=ears.battery.identity, sentence__language=language).exclude(clip__in=known)
    for row in measured.select_related("clip").order_by("pk")[: 3 * CANARIES]:
        if len(found) + len(made_now) >= CANARIES:
            break
        if row.clip_id in known:
            continue
        try:
            sound = clips.samples(row.clip)
        except (pcm.BadAudio, OSError):
            continue
        if row.clip.seconds > asr.PIECE_S or defects.failure(sound.samples, sound.sample_rate):
            continue
        known.add(row.clip_id)
        texts = ears.transcripts(row.clip, language)
        # Another scorer may have been first: then its reading is the one that must not change.
        row_, new = Canary.objects.get_or_create(battery=ears.battery, language=language, clip=row.clip, defaults={"transcripts": texts})
        (made_now if new else found).append(row_)
    return found, made_now


def listen_to_canaries(ears: Ears, language: str, fixed: list[Canary]) -> None:
    """Raises Changed when one of them is not written down as it always was."""
    for canary in fixed:
        try:
            heard = ears.transcripts(canary.clip, language)
        except (pcm.BadAudio, OSError) as error:  # its file is gone: nothing is known of the recogniser, and another takes its place
            Canary.objects.filter(pk=canary.pk).update(retired_at=timezone.now())
            history.note(None, f"canary {canary.pk} can't be read any more ({type(error).__name__}) and is retired")
            continue
        if heard != canary.transcripts:
            log.error("canary %s used to be transcribed as %r and now is %r", canary.pk, canary.transcripts, heard)
            # What it says stays in the log: the clip may belong to a lever whose transcripts are sealed.
            raise Changed(f"canary {canary.pk} is not transcribed as it always was (`manage.py canaries` lists and retires them)")


# -- batches -----------------------------------------------------------------------------------------------------------


_fresh: dict[tuple[int, str], float] = {}


def run() -> ScoringBatch | None:
    """One batch of whatever waits and this host can measure; None when there is nothing. The row says how it ended."""
    now = timezone.now()
    scorer, _ = Scorer.objects.update_or_create(name=settings.SCORER_NAME, defaults={"last_seen": now})
    if a_block_runs_here() or not waiting(now).exists():
        return None
    kind = able(scorer, now)
    if kind is None:
        return None
    mine, language = kind
    try:
        second = recognisers.load(mine.second_recogniser, settings.MODELS) if mine.second_recogniser else None
        ears = Ears(mine, recognisers.load(mine.recogniser, settings.MODELS), second)
    except Exception as error:  # noqa: BLE001 - a model that can't be loaded is this host's trouble, told on its row
        log.exception("the recognisers could not be loaded")
        Scorer.objects.filter(pk=scorer.pk).update(trouble=f"{type(error).__name__}: {error}"[:1000])
        return None
    return _batch(scorer, ears, language)


def _batch(scorer: Scorer, ears: Ears, language: str) -> ScoringBatch:
    batch = ScoringBatch.objects.create(scorer=scorer, battery=ears.battery, language=language, lease_until=timezone.now() + queue.LEASE)
    lease: list[uuid.UUID | None] = [None]

    def beat() -> None:
        now = timezone.now()
        if not ScoringBatch.objects.filter(pk=batch.pk, state=State.OPEN).update(lease_until=now + queue.LEASE):
            raise queue.Lost
        Scorer.objects.filter(pk=scorer.pk).update(last_seen=now, doing=f"measuring clips in {language}")
        if lease[0]:
            try:
                queue.beat(Measurement, lease[0], now)
            except queue.Lost:
                pass  # between two clips; storing the result will tell

    heart = Heart(beat, (queue.Lost,), at_end=lambda: connection.close())  # the thread's own connection
    heart.start()
    try:
        older, new = canaries(ears, language)
        fixed = older + new
        if time.monotonic() - _fresh.pop((ears.battery.pk, language), -1e9) > FRESH_S:
            listen_to_canaries(ears, language, older)
        steady = _steady(scorer, ears, fixed)
        if steady:
            _measure_all(batch, ears, language, lease)
        while a_block_runs_here() and not heart.lost:
            time.sleep(2)  # the batch stays open; the last reading must not disturb a timed pass
        listen_to_canaries(ears, language, fixed)
        if ScoringBatch.objects.filter(pk=batch.pk, state=State.OPEN).update(state=State.SOUND, closed_at=timezone.now()):
            _fresh[ears.battery.pk, language] = time.monotonic()
            if steady:
                Scorer.objects.filter(pk=scorer.pk).update(trouble="")
    except Changed as error:
        void(batch, f"The recogniser on {scorer.name} changed: {error}.")
    except Exception as error:  # noqa: BLE001 - a scorer that is down is not a bad clip: told, and what it measured is not believed
        log.exception("a batch of measurements broke off")
        void(batch, f"The scorer on {scorer.name} broke off: {type(error).__name__}: {error}."[:1000])
    finally:
        heart.stop()
        Scorer.objects.filter(pk=scorer.pk).update(doing="", last_seen=timezone.now())
    batch.refresh_from_db()
    if batch.clips:
        history.note(None, f"{scorer.name} {throughput(batch)}")
    return batch


def _steady(scorer: Scorer, ears: Ears, fixed: list[Canary]) -> bool:
    """Five calls on one canary, once a host and battery: a metric that wanders by a fifth of its margin refuses the battery."""
    known = scorer.spreads.get(ears.battery.identity)
    if not fixed or (known is not None and not known.get("refused")):
        return True
    clip = min((c.clip for c in fixed), key=lambda c: c.seconds)
    sentence = Measurement.objects.filter(clip=clip, identity=ears.battery.identity).select_related("sentence")[0].sentence
    found = repeatability.spreads(lambda: ears.score(clip, sentence))
    unsteady = repeatability.unsteady(found, _tightest_margins(ears.battery.identity))
    trouble = ""
    if unsteady:
        what = ", ".join(f"{name} by {found[name]:.3g}" for name in unsteady)
        trouble = f"Five measurements of one clip differ too much on this host ({what}): it measures nothing with this battery."
    scorer.spreads[ears.battery.identity] = (
        {name: finite(v) for name, v in found.items()} | {"at": time.time()} | ({"refused": unsteady} if unsteady else {})
    )
    scorer.trouble = trouble
    scorer.save(update_fields=["spreads", "trouble"])
    return not unsteady


def _tightest_margins(identity: str) -> dict[str, float]:
    """Of the policy and the plans that are not settled yet."""
    tightest = site_policy.current().margins.model_dump()
    for lever in Lever.objects.exclude(state=Lever.State.SETTLED).exclude(plans=None):
        body = lever.plan.body if lever.plan else {}
        if body.get("metrics") == identity:
            tightest = {name: min(value, body["margins"][name]) for name, value in tightest.items()}
    return tightest


def _measure_all(batch: ScoringBatch, ears: Ears, language: str, lease: list[uuid.UUID | None]) -> None:
    begin = time.monotonic()
    rows = Measurement.objects.filter(identity=ears.battery.identity, sentence__language=language).order_by("pk")
    # Not what comes meanwhile: a lever whose clips are all measured should not wait for another's.
    rows = rows.filter(pk__lte=rows.aggregate(newest=Max("pk"))["newest"] or 0)
    for _ in range(MOST_CLIPS):
        if (
            time.monotonic() - begin > MOST_S
            or a_block_runs_here()
            or not ScoringBatch.objects.filter(pk=batch.pk, state=State.OPEN).exists()
        ):
            return
        unit = queue.claim(rows, timezone.now(), batch=batch)
        if unit is None:
            return
        lease[0] = unit.lease
        try:
            _measure(batch, ears, unit)
        finally:
            lease[0] = None


def _measure(batch: ScoringBatch, ears: Ears, unit: Measurement) -> None:
    begin = time.perf_counter()
    try:
        scores = ears.score(unit.clip, unit.sentence)
    except Exception as error:  # noqa: BLE001 - not the clip's fault: it is tried again, and again
        log.exception("measuring clip %s failed", unit.clip_id)
        final = isinstance(error, cer.InvalidReference)  # no scorer will ever do better
        try:
            queue.fail(Measurement, unit.lease, timezone.now(), f"the scorer failed: {type(error).__name__}: {error}", final=final)
        except queue.Lost:
            pass
        return
    wall = time.perf_counter() - begin

    def store(measured: Measurement) -> None:
        measured.scores, measured.seconds, measured.batch = asdict(scores), wall, batch
        measured.save(update_fields=["scores", "seconds", "batch"])

    try:
        with transaction.atomic():  # the batch's row first, as in `void`: two orders of locking would wait for each other
            counted = ScoringBatch.objects.filter(pk=batch.pk, state=State.OPEN).update(
                clips=F("clips") + 1, audio_s=F("audio_s") + scores.duration_s, wall_s=F("wall_s") + wall
            )
            if not counted:
                raise queue.Lost  # the batch was given up meanwhile; nothing may be added to it
            queue.finish(Measurement, unit.lease, timezone.now(), store)
    except queue.Lost:
        try:
            queue.give_back(Measurement, unit.lease, "")
        except queue.Lost:
            pass
    except DatabaseError as error:  # scores that can't be stored are this clip's trouble, not the batch's
        log.exception("the scores of clip %s can't be stored", unit.clip_id)
        queue.fail(Measurement, unit.lease, timezone.now(), f"its scores can't be stored: {error}")


def void(batch: ScoringBatch, why: str) -> bool:
    """Throws a batch away: what it measured is measured again. False when it was settled already."""
    now = timezone.now()
    with transaction.atomic():
        if not ScoringBatch.objects.filter(pk=batch.pk, state=State.OPEN).update(state=State.VOID, closed_at=now, error=why[:2000]):
            return False
        again = {
            "state": Leased.State.QUEUED, "due_at": now + AGAIN_AFTER, "rung_at": None, "error": why, "lease": None, "lease_until": None,
            "settled_at": None, "batch": None, "scores": {},
        }  # fmt: skip
        mine = Measurement.objects.filter(batch=batch)
        # Only the clip that was being measured may be to blame; the others get their attempt back.
        mine.filter(state=Leased.State.DONE).update(attempts=F("attempts") - 1, **again)
        held = mine.filter(state=Leased.State.LEASED)
        held.filter(attempts__gte=queue.ATTEMPTS).update(state=Leased.State.FAILED, error=why, settled_at=now, lease=None)
        held.update(**again)
    Scorer.objects.filter(pk=batch.scorer_id).update(trouble=why)
    log.warning(why)
    return True


def give_up_lapsed(now: datetime) -> None:
    """Voids the batches whose scorers fell silent: nobody can say whether their canaries would still be the same."""
    for batch in ScoringBatch.objects.filter(state=State.OPEN, lease_until__lt=now).select_related("scorer"):
        void(batch, f"The scorer on {batch.scorer.name} fell silent in the middle of a batch.")


def throughput(batch: ScoringBatch) -> str:
    """One line for people: clips, seconds of sound, how fast."""
    pace = f"{batch.audio_s / batch.wall_s:.1f} s of sound a second" if batch.wall_s else ""
    ended = "" if batch.state == State.SOUND else f"; void: {batch.error}"
    return f"measured {batch.clips} clips, {batch.audio_s:.0f} s of sound in {batch.wall_s:.0f} s ({pace}){ended}"


def recent(scorer: Scorer) -> str:
    """One line on the scorer's latest sound batches."""
    latest = list(scorer.batches.filter(state=State.SOUND, clips__gt=0).order_by("-pk")[:20])
    clips_, audio, wall = (sum(getattr(b, name) for b in latest) for name in ("clips", "audio_s", "wall_s"))
    return f"{clips_} clips, {audio / wall:.1f} s of sound a second" if wall else ""
