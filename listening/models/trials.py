"""Trials and the votes on them."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from listening.models.panels import Pair
from listening.models.raters import Rater, token


class Trial(models.Model):
    """A pair shown to a rater. The slot constraint, not the order of queries, keeps a pair within its quota."""

    class State(models.TextChoices):
        OPEN = "open"
        AHEAD = "ahead"
        VOTED = "voted"
        LAPSED = "lapsed"

    #: States in which a trial holds its slot.
    HELD = (State.OPEN, State.AHEAD, State.VOTED)
    #: States in which it waits for an answer.
    WAITING = (State.OPEN, State.AHEAD)
    #: From this slot on a trial is outside of its pair's quota: its rater does not count, and somebody else is asked in their place.
    BESIDE = 10_000

    key = models.CharField(max_length=32, unique=True, default=token)
    pair = models.ForeignKey(Pair, on_delete=models.CASCADE, related_name="trials")
    rater = models.ForeignKey(Rater, on_delete=models.CASCADE, related_name="trials")
    slot = models.PositiveSmallIntegerField()
    tested_side = models.PositiveSmallIntegerField(help_text="0 left, 1 right.")
    state = models.CharField(max_length=8, choices=State.choices, default=State.OPEN)
    left_key = models.CharField(max_length=32, unique=True, default=token)
    right_key = models.CharField(max_length=32, unique=True, default=token)
    undeliverable = models.PositiveSmallIntegerField(default=0, help_text="How often its sound could not be loaded.")
    created_at = models.DateTimeField(default=timezone.now)
    lease_until = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["pair", "slot"], condition=Q(state__in=["open", "ahead", "voted"]), name="one_trial_per_slot"),
            models.UniqueConstraint(fields=["pair", "rater"], name="a_rater_hears_a_pair_once"),
            models.UniqueConstraint(fields=["rater"], condition=Q(state="open"), name="one_open_trial_per_rater"),
            models.UniqueConstraint(fields=["rater"], condition=Q(state="ahead"), name="one_trial_ahead_per_rater"),
        ]
        indexes = [models.Index(fields=["state", "lease_until"])]


class Vote(models.Model):
    """One answer. Its name comes from the browser, so that a resend inserts nothing; undo supersedes, nothing is deleted."""

    class Choice(models.TextChoices):
        LEFT = "left"
        SAME = "same"
        RIGHT = "right"

    class Strength(models.TextChoices):
        UNSAID = ""
        SLIGHTLY = "slightly"
        CLEARLY = "clearly"

    id = models.UUIDField(primary_key=True)
    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="votes")
    choice = models.CharField(max_length=8, choices=Choice.choices)
    strength = models.CharField(max_length=8, choices=Strength.choices, blank=True, default="")
    tags = models.JSONField(
        default=list, blank=True, help_text="[{side, word, tag}]: what was wrong; word is [start, end) in the sentence, or null."
    )
    log = models.JSONField(default=dict)
    doubt = models.CharField(max_length=12, blank=True, default="", help_text="Why the listening behind this answer is in doubt.")
    glitches = models.PositiveSmallIntegerField(default=0, help_text="How often the sound stuttered.")
    build = models.CharField(max_length=40, blank=True)
    cast_at = models.DateTimeField(default=timezone.now)
    superseded_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["trial"], condition=Q(superseded_at=None), name="one_standing_vote_per_trial"),
            models.CheckConstraint(condition=Q(choice__in=["left", "same", "right"]), name="a_vote_is_left_same_or_right"),
        ]
        indexes = [models.Index(fields=["cast_at"])]

    @property
    def score(self) -> int:
        """+1 the tested recording was preferred, -1 the reference, 0 neither."""
        if self.choice == self.Choice.SAME:
            return 0
        return 1 if (self.choice == self.Choice.RIGHT) == (self.trial.tested_side == 1) else -1
