"""Pairs: two recordings of one sentence, made ready for listeners."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from django.utils import timezone

from listening import audio
from listening.models import Exclusion, Pair, Panel, Study, Trial, Vote
from synth import clips
from synth.models import Clip


@dataclass(frozen=True)
class Prepared:
    """A pair with the gains that bring it to one loudness, if both sides could be measured."""

    sentence: int
    reference: Clip
    tested: Clip
    gains: tuple[float, float] | None


def prepare(found: Sequence[tuple[int, Clip, Clip]]) -> list[Prepared]:
    """Reads and measures the sound; slow, so do it outside of a transaction."""
    return [Prepared(sentence, a, b, audio.gains(clips.samples(a), clips.samples(b))) for sentence, a, b in found]


def open_study(language: str, votes_per_pair: int, prepared: Sequence[Prepared], sample: Clip | None) -> Study:
    """Puts the pairs before the panel of this language."""
    panel, _ = Panel.objects.get_or_create(language=language)
    if sample and panel.sample_id is None:
        Panel.objects.filter(pk=panel.pk).update(sample=sample)
    study = Study.objects.create(panel=panel, votes_per_pair=votes_per_pair)
    for pair in prepared:
        first, second = pair.gains or (0.0, 0.0)
        Pair.objects.create(
            study=study, sentence_id=pair.sentence, reference=pair.reference, tested=pair.tested, gain_reference=first,
            gain_tested=second, loudness_matched=pair.gains is not None, first_side=secrets.randbelow(2),
        )  # fmt: skip
    return study


def close(study: Study) -> None:
    """No further trials; trials that are open lapse, votes stay."""
    Study.objects.filter(pk=study.pk).update(open=False)
    Trial.objects.filter(pair__study=study, state=Trial.State.OPEN).update(state=Trial.State.LAPSED)


@dataclass(frozen=True)
class Cast:
    """A vote that counts: +1 for the tested recording, 0 for neither, -1 for the reference."""

    rater: int
    sentence: int
    score: int


def _standing(study: Study):
    return Vote.objects.filter(trial__pair__study=study, superseded_at=None)


def votes_cast(study: Study) -> int:
    """A count: never sealed."""
    return _standing(study).count()


def standing_votes(study: Study) -> list[Cast]:
    """Votes of raters who are not excluded, in the order cast. Directions: for a look, not for a page."""
    out = Exclusion.objects.filter(lifted_at=None).values("rater")
    rows = _standing(study).exclude(trial__rater__in=out).select_related("trial__pair").order_by("cast_at", "pk")
    return [Cast(v.trial.rater_id, v.trial.pair.sentence_id, v.score) for v in rows]


def free_lapsed(now=None) -> int:
    """Trials nobody answered in time go back to the pool."""
    return Trial.objects.filter(state=Trial.State.OPEN, lease_until__lt=now or timezone.now()).update(state=Trial.State.LAPSED)
