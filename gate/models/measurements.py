"""What was measured, with what, by which scorer."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from synth.models import Clip, Leased, Sentence


class Battery(models.Model):
    """A set of metrics, named by everything its scores depend on; scores of different batteries are never compared."""

    identity = models.CharField(max_length=800, unique=True)
    recogniser = models.CharField(max_length=200)
    second_recogniser = models.CharField(max_length=200, blank=True)
    first_named_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name_plural = "batteries"

    def __str__(self) -> str:
        return self.identity


class Scorer(models.Model):
    """A host that measures, as it last showed itself."""

    name = models.CharField(max_length=120, unique=True)
    last_seen = models.DateTimeField(default=timezone.now)
    doing = models.CharField(max_length=200, blank=True)
    trouble = models.TextField(blank=True, help_text="Why it measures nothing, or the last thing that went wrong.")
    spreads = models.JSONField(default=dict, help_text="battery -> metric -> range over five calls on one clip.")

    def __str__(self) -> str:
        return self.name


class ScoringBatch(models.Model):
    """Clips measured in one go by one scorer, between two readings of the canaries. Only a sound batch counts."""

    class State(models.TextChoices):
        OPEN = "open"
        SOUND = "sound"
        VOID = "void"

    scorer = models.ForeignKey(Scorer, on_delete=models.PROTECT, related_name="batches")
    battery = models.ForeignKey(Battery, on_delete=models.PROTECT)
    language = models.CharField(max_length=8)
    state = models.CharField(max_length=5, choices=State.choices, default=State.OPEN)
    lease_until = models.DateTimeField()
    opened_at = models.DateTimeField(default=timezone.now)
    closed_at = models.DateTimeField(null=True, blank=True)
    clips = models.PositiveIntegerField(default=0)
    audio_s = models.FloatField(default=0.0)
    wall_s = models.FloatField(default=0.0, help_text="Time spent on the clips, canaries aside.")
    error = models.TextField(blank=True)

    class Meta:
        verbose_name_plural = "scoring batches"
        indexes = [models.Index(fields=["state", "lease_until"])]


class Canary(models.Model):
    """A recording whose transcript must never change under one battery. Ten of each language are kept for good."""

    battery = models.ForeignKey(Battery, on_delete=models.PROTECT)
    language = models.CharField(max_length=8)
    clip = models.ForeignKey(Clip, on_delete=models.PROTECT)
    transcripts = models.JSONField(help_text="What each recogniser of the battery wrote down at first.")
    at = models.DateTimeField(default=timezone.now)
    retired_at = models.DateTimeField(null=True, blank=True, help_text="Since when it is not read any more.")

    class Meta:
        verbose_name_plural = "canaries"
        constraints = [models.UniqueConstraint(fields=["battery", "language", "clip"], name="a_canary_once")]


class Measurement(Leased):
    """What the metrics say of one clip of one sentence. Identical sound reuses it; another identity never does."""

    clip = models.ForeignKey(Clip, on_delete=models.PROTECT, related_name="measurements")
    sentence = models.ForeignKey(Sentence, on_delete=models.PROTECT)
    identity = models.CharField(max_length=800)
    scores = models.JSONField(default=dict)
    seconds = models.FloatField(null=True, help_text="Time the scoring took.")
    batch = models.ForeignKey(ScoringBatch, null=True, blank=True, on_delete=models.PROTECT, related_name="measurements")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["clip", "sentence", "identity"], name="one_measurement_of_each")]
        indexes = [models.Index(fields=["state", "due_at"])]

    @classmethod
    def usable(cls) -> models.QuerySet[Measurement]:
        """Measurements that count: made, and in a batch whose canaries were the same before and after."""
        sound = models.Q(batch=None) | models.Q(batch__state=ScoringBatch.State.SOUND)
        return cls.objects.filter(sound, state=Leased.State.DONE)


class Comparison(Leased):
    """How near a candidate's clip is to its parent's, where they should be the same sound. Shown; decides nothing."""

    first = models.ForeignKey(Clip, on_delete=models.PROTECT, related_name="+")
    second = models.ForeignKey(Clip, on_delete=models.PROTECT, related_name="+")
    figures = models.JSONField(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["first", "second"], name="one_comparison_of_each")]


class Judgement(Leased):
    """What a language model says of a clip, as it answered. Shown; decides nothing."""

    clip = models.ForeignKey(Clip, on_delete=models.PROTECT, related_name="judgements")
    sentence = models.ForeignKey(Sentence, on_delete=models.PROTECT)
    judge = models.CharField(max_length=200)
    scorecard = models.JSONField(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["clip", "sentence", "judge"], name="one_judgement_of_each")]
