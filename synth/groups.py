"""Render groups: which renders are leased, run and retried together. One each, unless the configuration batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import IntegrityError, transaction

from synth.batches import in_batches
from synth.models import Configuration, Render, RenderGroup, Sentence


@dataclass(frozen=True)
class Wanted:
    """A render that is to be there: which sentence, at which place of the draw, with which seed."""

    sentence: Sentence
    place: int
    seed: int
    replicate: int = 0
    repetition: int = 0

    @property
    def identity(self) -> tuple[int, int, int]:
        return self.sentence.pk, self.replicate, self.repetition


def ask(configuration: Configuration, draw_key: str, wanted: Sequence[Wanted], device_class: str) -> None:
    """Has everything rendered that nobody asked for before. Two that ask at once ask for each render once."""
    batching = configuration.body.get("batching")
    wanted = list({w.identity: w for w in wanted}.values())  # a sentence may stand in two lists
    while missing := _missing(configuration, draw_key, wanted):
        # Replicates of a sentence are never spoken in one call.
        for layer in sorted({(w.replicate, w.repetition) for w in missing}):
            alike = [w for w in missing if (w.replicate, w.repetition) == layer]
            for together in in_batches(alike, batching, lambda w: w.sentence.text):
                _create(configuration, draw_key, together, device_class)


def _missing(configuration: Configuration, draw_key: str, wanted: Sequence[Wanted]) -> list[Wanted]:
    mine = Render.objects.filter(draw_key=draw_key, configuration=configuration)
    there = set(mine.values_list("sentence_id", "replicate", "repetition"))
    return [w for w in wanted if w.identity not in there]


def _create(configuration: Configuration, draw_key: str, together: Sequence[Wanted], device_class: str) -> None:
    """One group, whole or not at all: where another process asked for one of it a moment ago, the rest is grouped anew."""
    try:
        with transaction.atomic():
            group = RenderGroup.objects.create(
                configuration=configuration, draw_key=draw_key, place=together[0].place, device_class=device_class
            )
            for w in together:  # one call has one seed: its first sentence's
                Render.objects.create(
                    group=group, configuration=configuration, draw_key=draw_key, sentence=w.sentence,
                    replicate=w.replicate, repetition=w.repetition, seed=together[0].seed,
                )  # fmt: skip
    except IntegrityError:
        return
