"""The site's policy, a row for each version."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from gate.models.append_only import AppendOnly, WrittenOnceQuerySet


class Policy(AppendOnly):
    """Margins, floors and panels that plans have unless they say otherwise, and that caps are reckoned from."""

    body = models.JSONField()
    note = models.CharField(max_length=300)
    at = models.DateTimeField(default=timezone.now)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    objects = WrittenOnceQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "policies"
