"""What a panel is asked to hear: studies, and their pairs of recordings."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.utils import timezone

from synth.models import Clip, Sentence


class Panel(models.Model):
    """The raters of one language."""

    language = models.CharField(max_length=8, unique=True)
    sample = models.ForeignKey(Clip, null=True, blank=True, on_delete=models.SET_NULL, help_text="Speech for the sound check.")

    def __str__(self) -> str:
        return self.language


class Study(models.Model):
    """Pairs that one panel judges. What they are for is nobody's business here."""

    panel = models.ForeignKey(Panel, on_delete=models.PROTECT, related_name="studies")
    votes_per_pair = models.PositiveSmallIntegerField()
    voice = models.ForeignKey(
        Clip, null=True, blank=True, on_delete=models.PROTECT, help_text="The recording a cloned voice was made from."
    )
    pace = models.FloatField(default=0.0, help_text="Seconds a character; listening copies are as long as it makes their text.")
    open = models.BooleanField(default=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name_plural = "studies"


class Pair(models.Model):
    """Two recordings of one sentence. Gains (dB) bring both to one loudness; both are treated or neither.

    Every kind but `test` has a known answer: they say how a rater listens, never what the tested system is worth.
    """

    class Kind(models.TextChoices):
        TEST = "test"
        IDENTICAL = "identical"
        OBVIOUS = "obvious"
        ASSAY = "assay"
        INSTRUCTION = "instruction"
        PRACTICE = "practice"

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="pairs")
    kind = models.CharField(max_length=12, choices=Kind.choices, default=Kind.TEST)
    sentence = models.ForeignKey(Sentence, on_delete=models.PROTECT)
    reference = models.ForeignKey(Clip, on_delete=models.PROTECT, related_name="+")
    tested = models.ForeignKey(Clip, on_delete=models.PROTECT, related_name="+")
    damage = models.CharField(max_length=40, blank=True, help_text="What was done to the tested recording of a control.")
    expected = models.CharField(max_length=8, blank=True, help_text="The answer a spoken instruction asks for.")
    gain_reference = models.FloatField(default=0.0)
    gain_tested = models.FloatField(default=0.0)
    loudness_matched = models.BooleanField(default=False)
    shorter_s = models.FloatField(null=True, help_text="Length of the shorter recording, s; kept here because every vote reads it.")
    longer_s = models.FloatField(null=True)
    first_side = models.PositiveSmallIntegerField(help_text="Side of the tested recording in even slots: 0 left, 1 right.")
    retired_at = models.DateTimeField(null=True, blank=True, help_text="Since when this control counts for nobody: good raters fail it.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["study", "sentence", "tested"], name="one_pair_of_each")]
        indexes = [models.Index(fields=["study", "kind"])]

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.shorter_s, self.longer_s = sorted((self.reference.seconds, self.tested.seconds))
        super().save(*args, **kwargs)
