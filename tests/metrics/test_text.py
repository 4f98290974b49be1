import json
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
