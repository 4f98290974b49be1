"""Rows that are written once."""

from __future__ import annotations

from django.db import models


class AppendOnly(models.Model):
    """A row that is written once. Every way to change it through Django is refused."""

    class Meta:
        abstract = True

    class WrittenOnce(Exception):
        pass

    def save(self, *args, **kwargs):
        if self.pk is not None:
            raise self.WrittenOnce(f"a {self._meta.verbose_name} is never changed: write a new one")
        super().save(*args, **kwargs)

    def delete(self, *args, **kwargs):
        raise self.WrittenOnce(f"a {self._meta.verbose_name} is never deleted")


class WrittenOnceQuerySet(models.QuerySet):
    def update(self, **kwargs):
        raise AppendOnly.WrittenOnce(f"a {self.model._meta.verbose_name} is never changed: write a new one")

    def delete(self):
        raise AppendOnly.WrittenOnce(f"a {self.model._meta.verbose_name} is never deleted")

    def bulk_create(self, objs, *args, update_conflicts=False, **kwargs):
        if update_conflicts:
            raise AppendOnly.WrittenOnce(f"a {self.model._meta.verbose_name} is never changed: write a new one")
        return super().bulk_create(objs, *args, **kwargs)
