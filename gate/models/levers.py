"""Levers, their locked plans, the sentences spent on them, what each look read and what was decided."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.utils import timezone

from gate.models.append_only import AppendOnly, WrittenOnceQuerySet
from listening.models import Study
from synth.models import Configuration, Sentence, seed_of


class Corpus(models.Model):
    """Where sentences come from."""

    name = models.CharField(max_length=120, unique=True)
    language = models.CharField(max_length=8)
    licence = models.CharField(max_length=80, blank=True)
    source = models.CharField(max_length=200, blank=True)
    revision = models.CharField(max_length=80, blank=True)
    sha256 = models.CharField(max_length=64)
    sentences = models.ManyToManyField(Sentence, related_name="corpora")
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.name


class Draw(AppendOnly):
    """The ordered sentences of one plan, or of one campaign of levers registered together. Drawn when the first plan is locked."""

    key = models.CharField(max_length=64, unique=True)
    corpus = models.ForeignKey(Corpus, on_delete=models.PROTECT)
    purpose = models.CharField(max_length=16)
    salt = models.CharField(max_length=64)
    order = models.JSONField(help_text="Sentence digests, in order.")
    list_sha256 = models.CharField(max_length=64)
    drawn_at = models.DateTimeField(default=timezone.now)
    objects = WrittenOnceQuerySet.as_manager()

    def sentences(self) -> list[Sentence]:
        found = {s.digest: s for s in Sentence.objects.filter(digest__in=self.order)}
        return [found[digest] for digest in self.order]

    def to_speak(self, count: int) -> list[dict[str, Any]]:
        """The first so many sentences as a worker is told them, outside of renders: {sentence, text, language, seed}."""
        return [
            {"sentence": s.digest, "text": s.text, "language": s.language, "seed": seed_of(self.key, s.digest, 0)}
            for s in self.sentences()[:count]
        ]


class Lever(models.Model):
    """One change on top of a parent configuration, and where its trial stands."""

    class State(models.TextChoices):
        CHECKING = "checking"
        RENDERING = "rendering"
        TIMING = "timing"
        SCORING = "scoring"
        LISTENING = "listening"
        SETTLED = "settled"

    slug = models.SlugField(max_length=80, unique=True)
    title = models.CharField(max_length=160)
    parent = models.ForeignKey(Configuration, on_delete=models.PROTECT, related_name="levers_on_it")
    candidate = models.ForeignKey(Configuration, on_delete=models.PROTECT, related_name="levers")
    corpus = models.ForeignKey(Corpus, on_delete=models.PROTECT)
    campaign = models.CharField(max_length=64, help_text="Levers of one campaign share a draw.")
    variant_of = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="variants")
    wanted = models.JSONField(help_text="The plan as asked for; locked as a Plan once the preflight is through.")
    warnings = models.JSONField(default=list)
    demonstration = models.BooleanField(default=False)
    state = models.CharField(max_length=12, choices=State.choices, default=State.CHECKING)
    problem = models.TextField(blank=True)
    draw = models.ForeignKey(Draw, null=True, blank=True, on_delete=models.PROTECT, related_name="levers")
    study = models.OneToOneField(Study, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)

    def __str__(self) -> str:
        return self.slug

    @property
    def plan(self) -> Plan | None:
        return self.plans.order_by("-number").first()

    @property
    def verdict(self) -> Verdict | None:
        return self.verdicts.order_by("-pk").first()


class Plan(AppendOnly):
    """All rules of one lever, written and hashed before evidence exists. An amendment is a new, dated plan."""

    lever = models.ForeignKey(Lever, on_delete=models.PROTECT, related_name="plans")
    number = models.PositiveSmallIntegerField(default=1)
    body = models.JSONField()
    digest = models.CharField(max_length=64)
    locked_at = models.DateTimeField(default=timezone.now)
    objects = WrittenOnceQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["lever", "number"], name="plans_are_numbered")]


class Use(AppendOnly):
    """A sentence spent on a lever; written before the first job goes out and never taken back."""

    draw = models.ForeignKey(Draw, on_delete=models.PROTECT)
    lever = models.ForeignKey(Lever, on_delete=models.PROTECT, related_name="uses")
    sentence = models.ForeignKey(Sentence, on_delete=models.PROTECT)
    purpose = models.CharField(max_length=16)
    at = models.DateTimeField(default=timezone.now)
    objects = WrittenOnceQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["lever", "draw", "sentence"], name="one_use_of_each")]


class Look(AppendOnly):
    """A planned moment at which evidence was read, and what it was. Between looks it is sealed."""

    class Kind(models.TextChoices):
        AUTOMATIC = "automatic"
        HUMAN = "human"

    plan = models.ForeignKey(Plan, on_delete=models.PROTECT, related_name="looks")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    number = models.PositiveSmallIntegerField()
    evidence = models.JSONField()
    evidence_sha256 = models.CharField(max_length=64)
    at = models.DateTimeField(default=timezone.now)
    objects = WrittenOnceQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["plan", "kind", "number"], name="each_look_once")]


class Verdict(AppendOnly):
    """What was decided, on what evidence, by which code. Never changed; a later one stands beside it."""

    lever = models.ForeignKey(Lever, on_delete=models.PROTECT, related_name="verdicts")
    plan = models.ForeignKey(Plan, on_delete=models.PROTECT)
    look = models.OneToOneField(Look, null=True, on_delete=models.PROTECT, related_name="verdict")
    verdict = models.CharField(max_length=16)
    reasons = models.JSONField()
    evidence = models.CharField(max_length=20, blank=True)
    code_version = models.CharField(max_length=40)
    at = models.DateTimeField(default=timezone.now)
    objects = WrittenOnceQuerySet.as_manager()


class AuditEntry(AppendOnly):
    """What happened, in plain words; `manage.py up` prints these as they come."""

    at = models.DateTimeField(default=timezone.now)
    lever = models.ForeignKey(Lever, null=True, blank=True, on_delete=models.PROTECT, related_name="history")
    actor = models.CharField(max_length=120, default="earwitness")
    text = models.TextField()
    objects = WrittenOnceQuerySet.as_manager()
