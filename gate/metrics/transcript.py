"""What is wrong with a transcript apart from its errors: flags that tell a failed recogniser from failed speech."""

from __future__ import annotations

import re
import unicodedata
import zlib
from dataclasses import dataclass

from rapidfuzz.distance import Levenshtein

from gate.metrics import textnorm

IDENTITY = "flags-1"

#: Languages of one script; anything else is Latin.
SCRIPTS = {
    "hi": ("DEVANAGARI",), "mr": ("DEVANAGARI",), "bn": ("BENGALI",), "ta": ("TAMIL",), "te": ("TELUGU",), "ar": ("ARABIC",),
    "ur": ("ARABIC",), "ru": ("CYRILLIC",), "ja": ("HIRAGANA", "KATAKANA", "CJK", "KATAKANA-HIRAGANA"), "zh": ("CJK",),
    "ko": ("HANGUL", "CJK"),
}  # fmt: skip
#: What recognisers write when nobody said anything: the captions they were trained on. In strict normal form.
BOILERPLATE = tuple(
    textnorm.normalise(text, "en")
    for text in (
        "thank you for watching", "thanks for watching", "please subscribe", "like and subscribe", "subtitles by", "captions by",
        "transcription by", "amara org", "see you in the next video", "ご視聴ありがとうございました", "チャンネル登録", "次回もお楽しみに",
        "देखने के लिए धन्यवाद", "सब्सक्राइब", "字幕", "请不吝点赞", "謝謝觀看", "시청해주셔서 감사합니다", "구독", "продолжение следует",
        "субтитры", "untertitel", "sous titres", "subtítulos", "sottotitoli", "legendas", "gracias por ver", "merci d avoir regardé",
    )
)  # fmt: skip
#: Whisper's own limit; and more than this many times what the text itself compresses, for repetitive texts and three-byte scripts.
COMPRESSION, MORE_THAN_TEXT = 2.4, 1.3
#: A phrase of up to twelve words said at least three times in a row; in scripts without spaces, of two to forty characters.
WORD_LOOP = re.compile(r"(?<!\S)(\S+(?: \S+){0,11}?)(?: \1(?!\S)){2,}")
CHARACTER_LOOP = re.compile(r"(.{2,40}?)\1{2,}")
WITHOUT_SPACES = ("ja", "zh")
#: Faster than anybody speaks: a loop that would need this many characters a second is the recogniser's own.
SAYABLE_PER_S = 30.0
MISSING_SHARE, MISSING_CHARACTERS = 0.25, 4


@dataclass(frozen=True)
class Reading:
    """`flags`: asr_empty, wrong_script, asr_loop, hallucination, spelling_only. `looped`: the *speech* repeats itself.
    `missing_end`: characters of the reference after which nothing was understood any more."""

    flags: tuple[str, ...]
    looped: bool
    missing_end: int


def script_share(text: str, language: str) -> float:
    """Share of the letters and marks of `text` that are of the language's script; 1.0 when there are none."""
    wanted = SCRIPTS.get(language, ("LATIN",))
    names = [unicodedata.name(c, "") for c in text if unicodedata.category(c)[0] in "L"]
    return sum(name.startswith(wanted) for name in names) / len(names) if names else 1.0


def _compression(text: str) -> float:
    data = text.encode()
    return len(data) / len(zlib.compress(data)) if data else 0.0


def _loops(reference: str, hypothesis: str, language: str) -> bool:
    """Whether the transcript says a phrase three times or more in a row, and more often than the text has it."""
    ref, hyp, pattern = reference, hypothesis, WORD_LOOP
    if language in WITHOUT_SPACES:
        ref, hyp, pattern = ref.replace(" ", ""), hyp.replace(" ", ""), CHARACTER_LOOP
    for found in pattern.finditer(hyp):
        unit = found[1]
        if any(c.isalpha() for c in unit) and hyp.count(unit, found.start(), found.end()) > ref.count(unit):
            return True
    return _compression(hyp) > max(COMPRESSION, MORE_THAN_TEXT * _compression(ref))


def missing_end(reference: str, hypothesis: str) -> int:
    """How many characters at the end of the reference have no counterpart. Args: strict normal forms."""
    ref, hyp = reference.replace(" ", ""), hypothesis.replace(" ", "")
    end = len(ref)
    for tag, place, _ in reversed(Levenshtein.editops(ref, hyp).as_list()):
        if tag != "delete" or place != end - 1:
            break
        end -= 1
    return len(ref) - end


def read(reference: str, hypothesis: str, language: str, speech_s: float, lenient_errors: float, errors: float) -> Reading:
    """Flags of one transcript.

    Args: the reference that matched best and the transcript, as written; seconds of speech in the clip;
    the lenient and the strict error rate.
    """
    ref, hyp = (textnorm.normalise(text, language) for text in (reference, hypothesis))
    if not hyp:
        return Reading(("asr_empty",), False, len(ref.replace(" ", "")))
    flags = []
    if script_share(hyp, language) < 0.5 <= script_share(ref, language):
        flags.append("wrong_script")
    looped = _loops(ref, hyp, language)
    if looped and len(hyp) > SAYABLE_PER_S * max(speech_s, 0.1):
        flags.append("asr_loop")
        looped = False
    if any(text in hyp and text not in ref for text in BOILERPLATE):
        flags.append("hallucination")
    if errors > 0 and lenient_errors == 0:
        flags.append("spelling_only")
    lost = 0 if any(c.isdigit() for c in hyp.split()[-1]) else missing_end(ref, hyp)  # "25" is all of "twenty five"
    return Reading(tuple(flags), looped, lost)


def lacks_its_end(reading: Reading, reference_length: int, cut: bool) -> bool:
    """Whether the clip stops before its text does: a quarter of it is missing at the end, or a word and the sound breaks off."""
    return reading.missing_end >= max(MISSING_CHARACTERS, 0 if cut else MISSING_SHARE * reference_length)
