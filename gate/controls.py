"""What controls are made from: sentences outside of the draw, spoken by the parent, in no test of the lever."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from django.db.models import QuerySet

from gate import draws, policy
from gate.corpora import BUNDLED
from gate.models import Corpus, Lever
from gate.sentences import sentence_digest
from listening import controls
from listening.pairs import Prepared
from listening.schedule import FOR_ASSAY
from synth import groups as synth_groups
from synth.models import Render, RenderGroup, Sentence, seed_of

__all__ = ["FOR_ASSAY", "ask_for_clips", "available", "groups", "pairs"]
#: Fewer recordings than these are not worth a spoken instruction: it is the seventh control that is made.
INSTRUCTED_FROM = 7


@cache
def _texts() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads((BUNDLED / "controls.json").read_text(encoding="utf-8"))
    return found


def _row(text: str, language: str) -> Sentence:
    digest = sentence_digest(text, language)
    return Sentence.objects.get_or_create(digest=digest, defaults={"language": language, "text": text})[0]


def available(language: str, corpus: Corpus | None = None, drawn: int = 0) -> int:
    """How many control sentences a lever can have: our own, or what its draw leaves of its corpus."""
    own = _texts().get(language)
    return len(own["sentences"]) if own else (max(0, corpus.sentences.count() - drawn) if corpus else 0)


def _sentences(lever: Lever, count: int) -> list[Sentence]:
    """What the draw left of its corpus, in the same strata: nobody can tell such a sentence from a test's. Ours where too few are left."""
    language = lever.corpus.language
    rest = list(lever.corpus.sentences.exclude(digest__in=lever.draw.order))
    if len(rest) < count and language in _texts():
        return [_row(text, language) for text in _texts()[language]["sentences"][:count]]
    return draws.draw(rest, min(count, len(rest)), f"{lever.draw.salt}:controls") if rest else []


def _instructions(lever: Lever, count: int) -> dict[str, Sentence]:
    own = _texts().get(lever.corpus.language)
    if not own or count < INSTRUCTED_FROM:
        return {}
    return {answer: _row(text, lever.corpus.language) for answer, text in own["instructions"].items()}


def _key(lever: Lever) -> str:
    return f"{lever.draw.key}:controls"


def _wanted(lever: Lever, plan: policy.Plan) -> int:
    return plan.listening.controls if plan.listening.required and not lever.wanted["claims_identical"] else 0


def ask_for_clips(lever: Lever, plan: policy.Plan) -> None:
    """Renders of the parent for what controls are made from; levers of one campaign share them."""
    count, key = _wanted(lever, plan), _key(lever)
    spoken = [*_sentences(lever, count), *_instructions(lever, count).values()] if count else []
    wanted = [synth_groups.Wanted(sentence, place, seed_of(key, sentence.digest, 0)) for place, sentence in enumerate(spoken)]
    synth_groups.ask(lever.parent, key, wanted, lever.plan.body["device_class"])


def groups(lever: Lever, plan: policy.Plan) -> QuerySet[RenderGroup]:
    """The render groups that this lever's controls wait for."""
    mine = RenderGroup.objects.filter(draw_key=_key(lever), configuration=lever.parent)
    return mine if _wanted(lever, plan) else mine.none()


def pairs(lever: Lever, plan: policy.Plan) -> list[Prepared]:
    """The control pairs; what could not be rendered makes none. Reads and writes sound: outside of a transaction."""
    count = _wanted(lever, plan)
    made = Render.objects.filter(draw_key=_key(lever), configuration=lever.parent, outcome=Render.Outcome.MADE).select_related("clip")
    clips = {r.sentence_id: r.clip for r in made}
    good = [(s.pk, clips[s.pk]) for s in _sentences(lever, count) if s.pk in clips] if count else []
    instructions = {answer: clips[s.pk] for answer, s in _instructions(lever, count).items() if s.pk in clips}
    return controls.make(good, instructions, plan.listening.assay_q_db)
