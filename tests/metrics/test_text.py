import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.metrics import cer, textnorm

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "cer.json").read_text())["vectors"]


@pytest.mark.parametrize("row", VECTORS, ids=[row["id"] for row in VECTORS])
def test_the_vectors(row):
    expected, lenient, language = row["expected"]["v1"], row["expected"]["v1_lenient"], row["lang"]
    assert textnorm.normalise(row["reference"], language) == expected["ref"]
    assert textnorm.normalise(row["hypothesis"], language) == expected["hyp"]
    if not expected["ref"]:
        with pytest.raises(cer.InvalidReference):
            cer.character_errors(row["reference"], row["hypothesis"], language)
        return
    found = cer.character_errors(row["reference"], row["hypothesis"], language)
    assert (found.edits, found.reference_length) == (expected["edits"], expected["ref_len"])
    assert found.capped == pytest.approx(expected["cer_capped"], abs=1e-6)
    assert found.lenient == pytest.approx(lenient["cer"], abs=1e-6)
    assert found.no_space == pytest.approx(row["expected"]["v1_nospace"]["cer"], abs=1e-6)
    assert found.substitutions + found.deletions + found.insertions == found.edits


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=30)


@given(WORDS)
def test_normalising_twice_is_normalising_once(text):
    once = textnorm.normalise(text, "en")
    assert textnorm.normalise(once, "en") == once


@given(WORDS, WORDS)
def test_edits_do_not_depend_on_the_direction(left, right):
    if textnorm.normalise(left, "en") and textnorm.normalise(right, "en"):
        assert cer.character_errors(left, right, "en").edits == cer.character_errors(right, left, "en").edits


def test_half_a_surrogate_pair_is_refused():
    with pytest.raises(textnorm.NotText):
        textnorm.normalise("a\ud800", "en")


@given(WORDS)
def test_equal_normal_forms_have_no_errors(text):
    form = textnorm.normalise(text, "hi")
    if form:
        found = cer.character_errors(text, form, "hi")
        assert (found.edits, found.cer, found.no_space, found.lenient) == (0, 0.0, 0.0, 0.0)


INDIC = st.text(st.characters(min_codepoint=0x0900, max_codepoint=0x097F) | st.sampled_from(" e\u0301\u200b\u200d:'é"), max_size=12)


@given(INDIC | WORDS, INDIC | WORDS)
def test_how_a_text_is_composed_changes_nothing(left, right):
    for text in (left, right):
        forms = {textnorm.normalise(unicodedata.normalize(kind, text), "hi") for kind in ("NFC", "NFD", "NFKC", "NFKD")} | {
            textnorm.normalise(text, "hi")
        }
        assert len(forms) == 1
    if textnorm.normalise(left, "hi"):
        errors = {
            cer.character_errors(unicodedata.normalize(a, left), unicodedata.normalize(b, right), "hi").edits
            for a in ("NFC", "NFD")
            for b in ("NFC", "NFD")
        }
        assert len(errors) == 1


@given(INDIC)
def test_normalising_devanagari_twice_is_normalising_once(text):
    for lenient in (False, True):
        once = textnorm.normalise(text, "hi", lenient)
        assert textnorm.normalise(once, "hi", lenient) == once


@given(WORDS, WORDS)
def test_substitutions_stay_and_the_others_change_places_when_the_texts_do(left, right):
    if textnorm.normalise(left, "en") and textnorm.normalise(right, "en"):
        there, back = cer.character_errors(left, right, "en"), cer.character_errors(right, left, "en")
        assert there.insertions - there.deletions == back.deletions - back.insertions


@pytest.mark.parametrize(("text", "form"), [("e\u200b\u0301", "é"), ("है'न", "हैन"), ("don't", "dont"), ("१२,३४५", "12345"), ("अाे", "ओ")])
def test_marks_meet_their_letters(text, form):
    assert textnorm.normalise(text, "hi") == form
