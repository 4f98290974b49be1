"""Corpora: reading them from files, refusing what can't be spoken, and telling sentences that are nearly the same."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from django.db import transaction
from rapidfuzz.distance import Levenshtein

from gate.metrics import textnorm
from gate.models import Corpus
from gate.sentences import Text, sentence_digest, spoken
from synth.configuration import LANGUAGES, Refused
from synth.models import Sentence

BUNDLED = Path(__file__).resolve().parent / "corpora"
#: Two sentences are nearly the same when this much of their character 5-grams is, or so few edits lie between them.
GRAM, NEAR_JACCARD, NEAR_EDITS = 5, 0.8, 0.10
MOST_BYTES = 50 * 2**20


@dataclass(frozen=True)
class Line:
    """A sentence of a file and where it stands there."""

    number: int
    text: Text
    digest: str


# -- reading -----------------------------------------------------------------------------------------------------------


def _rows(data: bytes, name: str) -> Iterable[tuple[int, str, list[str]]]:
    """(line number, text, spoken alternatives) of a .txt, .csv or .jsonl file."""
    try:
        content = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise Refused("corpus_not_utf8", f"{name}, line {line}: it is not UTF-8 text; save the file as UTF-8.", "corpus") from error
    kind = Path(name).suffix.lower()
    if kind == ".jsonl":
        for number, line in enumerate(_lines(content), 1):
            if not line.strip():
                yield number, "", []  # refused where every kind's empty lines are
                continue
            try:
                found = json.loads(line)
                text, refs = found["text"], found.get("spoken_refs", [])
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
                raise Refused("corpus_line", f'{name}, line {number} is not an object with "text".', "corpus") from error
            yield number, text, refs
    elif kind == ".csv":
        reader = csv.DictReader(io.StringIO(content, newline=""))
        if not reader.fieldnames or "text" not in reader.fieldnames:
            raise Refused(
                "corpus_header",
                f"{name}, line 1: a CSV file needs a header with a column `text` (and `spoken_refs`, split by |).",
                "corpus",
            )
        yield from _csv_rows(reader, name)
    elif kind == ".txt":
        for number, line in enumerate(_lines(content), 1):
            yield number, line, []
    else:
        raise Refused("corpus_format", f"{name}: write a corpus as .txt (a sentence a line), .csv or .jsonl.", "corpus")


def _lines(content: str) -> list[str]:
    """Lines as an editor counts them: other separators that Unicode knows may stand inside a sentence."""
    return content.replace("\r\n", "\n").removesuffix("\n").split("\n") if content else []


def _csv_rows(reader: csv.DictReader[str], name: str) -> Iterable[tuple[int, str, list[str]]]:
    number = reader.line_num
    try:
        for row in reader:
            if reader.line_num > number + 1 and not any("\n" in (v or "") for v in row.values() if isinstance(v, str)):
                yield number + 1, "", []  # the reader passes over empty lines without a word
            number = reader.line_num
            if None in row:
                raise Refused(
                    "corpus_line",
                    f"{name}, line {number} has more cells than the header: put a text with a comma in quotation marks.",
                    "corpus",
                )
            yield number, row["text"] or "", [r for r in (row.get("spoken_refs") or "").split("|") if r.strip()]
    except csv.Error as error:
        raise Refused("corpus_line", f"{name}, line {reader.line_num + 1} can't be read as CSV: {error}.", "corpus") from error


def check_size(size: int, name: str) -> None:
    """Raises Refused for a file of too many bytes; a page asks before it reads."""
    if size > MOST_BYTES:
        raise Refused("corpus_too_large", f"{name} is larger than {MOST_BYTES // 2**20} MB: split it.", "corpus")


def read(data: bytes, name: str, language: str) -> list[Line]:
    """The sentences of a file. Raises Refused for the first line that is empty, twice there or can't be spoken, with its number."""
    if language not in LANGUAGES:
        raise Refused("unknown_language", f"language is {language!r}: use one of {', '.join(sorted(LANGUAGES))}.", "language")
    check_size(len(data), name)
    seen: dict[str, int] = {}
    lines = []
    for number, text, refs in _rows(data, name):
        if not isinstance(text, str) or not isinstance(refs, list) or not all(isinstance(r, str) for r in refs):
            raise Refused("corpus_line", f"{name}, line {number}: text is not a text, or spoken_refs not a list of texts.", "corpus")
        if not text.strip():
            raise Refused("corpus_line", f"{name}, line {number} is empty: remove it.", "corpus")
        if any(unicodedata.category(c) == "Cc" for c in text.strip()):
            raise Refused("corpus_line", f"{name}, line {number} holds a control character, which nobody can speak: remove it.", "corpus")
        try:
            item = spoken(Text(text=text.strip(), spoken_refs=refs), language)
        except Refused as error:
            raise Refused(error.code, f"{name}, line {number}: {error.message}", "corpus") from error
        digest = sentence_digest(item.text, language)
        if digest in seen:
            raise Refused("duplicate_sentence", f"{name}, line {number} says the same as line {seen[digest]}: remove one.", "corpus")
        seen[digest] = number
        lines.append(Line(number, item, digest))
    if not lines:
        raise Refused("corpus_empty", f"{name} holds no sentence.", "corpus")
    return lines


# -- near duplicates ---------------------------------------------------------------------------------------------------


def plain(text: str, language: str) -> str:
    """What near duplicates are told by: the lenient normal form without spaces."""
    return textnorm.normalise(text, language, lenient=True).replace(" ", "")


def _grams(form: str) -> frozenset[str]:
    return frozenset(form[k : k + GRAM] for k in range(max(1, len(form) - GRAM + 1)))


def _near(a: str, b: str, grams_a: frozenset[str], grams_b: frozenset[str]) -> bool:
    shared = len(grams_a & grams_b)
    if shared >= NEAR_JACCARD * len(grams_a | grams_b):
        return True
    most = int(NEAR_EDITS * max(len(a), len(b)))
    return Levenshtein.distance(a, b, score_cutoff=most) <= most


def near_duplicates(forms: Sequence[str], others: Sequence[str] | None = None) -> list[tuple[int, int]]:
    """Pairs (i, j) that are nearly the same: within `forms` (i < j), or of `forms` and `others`.

    Candidates share one of the rarest two thirds of a sentence's 5-grams, at which few others are looked up: whoever is within ten per
    cent of edits or shares four fifths of them must (an edit spoils five 5-grams, so a third of them survive).
    """
    mine, theirs = [_grams(f) for f in forms], None if others is None else [_grams(f) for f in others]
    pool = theirs if theirs is not None else mine
    texts = others if others is not None else forms
    counted = Counter(g for grams in pool for g in grams)
    index: dict[str, list[int]] = defaultdict(list)
    for j, grams in enumerate(pool):
        for gram in grams:
            index[gram].append(j)
    short = [j for j, text in enumerate(texts) if len(text) < 2 * GRAM]  # too short for the argument above: all are looked at
    found = []
    for i, grams in enumerate(mine):
        rarest = sorted(grams, key=lambda g: (counted[g], g))[: len(grams) * 2 // 3 + 1]
        near = {j for g in rarest for j in index.get(g, ())} | (set(short) if len(forms[i]) < 3 * GRAM else set())
        found += [(i, j) for j in sorted(near) if (theirs is not None or i < j) and _near(forms[i], texts[j], grams, pool[j])]
    return found


# -- strata ------------------------------------------------------------------------------------------------------------

#: Upper ends of the length bands, in characters of the strict normal form, spaces included.
BANDS = {"short": 30, "medium": 70, "long": 140, "very-long": 300}
RETROFLEX, ASPIRATED = "टठडढणड़ढ़ष", "खघछझठढथधफभ"


def strata(text: str, language: str, spoken_refs: Sequence[str] = ()) -> tuple[str, ...]:
    """What kinds of sentence it is: a length band, question or exclamation, digits, code-mix; for Hindi its hard consonants."""
    form = textnorm.normalise(text, language)
    length = len(form) * (2 if language in ("ja", "zh", "ko") else 1)  # a character of these takes twice as long to say
    found = [next((name for name, end in BANDS.items() if length <= end), "near-30-s")]
    last = text.rstrip(" \"'”’」").rstrip()[-1:]
    found += ["question"] if last in "?？" and last else ["exclamation"] if last in "!！" and last else []
    if any(unicodedata.category(c) == "Nd" for c in text):
        found.append("digits")
    scripts = {unicodedata.name(c, "").split(" ")[0] for c in form if unicodedata.category(c)[0] == "L"}
    if "LATIN" in scripts and len(scripts) > 1:
        found.append("code-mix")
    if language in ("hi", "mr"):
        letters = unicodedata.normalize("NFC", text)
        found += ["retroflex"] if sum(c in RETROFLEX for c in letters) >= 3 else []
        found += ["aspirated"] if sum(c in ASPIRATED for c in letters) >= 4 else []
    return tuple(found)


# -- keeping -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Imported:
    """A corpus as it was taken, and which of its lines nearly say the same."""

    corpus: Corpus
    made: bool
    near: list[tuple[int, int]]


def keep(name: str, language: str, lines: Sequence[Line], data: bytes, licence: str = "", source: str = "", revision: str = "") -> Imported:
    """Stores a corpus; the same content under the same name is that corpus. Raises Refused when the name means other content."""
    sha = hashlib.sha256(data).hexdigest()
    known = Corpus.objects.filter(name=name).first()
    if known and known.sha256 != sha:
        raise Refused(
            "corpus_name_taken", f"name is {name!r}: another corpus has it; a new revision is a new corpus with a name of its own.", "name"
        )
    near = near_duplicates([plain(line.text.text, language) for line in lines])
    pairs = [(lines[i].number, lines[j].number) for i, j in near]
    if known:
        return Imported(known, False, pairs)
    with transaction.atomic():
        corpus = Corpus.objects.create(name=name, language=language, sha256=sha, licence=licence, source=source, revision=revision)
        rows = [Sentence(digest=x.digest, language=language, text=x.text.text, spoken_refs=x.text.spoken_refs) for x in lines]
        Sentence.objects.bulk_create(rows, ignore_conflicts=True, batch_size=500)
        digests = [x.digest for x in lines]
        for k in range(0, len(digests), 500):
            corpus.sentences.add(*Sentence.objects.filter(digest__in=digests[k : k + 500]))
    return Imported(corpus, True, pairs)


def bundled() -> list[Imported]:
    """The project's own corpora, brought into the database once."""
    found = []
    for file in sorted(BUNDLED.glob("*.jsonl")):
        data, language = file.read_bytes(), file.stem
        name = f"earwitness-{language}"
        if Corpus.objects.filter(name=name, sha256=hashlib.sha256(data).hexdigest()).exists():
            continue
        found.append(keep(name, language, read(data, file.name, language), data, "MIT", "written for Earwitness", "1"))
    return found
