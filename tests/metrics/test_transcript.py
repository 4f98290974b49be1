"""Flags that tell a failed recogniser from failed speech."""

import json
import time

import pytest

from gate.metrics import battery, cer, transcript
from tests.metrics.parrot import Parrot
from tests.metrics.sounds import faded, speech_like

CLIP = faded(speech_like(6.0))
SENTENCE = "The ferry leaves at dawn from the old harbour."


def read(reference, hypothesis, language="en", speech_s=4.0):
    errors = cer.character_errors(reference, hypothesis, language)
    return transcript.read(reference, hypothesis, language, speech_s, errors.lenient, errors.cer)


@pytest.mark.parametrize(
    ("reference", "hypothesis", "language", "flags"),
    [
        (SENTENCE, SENTENCE, "en", ()),
        (SENTENCE, "", "en", ("asr_empty",)),
        ("मैं घर जा रहा हूँ", "main ghar ja raha hun", "hi", ("wrong_script",)),
        ("मैं घर जा रहा हूँ", "میں گھر جا رہا ہوں", "hi", ("wrong_script",)),
        ("वह office गया", "वह ऑफिस गया", "hi", ()),
        ("雨が降っています。", "雨が降っています", "ja", ()),
        ("雨が降っています。", "ame ga futteimasu", "ja", ("wrong_script",)),
        ("ok", "Thank you for watching!", "en", ("hallucination",)),
        ("Thank you for watching the harbour.", "Thank you for watching the harbour.", "en", ()),
        ("हिन्दी", "हिंदी", "hi", ("spelling_only",)),
        ("हिन्दी", "हिंदू", "hi", ()),
        ("पढ़ना", "पढना", "hi", ("spelling_only",)),
    ],
)  # fmt: skip
def test_flags(reference, hypothesis, language, flags):
    assert read(reference, hypothesis, language).flags == flags


def test_a_loop_is_the_voices_when_it_could_be_said_and_the_recognisers_when_not():
    loop = "The ferry leaves " * 20
    spoken, invented = read(SENTENCE, loop, speech_s=20.0), read(SENTENCE, loop, speech_s=2.0)
    assert (spoken.looped, spoken.flags) == (True, ())
    assert (invented.looped, invented.flags) == (False, ("asr_loop",))


@pytest.mark.parametrize(
    ("reference", "hypothesis", "language"),
    [("the cat", "the the the the cat", "en"), ("नमस्ते", "नमस्ते नमस्ते नमस्ते नमस्ते", "hi"), ("おはよう", "おはようおはようおはよう", "ja")],
)
def test_loops_are_seen_in_every_script(reference, hypothesis, language):
    assert read(reference, hypothesis, language).looped


def test_what_the_text_itself_repeats_is_no_loop():
    chant = "No, no, no, no, said the miller, no, no, no."
    assert not read(chant, chant).looped
    assert not read("They had had enough of it.", "They had had enough of it.").looped


@pytest.mark.parametrize(
    ("reference", "hypothesis", "language"),
    [
        ("That is one million dollars", "That is $1,000,000", "en"), ("यह दस लाख है", "यह 1000000 है", "hi"), ("ha ha ha", "ha ha ha", "en"),
        ("He had had a bad day, a very very bad day.", "He had had a bad day, a very very bad day.", "en"),
        ("わたしはわたしのわたしを", "わたしはわたしのわたしを", "ja"),
    ],
)  # fmt: skip
def test_what_is_no_loop(reference, hypothesis, language):
    assert not read(reference, hypothesis, language, 10.0).looped


def test_a_repetitive_text_hides_no_loop():
    reference = "No, no, no, said the miller and left the house."
    assert read(reference, "No no no said the miller " + "and left the house " * 12, "en", 30.0).looped
    assert read("雨が降る夜に駅前の店で", "雨が降る夜に駅前の店で" * 4, "ja", 20.0).looped


def test_a_long_hindi_text_is_no_loop_by_its_bytes():
    from gate import corpora

    texts = [json.loads(line)["text"] for line in (corpora.BUNDLED / "hi.jsonl").read_text().splitlines()]
    for k in range(0, 100, 20):
        text = " ".join(texts[k : k + 20])
        assert not read(text, text.replace("ँ", "ं"), "hi", 300.0).looped


@pytest.mark.parametrize("text", ["a" * 8000, "ab " * 4000, "the cat sat " * 1500, "no " * 6000, "雨が降る" * 2000, "x y z w " * 2000])
def test_long_repetitions_take_no_long_time(text):
    begin = time.perf_counter()
    assert transcript._loops("another text", text, "ja" if "雨" in text else "en")
    assert time.perf_counter() - begin < 2


@pytest.mark.parametrize(
    ("reference", "hypothesis"),
    [
        ("The price is twenty five", "The price is 25"),
        ("It was nineteen eighty four", "It was 1984"),
        ("I am ninety nine percent sure of ninety nine percent", "I am 99% sure of 99%"),
    ],
)
def test_a_numeral_is_no_missing_end(reference, hypothesis):
    assert read(reference, hypothesis).missing_end == 0


def test_a_missing_end_is_counted_in_characters():
    assert read(SENTENCE, "The ferry leaves at dawn").missing_end == len("fromtheoldharbour")
    assert read(SENTENCE, "The ferry leaves at dawn from the new harbour").missing_end == 0
    assert read(SENTENCE, "ferry leaves at dawn from the old harbour").missing_end == 0


@pytest.mark.parametrize(
    ("heard", "cut", "lacks"),
    [
        ("The ferry leaves at dawn", False, True),
        (SENTENCE[:-3], False, False),
        (SENTENCE[:-3], True, False),
        ("The ferry leaves at dawn from the old", True, True),
        ("The ferry leaves at dawn from the old", False, False),
        (SENTENCE, True, False),
    ],
)
def test_a_clip_lacks_its_end_when_much_of_it_is_missing_or_the_sound_breaks_off_too(heard, cut, lacks):
    assert transcript.lacks_its_end(read(SENTENCE, heard), 36, cut) is lacks


def scored(*texts, second=None, reference="मैं घर जा रहा हूँ", language="hi"):
    return battery.score(CLIP, 24000, [reference], language, Parrot(*texts), Parrot(second) if second is not None else None)


@pytest.fixture(autouse=True)
def any_quality(monkeypatch):
    """DNSMOS has tests of its own; here its time is not wanted."""
    from gate.metrics import dnsmos

    score = dnsmos.Score(3.0, 3.0, 3.0, 1)
    monkeypatch.setattr(dnsmos, "score", lambda samples, rate: dnsmos.Dnsmos(score, score, False, False, 0.0))


def test_in_the_wrong_script_the_second_recogniser_counts_and_else_the_worst_value():
    alone = scored("main ghar ja raha hun")
    assert (alone.cer, alone.flags, alone.second_cer, alone.catastrophes) == (1.0, ("wrong_script",), None, ())
    assert scored("").flags == ("asr_empty",) and scored("").catastrophes == ()
    helped = scored("main ghar ja raha hun", second="मैं घर जा रहा हूँ")
    assert (helped.cer, helped.second_cer) == (0.0, 0.0)
    assert helped.flags == ("wrong_script", "second_recogniser_counts")
    assert scored("main ghar", second="main ghar").cer == 1.0


def test_a_second_recogniser_is_stored_beside_the_first_and_does_not_decide():
    found = scored("मैं घर जा रहा हूँ", second="मैं घर")
    assert found.cer == 0.0 and found.second_cer > 0.5 and found.second_transcript == "मैं घर"


def test_catastrophes_keep_their_numbers():
    looped = scored(SENTENCE * 3, reference=SENTENCE, language="en")
    assert looped.catastrophes == ("repetition_loop",) and looped.cer == 1.0 and looped.failed == "" and looped.wrong == "repetition_loop"
    short = scored("The ferry leaves at dawn", reference=SENTENCE, language="en")
    assert short.catastrophes == ("truncated_tail",) and 0.3 < short.cer < 0.5
    capped = battery.score(CLIP, 24000, [SENTENCE], "en", Parrot(SENTENCE), making=battery.Making(hit_cap=True))
    assert capped.catastrophes == ("runaway",) and capped.cer == 0.0
