"""Who may ask the API, and which process tends."""

from __future__ import annotations

import hashlib
import secrets

from django.db import models
from django.utils import timezone


class Token(models.Model):
    """A machine's key to the API; only its hash is kept."""

    class Kind(models.TextChoices):
        WORKER = "worker"
        READER = "reader"
        ENGINEER = "engineer"

    name = models.CharField(max_length=120, unique=True)
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.WORKER)
    sha256 = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(default=timezone.now)
    revoked_at = models.DateTimeField(null=True, blank=True)

    @classmethod
    def hashed(cls, secret: str) -> str:
        return hashlib.sha256(secret.encode()).hexdigest()

    @classmethod
    def issue(cls, name: str, kind: str) -> str:
        """Makes (or renews) the token of this name and returns its secret, which is shown once."""
        secret = f"ew_{secrets.token_urlsafe(32)}"
        cls.objects.update_or_create(name=name, defaults={"kind": kind, "sha256": cls.hashed(secret), "revoked_at": None})
        return secret


class Tending(models.Model):
    """The lease that keeps `manage.py tend` to one instance, however many are started."""

    name = models.CharField(max_length=40, unique=True, default="tend")
    holder = models.UUIDField()
    until = models.DateTimeField()
