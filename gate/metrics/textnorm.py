"""The strict normaliser v1 (and its lenient diagnostic) that both sides of a character error rate go through."""

from __future__ import annotations

import re
import unicodedata

IDENTITY = "textnorm-v1"

#: Characters that are never seen or heard.
IGNORABLE = re.compile("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff]")
SURROGATE = re.compile("[\ud800-\udfff]")
NUKTA = "\u093c"
DEVANAGARI_MATRA = "\u093e-\u094c\u0955-\u0957\u0962\u0963"
#: A nukta typed after the vowel sign belongs before it.
NUKTA_AFTER_MATRA = re.compile(f"([{DEVANAGARI_MATRA}]+)(\u093c)")
#: The letter A with a vowel sign, typed for the independent vowel.
INDEPENDENT = {
    "\u0905\u093e\u0947": "\u0913", "\u0905\u093e\u0948": "\u0914",
    "\u0905\u093e": "\u0906", "\u0905\u094b": "\u0913", "\u0905\u094c": "\u0914", "\u0905\u0949": "\u0911",
    "\u0906\u0947": "\u0913", "\u0906\u0948": "\u0914", "\u090f\u0947": "\u0910", "\u0905\u0945": "\u0972",
}  # fmt: skip
SPLIT_VOWEL = re.compile("|".join(INDEPENDENT))
COLON_AS_VISARGA = re.compile("(?<=[\u0900-\u097f]):(?=[\u0900-\u097f])")
DOUBLED_MARK = re.compile("([\u0900-\u0903])\\1+")
DEVANAGARI_DIGITS = {0x0966 + k: 0x30 + k for k in range(10)}
DEVANAGARI = re.compile("[\u0900-\u097f]")
#: Marks that may stand inside a word or a number: only then is it worth looking where.
OF_WORDS = re.compile("[,'\u2019\u02bc\u2018\u00b4`]")
APOSTROPHE = re.compile(r"(?<=[\w\u0300-\u036f\u0900-\u0d7f])['\u2019\u02bc\u2018\u00b4`](?=\w)")
GROUPING_COMMA = re.compile(r"(?<=\d),(?=\d{2,3}(?!\d)|\d{2,3},)")

#: Nasal consonant + virama before a stop of its own row is the same sound as an anusvara.
HOMORGANIC = re.compile(
    "\u0919\u094d(?=[\u0915-\u0918])|\u091e\u094d(?=[\u091a-\u091d])|\u0923\u094d(?=[\u091f-\u0922])"
    "|\u0928\u094d(?=[\u0924-\u0927])|\u092e\u094d(?=[\u092a-\u092d])"
)

#: A nukta, or one of the three letters that hold one in composed form.
WITH_NUKTA = re.compile("[\u093c\u0929\u0931\u0934]")


class _Letters(dict[int, int]):
    """code point -> itself when it is a letter, a mark or a digit, a Devanagari digit's ASCII one, else a space; filled as met."""

    def __missing__(self, point: int) -> int:
        if point in DEVANAGARI_DIGITS:
            return DEVANAGARI_DIGITS[point]
        self[point] = found = point if unicodedata.category(chr(point))[0] in "LMN" else 0x20
        return found


LETTERS = _Letters()


class NotText(ValueError):
    """The string holds half of a surrogate pair: it was decoded wrongly somewhere before."""


def _devanagari(text: str) -> str:
    if NUKTA_AFTER_MATRA.search(text):
        text = unicodedata.normalize("NFC", NUKTA_AFTER_MATRA.sub(r"\2\1", text))
    text = SPLIT_VOWEL.sub(lambda pair: INDEPENDENT[pair[0]], text)
    if ":" in text:
        text = COLON_AS_VISARGA.sub("\u0903", text)
    return DOUBLED_MARK.sub(r"\1", text)


def normalise(text: str, language: str, lenient: bool = False) -> str:
    """The normal form that errors are counted on: letters, marks and digits, single spaces, case folded.

    Marks (category M) stay: dropping them would compare bare consonants. `lenient` adds Hindi spellings of one sound;
    it hides real errors and never gates. Raises NotText for lone surrogates. Source: metrics.md 2.4.
    """
    if not text.isascii():  # none of this touches ASCII
        if SURROGATE.search(text):
            raise NotText(f"the text {text!r} holds half of a surrogate pair")
        text = unicodedata.normalize("NFKC", text)
        if IGNORABLE.search(text):  # what they stood between may compose now
            text = unicodedata.normalize("NFKC", IGNORABLE.sub("", text))
        if DEVANAGARI.search(text):
            text = _devanagari(text)
    text = text.casefold()
    if OF_WORDS.search(text):
        text = GROUPING_COMMA.sub("", APOSTROPHE.sub("", text))
    form = " ".join(text.translate(LETTERS).split())
    return soften(form) if lenient else form


def soften(form: str) -> str:
    """The lenient form of a strict one."""
    if not DEVANAGARI.search(form):
        return form
    if WITH_NUKTA.search(form):
        form = unicodedata.normalize("NFC", unicodedata.normalize("NFD", form).replace(NUKTA, ""))
    form = HOMORGANIC.sub("\u0902", form)
    return form.replace("\u0901", "\u0902").replace("\u0949", "\u093e").replace("\u0911", "\u0906")
