"""Character error rate on normalised text."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from rapidfuzz.distance import Levenshtein

from gate.metrics import textnorm

IDENTITY = f"cer/{textnorm.IDENTITY}"


class InvalidReference(ValueError):
    """A reference with nothing to say after normalisation: refused at import, never scored."""


@dataclass(frozen=True)
class CharacterErrors:
    """Edits in code points of the strict normal forms, single spaces included (metrics.md 2.3).

    `cer` may exceed 1, `capped` may not; the gate uses `capped`. `no_space`: without spaces, which are inaudible. `lenient`: spellings
    of one sound forgiven; it hides real errors. `edits` and `reference_length` let any other average be computed.
    """

    substitutions: int
    deletions: int
    insertions: int
    edits: int
    reference_length: int
    reference_spaces: int
    cer: float
    capped: float
    no_space: float
    lenient: float


def _rate(reference: str, hypothesis: str) -> float:
    return Levenshtein.distance(reference, hypothesis) / len(reference) if reference else 0.0


def character_errors(reference: str, hypothesis: str, language: str) -> CharacterErrors:
    """Errors of a transcript against what should have been said. Raises InvalidReference for an empty normal form."""
    ref, hyp = (textnorm.normalise(text, language) for text in (reference, hypothesis))
    if not ref:
        raise InvalidReference(f"the reference {reference!r} is empty after normalisation")
    if ref == hyp:
        return CharacterErrors(0, 0, 0, 0, len(ref), ref.count(" "), 0.0, 0.0, 0.0, 0.0)
    kinds = Counter(tag for tag, _, _ in Levenshtein.editops(ref, hyp).as_list())
    edits = kinds.total()
    return CharacterErrors(
        substitutions=kinds["replace"], deletions=kinds["delete"], insertions=kinds["insert"], edits=edits,
        reference_length=len(ref), reference_spaces=ref.count(" "), cer=edits / len(ref), capped=min(1.0, edits / len(ref)),
        no_space=_rate(ref.replace(" ", ""), hyp.replace(" ", "")),
        lenient=_rate(textnorm.soften(ref), textnorm.soften(hyp)),
    )  # fmt: skip
