"""From a spec to a lever in one transaction: everything is checked first, nothing is half-registered."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gate import comparable, controls, draws, history, planning, policy, site_policy, voices
from gate.models import Corpus, Lever
from gate.sentences import Text, list_digest, sentence_digest, spoken
from gate.specfile import plain
from synth import bell
from synth import configuration as schema
from synth.configuration import Refused, refusal
from synth.models import Configuration, Leased, Preflight, Sentence


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Sentences(Part):
    language: str
    texts: list[str | Text] = []
    corpus: str | None = None


class Spec(Part):
    """What an engineer writes: a slug, the parent, the candidate (whole, or as a `change` to the parent), sentences, the plan."""

    lever: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,47}$")
    title: str = Field("", max_length=160)
    parent: dict[str, Any] | str
    candidate: dict[str, Any] | None = None
    change: dict[str, Any] | None = None
    sentences: Sentences
    plan: dict[str, Any] = {}
    variant_of: str | None = None
    demonstration: bool = False


@dataclass(frozen=True)
class Checked:
    """A spec that can be taken, all of it."""

    spec: Spec
    parent: schema.Configuration
    candidate: schema.Configuration
    sentences: list[Text]
    digests: list[str]
    warnings: list[str]
    plan: policy.Plan


def _parent(spec: Spec) -> schema.Configuration:
    if isinstance(spec.parent, dict):
        return schema.parse(spec.parent, "parent")
    row = Configuration.objects.filter(name=spec.parent).order_by("-pk").first()
    if row is None:
        raise Refused(
            "unknown_parent", f"parent is {spec.parent!r}: no configuration of that name is registered; write it out instead.", "parent"
        )
    return row.parsed()


def _candidate(spec: Spec, parent: schema.Configuration) -> schema.Configuration:
    if (spec.candidate is None) == (spec.change is None):
        raise Refused(
            "candidate_or_change",
            "Give either candidate (a whole configuration) or change (sections that differ from the parent).",
            "candidate",
        )
    if spec.candidate is not None:
        return schema.parse(spec.candidate, "candidate")
    body = parent.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    body.pop("expect_bit_exact", None)
    return schema.parse({**body, "name": spec.lever, "parent": parent.name, "note": "", **(spec.change or {})}, "change")


def _sentences(spec: Spec) -> tuple[list[Text], list[str]]:
    language = spec.sentences.language
    if language not in schema.LANGUAGES:
        raise Refused(
            "unknown_language",
            f"sentences.language is {language!r}: use one of {', '.join(sorted(schema.LANGUAGES))}.",
            "sentences.language",
        )
    if (spec.sentences.corpus is None) == (not spec.sentences.texts):
        raise Refused("no_sentences", "sentences is empty: give texts, or the name of a corpus.", "sentences")
    if spec.sentences.corpus is not None:
        corpus = Corpus.objects.filter(name=spec.sentences.corpus).first()
        if corpus is None:
            raise Refused(
                "unknown_corpus", f"sentences.corpus is {spec.sentences.corpus!r}: there is no corpus of that name.", "sentences.corpus"
            )
        if corpus.language != language:
            raise Refused(
                "corpus_language",
                f"The corpus {corpus.name!r} is in {corpus.language!r}, sentences.language says {language!r}.",
                "sentences.language",
            )
        rows = list(corpus.sentences.all())
        return [Text(text=s.text, spoken_refs=s.spoken_refs) for s in rows], [s.digest for s in rows]
    texts = [spoken(item, language) for item in spec.sentences.texts]
    first: dict[str, str] = {}
    for text in texts:
        digest = sentence_digest(text.text, language)
        if digest in first:
            raise Refused(
                "duplicate_sentence", f"The sentence {text.text!r} is there twice (as {first[digest]!r}): remove one.", "sentences"
            )
        first[digest] = text.text
    return texts, list(first)


def systems(mapping: dict[str, Any]) -> tuple[Spec, schema.Configuration, schema.Configuration]:
    """A spec as written, with its parent and its candidate whole. Raises Refused."""
    plain(mapping)
    try:
        spec = Spec.model_validate(mapping)
    except ValidationError as error:
        raise refusal(error, "spec") from error
    parent = _parent(spec)
    return spec, parent, _candidate(spec, parent)


def check(mapping: dict[str, Any]) -> Checked:
    """Everything that can be refused without a worker. Raises Refused with one sentence."""
    spec, parent, candidate = systems(mapping)
    if Lever.objects.filter(slug=spec.lever).exists():
        raise Refused("slug_taken", f"lever is {spec.lever!r}: that name is taken; a re-try is a new lever with a new name.", "lever")
    for which, configuration in (("parent", parent), ("candidate", candidate)):
        comparable.seeds(configuration, which)
        voices.check(configuration, which)
    changes = schema.difference(candidate, parent)
    if not changes:
        raise Refused("candidate_equals_parent", "The candidate equals its parent: there is nothing to judge.", "candidate")
    plan = policy.parse(site_policy.filled(spec.plan))
    texts, digests = _sentences(spec)
    if plan.sentences is not None and plan.sentences > len(texts):
        raise Refused("too_few_sentences", f"plan.sentences is {plan.sentences}: only {len(texts)} are there.", "plan.sentences")
    if len(texts) < 2:
        raise Refused("too_few_sentences", "One sentence shows nothing: give at least two.", "sentences")
    drawn = plan.sentences or len(texts)
    if candidate.expect_bit_exact:  # settled by the hashes of all clips, or not at all
        plan = plan.model_copy(update={"looks": [1.0]})
    policy.check_reach(plan, drawn)
    _check_controls(plan, spec, len(texts) - drawn)
    comparable.streams(plan, parent, candidate)
    comparable.batches(plan, parent, candidate, drawn)
    touched = schema.sections(changes)
    warnings = []
    if drawn < plan.floor.sentences or drawn * plan.replicates < plan.floor.clips:
        floor = f"{plan.floor.sentences} sentences and {plan.floor.clips} clips"
        warnings.append(f"{drawn} sentences x {plan.replicates} are below the floor of {floor}: an endpoint can fail, none can pass.")
    elif (first := round(plan.looks[0] * drawn)) < plan.floor.sentences or first * plan.replicates < plan.floor.clips:
        warnings.append(f"The first look, at {first} sentences, is below the plan's floor: there an endpoint can fail, none can pass.")
    settled_by_hash = candidate.expect_bit_exact or spec.demonstration  # a demonstration says itself what it is worth
    if not settled_by_hash and (too_weak := planning.warning(plan, drawn)):
        warnings.append(too_weak)
    if len(touched) > 1:
        warnings.append(f"More than one section changes at once ({', '.join(touched)}): the verdict will be about all of them together.")
    return Checked(spec, parent, candidate, texts, digests, warnings, plan)


def _check_controls(plan: policy.Plan, spec: Spec, left: int) -> None:
    """A proof that the panel hears a damage needs sentences of its own."""
    heard, found = plan.listening, max(controls.available(spec.sentences.language), left)
    if heard.required and heard.assay and found < controls.FOR_ASSAY:
        raise Refused(
            "assay_unavailable",
            f"plan.listening.assay is on, but there are no control sentences in {spec.sentences.language!r} and the draw leaves {left} of "
            "its corpus: draw fewer, or set assay to false (the verdict is then at best provisional).",
            "plan.listening.assay",
        )


def _variant_of(spec: Spec) -> Lever | None:
    if spec.variant_of is None:
        return None
    found = Lever.objects.filter(slug=spec.variant_of).first()
    if found is None:
        raise Refused("unknown_lever", f"variant_of is {spec.variant_of!r}: there is no lever of that name.", "variant_of")
    return found


def _corpus(checked: Checked) -> Corpus:
    spec = checked.spec.sentences
    if spec.corpus is not None:
        return Corpus.objects.get(name=spec.corpus)
    sha = list_digest(checked.digests)
    corpus, made = Corpus.objects.get_or_create(
        name=f"list-{sha[:12]}", defaults={"language": spec.language, "sha256": sha, "source": f"spec of {checked.spec.lever}"}
    )
    if made:
        for text, digest in zip(checked.sentences, checked.digests, strict=True):
            row, _ = Sentence.objects.get_or_create(
                digest=digest, defaults={"language": spec.language, "text": text.text, "spoken_refs": text.spoken_refs}
            )
            corpus.sentences.add(row)
    return corpus


def _campaign(together: str, corpus: Corpus, plan: policy.Plan) -> str:
    """Levers registered together share a draw when they ask for the same one: same sentences, number and purpose."""
    asked = f"{corpus.pk}:{plan.sentences}:{plan.purpose}"
    return f"{together}-{hashlib.sha256(asked.encode()).hexdigest()[:8]}"


def want_preflight(configuration: Configuration, language: str, again: bool = False, device_class: str = "") -> None:
    """Has the configuration tried on a worker: once more if it failed before, or in any case `again`, on such a device."""
    row, _ = Preflight.objects.get_or_create(configuration=configuration, defaults={"language": language})
    settled = [Leased.State.FAILED, Leased.State.DONE] if again else [Leased.State.FAILED]
    Preflight.objects.filter(pk=row.pk, state__in=settled).update(
        state=Leased.State.QUEUED, attempts=0, due_at=timezone.now(), rung_at=None, error="", settled_at=None, lease=None,
        device_class=device_class,
    )  # fmt: skip


def _created(**fields: Any) -> Lever:
    """The row; a name that was taken a moment ago is refused as any taken one."""
    try:
        with transaction.atomic():
            return Lever.objects.create(**fields)
    except IntegrityError as error:
        raise Refused("slug_taken", f"lever is {fields['slug']!r}: that name was taken a moment ago; choose another.", "lever") from error


def _check_twice(levers: list[Lever]) -> None:
    """Two levers of one campaign that judge the same pair would be two attempts at once."""
    seen: dict[tuple[str, int, int], str] = {}
    for lever in levers:
        other = seen.setdefault((lever.campaign, lever.parent_id, lever.candidate_id), lever.slug)
        if other != lever.slug:
            raise Refused("registered_twice", f"{lever.slug} and {other} change the same thing on the same parent: register one.", "lever")


def register(mappings: Sequence[dict[str, Any]], user: Any = None) -> list[Lever]:
    """Registers levers; several at once are one campaign on one draw. All or none. Raises Refused."""
    with transaction.atomic():
        together = secrets.token_hex(6)
        levers = []
        for mapping in mappings:
            checked = check(mapping)
            spec, corpus = checked.spec, _corpus(checked)
            parent, candidate = Configuration.of(checked.parent), Configuration.of(checked.candidate)
            lever = _created(
                slug=spec.lever, title=spec.title or spec.lever, parent=parent, candidate=candidate, corpus=corpus,
                campaign=_campaign(together, corpus, checked.plan),
                wanted={
                    **checked.plan.model_dump(mode="json"),
                    "claims_identical": checked.candidate.expect_bit_exact,
                },
                variant_of=_variant_of(spec), warnings=checked.warnings, demonstration=spec.demonstration, created_by=user,
            )  # fmt: skip
            for configuration in (parent, candidate):
                want_preflight(configuration, spec.sentences.language)
            history.note(lever, f"registered; {parent.name} and {candidate.name} are tried on a worker", user)
            levers.append(lever)
        _check_twice(levers)
        for lever in levers:  # all are there now: those that share a draw are one campaign
            draws.check(
                draws.stock(lever.corpus, [x for x in levers if x.campaign == lever.campaign], lever.campaign, lever.wanted["purpose"]),
                policy.of(lever.wanted),
            )
        bell.ring_after_commit()
    return levers
