"""The ledger: every locked plan and every verdict, in a chain of hashes."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from gate.models.append_only import AppendOnly, WrittenOnceQuerySet
from gate.models.levers import Lever


class LedgerEntry(AppendOnly):
    """One line of the ledger. Its hash covers the line and the hash before it: none can be changed or left out unseen."""

    number = models.PositiveIntegerField(unique=True)
    at = models.DateTimeField(default=timezone.now)
    kind = models.CharField(max_length=10, choices=[("plan", "plan"), ("verdict", "verdict")])
    lever = models.ForeignKey(Lever, on_delete=models.PROTECT, related_name="entries")
    body = models.JSONField()
    previous = models.CharField(max_length=64)
    sha256 = models.CharField(max_length=64)
    objects = WrittenOnceQuerySet.as_manager()

    class Meta:
        verbose_name = "ledger entry"
        verbose_name_plural = "ledger entries"
