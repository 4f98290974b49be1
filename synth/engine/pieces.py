"""Long text cut where a speaker would pause. Pure."""

from __future__ import annotations

import re

#: Where text may be cut, the best places first: after sentences, after clauses, between words.
CUTS = (r"(?<=[.!?…])\s+|(?<=[。！？।॥])\s*", r"(?<=[,;:])\s+|(?<=[、，；：])\s*", r"\s+")


def pieces(text: str, characters: int, cuts: tuple[str, ...] = CUTS) -> list[str]:
    """The text in as few pieces of at most `characters` as its cuts allow; a word longer than that stays whole."""
    text = text.strip()
    if len(text) <= characters or not cuts:
        return [text] if text else []
    made: list[str] = []
    for part in (p for p in re.split(cuts[0], text) if p and p.strip()):
        for piece in pieces(part, characters, cuts[1:]):
            # Scripts without spaces are joined without one.
            gap = " " if made and not re.search(r"[。！？、，；：]$", made[-1]) else ""
            if made and len(made[-1]) + len(gap) + len(piece) <= characters:
                made[-1] += gap + piece
            else:
                made.append(piece)
    return made
