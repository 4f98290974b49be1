"""Rows of listening: who hears which pair, and what they answered. Knows sound, nothing of verdicts."""

from __future__ import annotations

import secrets
import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from synth.models import Clip, Sentence


def token() -> str:
    """An unguessable name for a link; 128 bits."""
    return secrets.token_urlsafe(16)


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
    open = models.BooleanField(default=True)
    created_at = models.DateTimeField(default=timezone.now)


class Pair(models.Model):
    """Two recordings of one sentence. Gains (dB) bring both to one loudness; both are treated or neither."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="pairs")
    sentence = models.ForeignKey(Sentence, on_delete=models.PROTECT)
    reference = models.ForeignKey(Clip, on_delete=models.PROTECT, related_name="+")
    tested = models.ForeignKey(Clip, on_delete=models.PROTECT, related_name="+")
    gain_reference = models.FloatField(default=0.0)
    gain_tested = models.FloatField(default=0.0)
    loudness_matched = models.BooleanField(default=False)
    first_side = models.PositiveSmallIntegerField(help_text="Side of the tested recording in even slots: 0 left, 1 right.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["study", "sentence", "tested"], name="one_pair_of_each")]


class Invitation(models.Model):
    """A link that lets people into a panel until it expires, is revoked or is used up."""

    token = models.CharField(max_length=32, unique=True, default=token)
    panel = models.ForeignKey(Panel, on_delete=models.PROTECT)
    note = models.CharField(max_length=200, blank=True)
    max_raters = models.PositiveIntegerField(default=50)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)

    def why_closed(self) -> str:
        """'' while it lets people in; else expired, revoked or full."""
        if self.revoked_at:
            return "revoked"
        if self.expires_at < timezone.now():
            return "expired"
        return "full" if self.raters.count() >= self.max_raters else ""


class Rater(models.Model):
    """A listener, known by a random name only."""

    key = models.UUIDField(unique=True, default=uuid.uuid4)
    panel = models.ForeignKey(Panel, on_delete=models.PROTECT, related_name="raters")
    invitation = models.ForeignKey(Invitation, on_delete=models.PROTECT, related_name="raters")
    created_at = models.DateTimeField(default=timezone.now)
    sound_checked_at = models.DateTimeField(null=True, blank=True)
    headphones = models.BooleanField(null=True, help_text="What they said; advisory.")


class Consent(models.Model):
    """What a rater agreed to, with the version of the text."""

    rater = models.ForeignKey(Rater, on_delete=models.CASCADE, related_name="consents")
    version = models.CharField(max_length=32)
    language = models.CharField(max_length=8)
    agreed_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["rater", "version"], name="one_consent_per_version")]


class Trial(models.Model):
    """A pair shown to a rater. The slot constraint, not the order of queries, keeps a pair within its quota."""

    class State(models.TextChoices):
        OPEN = "open"
        VOTED = "voted"
        LAPSED = "lapsed"

    key = models.CharField(max_length=32, unique=True, default=token)
    pair = models.ForeignKey(Pair, on_delete=models.CASCADE, related_name="trials")
    rater = models.ForeignKey(Rater, on_delete=models.CASCADE, related_name="trials")
    slot = models.PositiveSmallIntegerField()
    tested_side = models.PositiveSmallIntegerField(help_text="0 left, 1 right.")
    state = models.CharField(max_length=8, choices=State.choices, default=State.OPEN)
    left_key = models.CharField(max_length=32, unique=True, default=token)
    right_key = models.CharField(max_length=32, unique=True, default=token)
    created_at = models.DateTimeField(default=timezone.now)
    lease_until = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["pair", "slot"], condition=Q(state__in=["open", "voted"]), name="one_trial_per_slot"),
            models.UniqueConstraint(fields=["pair", "rater"], name="a_rater_hears_a_pair_once"),
            models.UniqueConstraint(fields=["rater"], condition=Q(state="open"), name="one_open_trial_per_rater"),
        ]
        indexes = [models.Index(fields=["state", "lease_until"])]


class Vote(models.Model):
    """One answer. Its name comes from the browser, so that a resend inserts nothing; undo supersedes, nothing is deleted."""

    class Choice(models.TextChoices):
        LEFT = "left"
        SAME = "same"
        RIGHT = "right"

    id = models.UUIDField(primary_key=True)
    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="votes")
    choice = models.CharField(max_length=8, choices=Choice.choices)
    log = models.JSONField(default=dict)
    cast_at = models.DateTimeField(default=timezone.now)
    superseded_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["trial"], condition=Q(superseded_at=None), name="one_standing_vote_per_trial"),
            models.CheckConstraint(condition=Q(choice__in=["left", "same", "right"]), name="a_vote_is_left_same_or_right"),
        ]

    @property
    def score(self) -> int:
        """+1 the tested recording was preferred, -1 the reference, 0 neither."""
        if self.choice == self.Choice.SAME:
            return 0
        return 1 if (self.choice == self.Choice.RIGHT) == (self.trial.tested_side == 1) else -1


class Exclusion(models.Model):
    """A rater whose votes are not used, by a rule written down beforehand. Payment is another matter."""

    rater = models.ForeignKey(Rater, on_delete=models.CASCADE, related_name="exclusions")
    rule = models.CharField(max_length=40)
    details = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)
    lifted_at = models.DateTimeField(null=True, blank=True)
