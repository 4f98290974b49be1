"""Pairs: two recordings of one sentence, made ready for listeners."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone

from listening import audio
from listening.models import Pair, Panel, Study, Trial, Vote
from synth import clips
from synth.models import Clip, Sentence


@dataclass(frozen=True)
class Prepared:
    """A pair with the gains that bring it to one loudness, if both sides could be measured."""

    sentence: int
    reference: Clip
    tested: Clip
    gains: tuple[float, float] | None
    kind: str = Pair.Kind.TEST
    damage: str = ""
    expected: str = ""


def prepared(sentence: int, reference: Clip, tested: Clip, **what: str) -> Prepared:
    """Reads and measures the sound; slow, so do it outside of a transaction."""
    return Prepared(sentence, reference, tested, audio.gains(clips.samples(reference), clips.samples(tested)), **what)


def open_study(language: str, votes_per_pair: int, found: Sequence[Prepared], sample: Clip | None, voice: Clip | None = None) -> Study:
    """Puts the pairs, tests and controls, before the panel of this language. `voice`: what a cloned voice was made from."""
    panel, _ = Panel.objects.get_or_create(language=language)
    if sample and panel.sample_id is None:
        Panel.objects.filter(pk=panel.pk).update(sample=sample)
    texts = dict(Sentence.objects.filter(pk__in=[p.sentence for p in found]).values_list("pk", "text"))
    pace = audio.pace_of([(max(p.reference.seconds, p.tested.seconds), len(texts[p.sentence])) for p in found])
    study = Study.objects.create(panel=panel, votes_per_pair=votes_per_pair, voice=voice, pace=pace)
    for pair in found:
        first, second = pair.gains or (0.0, 0.0)
        Pair.objects.create(
            study=study, sentence_id=pair.sentence, reference=pair.reference, tested=pair.tested, gain_reference=first,
            gain_tested=second, loudness_matched=pair.gains is not None, first_side=secrets.randbelow(2), 
            kind=pair.kind, damage=pair.damage, expected=pair.expected,
        )  # fmt: skip
    return study


def close(study: Study) -> None:
    """No further trials; trials that are open lapse, votes stay."""
    Study.objects.filter(pk=study.pk).update(open=False)
    Trial.objects.filter(pair__study=study, state__in=Trial.WAITING).update(state=Trial.State.LAPSED)


#: The rater of a vote, and who that is whatever visit.
PERSON = Coalesce("trial__rater__first", "trial__rater")


@dataclass(frozen=True)
class Cast:
    """A standing vote: score +1 for the tested recording, 0 for neither, -1 for the reference. `first`: the side heard first, or ''.

    `rater` is the person, whatever visit; `glitches` are the times the sound stuttered; `beside`: somebody
    else was asked in this one's place.
    """

    rater: int
    sentence: int
    score: int
    choice: str
    tested: str
    first: str
    tags: list[dict[str, Any]]
    glitches: int
    beside: bool


def _standing(study: Study):
    return Vote.objects.filter(trial__pair__study=study, trial__pair__kind=Pair.Kind.TEST, superseded_at=None)


def votes_cast(study: Study) -> int:
    """A count: never sealed. Of what fills the quota: where somebody else is asked in a rater's place, theirs is the one that counts."""
    return _standing(study).filter(trial__slot__lt=Trial.BESIDE).count()


def standing_votes(study: Study) -> list[Cast]:
    """All standing votes on tests, in the order cast; who counts is the caller's to say. Directions: for a look, not for a page."""
    return _cast(_standing(study))


def damage_name(q_db: float) -> str:
    return f"MNRU {q_db:g} dB"


def assay_votes(study: Study, q_db: float) -> list[Cast]:
    """Votes on the moderate damage of this size by the raters who judged this study, since it was opened, whosever control it was."""
    who = _standing(study).annotate(person=PERSON).values("person")
    rows = Vote.objects.annotate(person=PERSON).filter(
        trial__pair__kind=Pair.Kind.ASSAY, trial__pair__damage=damage_name(q_db), trial__pair__retired_at=None,
        trial__pair__study__panel=study.panel_id, person__in=who,
        superseded_at=None, cast_at__gte=study.created_at,
    )  # fmt: skip
    return _cast(rows)


def _cast(rows: QuerySet[Vote]) -> list[Cast]:
    sides = ("left", "right")
    return [
        Cast(
            v.trial.rater.person, v.trial.pair.sentence_id, v.score, v.choice, sides[v.trial.tested_side], v.log.get("first", ""), v.tags,
            v.glitches, v.trial.slot >= Trial.BESIDE,
        )
        for v in rows.select_related("trial__pair", "trial__rater").order_by("cast_at", "pk")
    ]  # fmt: skip


def free_lapsed(now=None) -> int:
    """Trials nobody answered in time go back to the pool."""
    return Trial.objects.filter(state__in=Trial.WAITING, lease_until__lt=now or timezone.now()).update(state=Trial.State.LAPSED)
