"""Rows of synthesis: what is to be rendered, by whom, and what came of it. Knows nothing of levers or raters."""

from __future__ import annotations

import hashlib

from django.db import models
from django.utils import timezone

from synth import configuration as schema


class Configuration(models.Model):
    """An immutable system, named by the digest of its canonical JSON."""

    digest = models.CharField(max_length=64, unique=True)
    name = models.CharField(max_length=80)
    body = models.JSONField(help_text="As written, names included; the digest is taken over its canonical form.")
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.name} ({self.digest[:12]})"

    @classmethod
    def of(cls, parsed: schema.Configuration) -> Configuration:
        """The row of this configuration; the first name it was given stays."""
        body = parsed.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return cls.objects.get_or_create(digest=parsed.digest(), defaults={"name": parsed.name, "body": body})[0]

    def parsed(self) -> schema.Configuration:
        return schema.parse(self.body)


class Sentence(models.Model):
    """A text to speak. Its identity is the digest of its lenient normal form, so spellings of one sentence are one row."""

    digest = models.CharField(max_length=32, unique=True)
    language = models.CharField(max_length=8)
    text = models.TextField()
    spoken_refs = models.JSONField(default=list, blank=True)

    def __str__(self) -> str:
        return self.text


class Worker(models.Model):
    """A machine that renders, as it last described itself."""

    name = models.CharField(max_length=120, unique=True)
    device_class = models.CharField(max_length=120)
    environment = models.JSONField(default=dict)
    first_seen = models.DateTimeField(default=timezone.now)
    last_seen = models.DateTimeField(default=timezone.now)
    loaded = models.CharField(max_length=64, blank=True, help_text="Digest of the configuration its child holds.")
    refuses = models.JSONField(default=dict, help_text="Digests of configurations it can't run, with why, since it said hello.")
    doing = models.CharField(max_length=200, blank=True)

    def __str__(self) -> str:
        return self.name


class Leased(models.Model):
    """A unit of work whose row is the truth: every transition is one compare-and-set UPDATE (synth.queue)."""

    class State(models.TextChoices):
        QUEUED = "queued"
        LEASED = "leased"
        DONE = "done"
        FAILED = "failed"

    state = models.CharField(max_length=8, choices=State.choices, default=State.QUEUED)
    lease = models.UUIDField(null=True, blank=True, unique=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField(default=timezone.now)
    rung_at = models.DateTimeField(null=True, blank=True)
    error = models.TextField(blank=True)
    settled_at = models.DateTimeField(null=True, blank=True)

    #: States in which nothing more will come.
    SETTLED = (State.DONE, State.FAILED)

    class Meta:
        abstract = True


class Preflight(Leased):
    """One configuration tried on a worker before anything is promised: does it load, and does every rule do something?"""

    configuration = models.OneToOneField(Configuration, on_delete=models.PROTECT)
    language = models.CharField(max_length=8, default="en")
    device_class = models.CharField(max_length=120, blank=True, help_text="Only on such a worker; any when empty.")
    worker = models.ForeignKey(Worker, null=True, blank=True, on_delete=models.SET_NULL)
    report = models.JSONField(default=dict)
    sample = models.ForeignKey("Clip", null=True, blank=True, on_delete=models.PROTECT, help_text="A word of its voice; in no test.")


class RenderGroup(Leased):
    """Renders leased, run and retried together: one, unless the configuration batches."""

    configuration = models.ForeignKey(Configuration, on_delete=models.PROTECT)
    draw_key = models.CharField(max_length=64)
    place = models.PositiveIntegerField(help_text="Place of the first sentence in the draw's order.")
    device_class = models.CharField(max_length=120, blank=True)
    worker = models.ForeignKey(Worker, null=True, blank=True, on_delete=models.SET_NULL)

    class Meta:
        indexes = [models.Index(fields=["state", "due_at"]), models.Index(fields=["draw_key", "place"])]


class Clip(models.Model):
    """Sound, content-addressed: the FLAC file by its sha256, the float32 PCM it was made from by another."""

    pcm_sha256 = models.CharField(max_length=64, unique=True)
    file_sha256 = models.CharField(max_length=64)
    sample_rate = models.PositiveIntegerField()
    samples = models.PositiveIntegerField()
    created_at = models.DateTimeField(default=timezone.now)

    @property
    def seconds(self) -> float:
        return self.samples / self.sample_rate


class Voice(models.Model):
    """A recording that a voice is cloned from. Configurations name it by the sha256 of its sound."""

    name = models.CharField(max_length=80, unique=True)
    clip = models.OneToOneField(Clip, on_delete=models.PROTECT)
    text = models.TextField(blank=True, help_text="What is said in it.")
    consent = models.CharField(max_length=300, help_text="Whose voice it is, and that they agreed to its being cloned.")
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.name


class Render(models.Model):
    """configuration x sentence x replicate x repetition within a draw. A failed clip is a result, not a gap."""

    class Outcome(models.TextChoices):
        PENDING = ""
        MADE = "made"
        EMPTY = "empty"
        ERROR = "error"

    group = models.ForeignKey(RenderGroup, on_delete=models.CASCADE, related_name="renders")
    configuration = models.ForeignKey(Configuration, on_delete=models.PROTECT)
    sentence = models.ForeignKey(Sentence, on_delete=models.PROTECT)
    draw_key = models.CharField(max_length=64)
    replicate = models.PositiveSmallIntegerField(default=0)
    repetition = models.PositiveSmallIntegerField(default=0, help_text="0; 1 = once more for determinism; 2 = another seed.")
    seed = models.PositiveBigIntegerField()
    outcome = models.CharField(max_length=8, choices=Outcome.choices, default=Outcome.PENDING, blank=True)
    clip = models.ForeignKey(Clip, null=True, blank=True, on_delete=models.PROTECT)
    figures = models.JSONField(default=dict)
    error = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["draw_key", "configuration", "sentence", "replicate", "repetition"], name="one_render_of_each")
        ]


class TimedBlock(Leased):
    """One A-B-B-A sequence on one machine: `first` is A (the parent), `second` is B."""

    first = models.ForeignKey(Configuration, on_delete=models.PROTECT, related_name="+")
    second = models.ForeignKey(Configuration, on_delete=models.PROTECT, related_name="+")
    draw_key = models.CharField(max_length=64)
    number = models.PositiveSmallIntegerField()
    sentences = models.JSONField(help_text="[{sentence, text, language, seed}] in the order they are spoken.")
    device_class = models.CharField(max_length=120, blank=True)
    worker = models.ForeignKey(Worker, null=True, blank=True, on_delete=models.SET_NULL)
    contended = models.JSONField(default=dict, help_text="Other programs seen above the limit, per pass.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["draw_key", "first", "second", "number"], name="one_block_of_each")]


class Pass(models.Model):
    """One configuration's run within a timed block, in a fresh process, its warm-up discarded."""

    block = models.ForeignKey(TimedBlock, on_delete=models.CASCADE, related_name="passes")
    place = models.PositiveSmallIntegerField(help_text="0..3 in A-B-B-A.")
    configuration = models.ForeignKey(Configuration, on_delete=models.PROTECT)
    clips = models.JSONField(help_text="[{sentence, wall_s, audio_s, pcm_sha256}]")
    figures = models.JSONField(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["block", "place"], name="one_pass_per_place")]


class Diagnosis(Leased):
    """A closer look at one system or two, asked for by an engineer: shown, and never read by a verdict."""

    class Kind(models.TextChoices):
        SWEEP = "sweep", "batch sizes"
        CADENCE = "cadence", "streaming cadence and pre-roll"
        FORCED = "forced", "teacher-forced comparison"
        COMPONENTS = "components", "times of components"

    kind = models.CharField(max_length=12, choices=Kind.choices)
    first = models.ForeignKey(Configuration, on_delete=models.PROTECT, related_name="+")
    second = models.ForeignKey(Configuration, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    draw_key = models.CharField(max_length=64)
    asked = models.JSONField(default=dict, help_text="sizes of batches, or intervals in seconds.")
    sentences = models.JSONField(help_text="[{sentence, text, language, seed}]")
    device_class = models.CharField(max_length=120, blank=True)
    worker = models.ForeignKey(Worker, null=True, blank=True, on_delete=models.SET_NULL)
    report = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)


#: What is leased to workers, by the name it has on the wire.
UNITS: dict[str, type[Leased]] = {"preflight": Preflight, "render": RenderGroup, "block": TimedBlock, "diagnosis": Diagnosis}


def seed_of(draw_key: str, sentence: str, replicate: int, salt: str = "") -> int:
    """31-bit seed, the same for both arms and never one constant for all sentences (statistics.md 1.4)."""
    return int.from_bytes(hashlib.sha256(f"{draw_key}:{sentence}:{replicate}{salt}".encode()).digest()[:4], "big") >> 1
