"""Raters: how they came, what they agreed to, how well they know the language."""

from __future__ import annotations

import secrets
import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from listening.models.panels import Panel
from synth.models import Clip


def token() -> str:
    """An unguessable name for a link; 128 bits."""
    return secrets.token_urlsafe(16)


class Invitation(models.Model):
    """A link that lets people into a panel until it expires, is revoked or is used up."""

    token = models.CharField(max_length=32, unique=True, default=token)
    panel = models.ForeignKey(Panel, on_delete=models.PROTECT)
    note = models.CharField(max_length=200, blank=True)
    max_raters = models.PositiveIntegerField(default=50)
    answers_wanted = models.PositiveIntegerField(null=True, blank=True, help_text="A rater is done after so many; all there is when empty.")
    return_url = models.CharField(
        max_length=300, blank=True, help_text="Where a crowd platform wants its people back; {code} is filled in."
    )
    code_complete = models.CharField(max_length=40, blank=True, help_text="Codes the platform gave; made here when empty.")
    code_screened = models.CharField(max_length=40, blank=True)
    code_full = models.CharField(max_length=40, blank=True)
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
        return "full" if self.raters.filter(screened_out_at=None).count() >= self.max_raters else ""


class Rater(models.Model):
    """A listener, known by a random name only - and, if a crowd platform sent them, by the name that platform uses."""

    key = models.UUIDField(unique=True, default=uuid.uuid4)
    panel = models.ForeignKey(Panel, on_delete=models.PROTECT, related_name="raters")
    invitation = models.ForeignKey(Invitation, on_delete=models.PROTECT, related_name="raters")
    platform = models.CharField(max_length=20, blank=True)
    external_id = models.CharField(max_length=100, blank=True)
    external_study = models.CharField(max_length=100, blank=True)
    interface = models.CharField(max_length=12, blank=True, help_text="Language of the pages.")
    created_at = models.DateTimeField(default=timezone.now)
    screened_out_at = models.DateTimeField(null=True, blank=True)
    screened_out_for = models.CharField(max_length=20, blank=True)
    sound_checked_at = models.DateTimeField(null=True, blank=True)
    headphones = models.BooleanField(null=True, help_text="What they said; advisory.")
    headphone_check = models.JSONField(default=list, blank=True, help_text="Right answers of each try; advisory.")
    practised_at = models.DateTimeField(null=True, blank=True)
    breaks = models.PositiveSmallIntegerField(default=0, help_text="Breaks they came back from.")
    first = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="later",
        help_text="The same worker's first visit, under another study.",
    )
    erased_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["platform", "external_id", "external_study"], condition=~Q(external_id=""), name="a_crowd_worker_once"
            )
        ]

    @property
    def person(self) -> int:
        """Who this is, whatever visit: the primary key of their first."""
        return self.first_id or self.pk

    def visits(self) -> models.QuerySet[Rater]:
        """All that this person has been here: a crowd worker who came for two studies is one listener."""
        return Rater.objects.filter(Q(pk=self.person) | Q(first=self.person))


class Consent(models.Model):
    """What a rater agreed to, with the version of the text."""

    rater = models.ForeignKey(Rater, on_delete=models.CASCADE, related_name="consents")
    version = models.CharField(max_length=32)
    language = models.CharField(max_length=8)
    agreed_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["rater", "version"], name="one_consent_per_version")]


class Word(models.Model):
    """A recorded word of the qualification: which of two was said? Asked once two native speakers approved it."""

    panel = models.ForeignKey(Panel, on_delete=models.PROTECT, related_name="words")
    clip = models.ForeignKey(Clip, on_delete=models.PROTECT, related_name="+")
    said = models.CharField(max_length=60)
    other = models.CharField(max_length=60)
    contrast = models.CharField(max_length=60, blank=True, help_text="What tells them apart, as in retroflex/dental.")
    approved_by = models.ManyToManyField(settings.AUTH_USER_MODEL, blank=True, related_name="+")
    retired_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["panel", "clip"], name="a_word_once")]


class Qualification(models.Model):
    """That a rater knows the panel's language: heard in a short test, or only said. Holds for 90 days."""

    class Method(models.TextChoices):
        TESTED = "tested"
        DECLARED = "self-declared"

    rater = models.ForeignKey(Rater, on_delete=models.CASCADE, related_name="qualifications")
    method = models.CharField(max_length=16, choices=Method.choices)
    right = models.PositiveSmallIntegerField(default=0)
    asked = models.PositiveSmallIntegerField(default=0)
    passed = models.BooleanField()
    at = models.DateTimeField(default=timezone.now)


class Exclusion(models.Model):
    """A rater whose votes are not used, by somebody's decision beside the rules of the plans. Payment is another matter."""

    rater = models.ForeignKey(Rater, on_delete=models.CASCADE, related_name="exclusions")
    rule = models.CharField(max_length=40)
    details = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)
    lifted_at = models.DateTimeField(null=True, blank=True)
