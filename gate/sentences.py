"""A sentence as people write it: its identity, and whether it can be judged by what a recogniser writes down."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from gate.metrics import textnorm, transcript
from synth.configuration import Refused

CURRENCY = re.compile(r"[%$€£¥₹₩]")
ABBREVIATION = re.compile(r"\b(?:Dr|Mr|Mrs|Ms|St|Prof|Jr|Sr|Inc|Ltd|Co|etc|vs|approx|[ap]\.m|e\.g|i\.e)\.|\b(?:[A-Z]\.){2,}")
SURROGATE = textnorm.SURROGATE


class Text(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str
    spoken_refs: list[str] = []


def sentence_digest(text: str, language: str) -> str:
    """Identity of a sentence: 16 hex digits over its lenient normal form without spaces, so that spellings are one sentence."""
    form = textnorm.normalise(text, language, lenient=True).replace(" ", "")
    return hashlib.sha256(f"{language}:{form}".encode()).hexdigest()[:16]


def list_digest(digests: Sequence[str]) -> str:
    """Names a list of sentences, order included."""
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def spoken(item: str | Text, language: str) -> Text:
    """The sentence as it can be judged. Raises Refused when there is nothing to say, or several ways to say it and none is given."""
    text = Text(text=item) if isinstance(item, str) else item
    shown = text.text if len(text.text) <= 60 else text.text[:57] + "..."
    try:
        form = textnorm.normalise(text.text, language)
    except textnorm.NotText as error:
        raise Refused("sentence_not_text", f"The sentence {shown!r} is not text: {error}.", "sentences") from error
    if not form:
        raise Refused("sentence_empty", f"The sentence {shown!r} has nothing to say: remove it.", "sentences")
    if (why := several_ways(text.text, language)) and not text.spoken_refs:
        raise Refused(
            "sentence_needs_spoken_refs",
            f"The sentence {shown!r} has {why} that can be read in several ways: write them out, or add spoken_refs.",
            "sentences",
        )
    for ref in text.spoken_refs:
        if SURROGATE.search(ref) or not textnorm.normalise(ref, language):
            raise Refused("sentence_empty", f"The spoken_refs of {shown!r} hold {ref!r}, which has nothing to say: remove it.", "sentences")
    return text


def several_ways(text: str, language: str) -> str:
    """What in the text a recogniser may rightly write otherwise - digits or signs, an abbreviation, words in another script - or ''."""
    if any(unicodedata.category(c) == "Nd" for c in text) or CURRENCY.search(text):
        return "digits or signs"
    if ABBREVIATION.search(text):
        return "abbreviations"
    return "words in two scripts" if 0.0 < transcript.script_share(text, language) < 1.0 else ""
