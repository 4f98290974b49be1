"""Several sentences in one call: what each row sounds like, what is refused, and what compiled frames do with a batch."""

from pathlib import Path

import pytest

from synth.engine.supervise import ChildRefused
from synth.engine.together import work
from synth.pcm import decode

pytestmark = pytest.mark.slow
TEXTS = ["The ferry leaves.", "It was raining when the ferry left the harbour.", "Nobody waved."]


def batched(body, size=4, tokens=8, **more):
    return body | {"batching": {"size": size}, "sampling": {"max_tokens": tokens} | more}


def together(child, folder, texts=TEXTS, seed=3):
    rows = [{"id": k, "text": text} for k, text in enumerate(texts)]
    return child.batch({"rows": rows, "language": "en", "seed": seed, "out": str(folder)})


def test_every_row_is_the_sentence_it_would_be_alone(tiny, spoken, tmp_path):
    """Drawn greedily, so that no row takes another's random numbers."""
    _, child = spoken(batched(tiny, temperature=0.0))
    _, alone = spoken(tiny | {"sampling": {"max_tokens": 8, "temperature": 0.0}})
    said = together(child, tmp_path)
    assert [c["outcome"] for c in said["clips"]] == ["made"] * 3 and [c["id"] for c in said["clips"]] == [0, 1, 2]
    for text, clip in zip(TEXTS, said["clips"], strict=True):
        single = alone.clip({"id": 9, "text": text, "language": "en", "seed": 3, "out": str(tmp_path)})
        ours, theirs = decode(Path(clip["file"])).samples, decode(Path(single["file"])).samples
        assert len(ours) == len(theirs) or theirs.shape < ours.shape  # the single path trims frames whose first code is 0
        n = min(len(ours), len(theirs))
        assert abs(ours[:n] - theirs[:n]).max() < 1e-3
    figures = said["figures"]
    assert figures["rows"] == 3 and figures["steps"] <= 8
    assert figures["needed"] == sum(c["figures"]["tokens"] for c in said["clips"]) == pytest.approx(figures["computed"], abs=3)
    assert all(c["figures"]["wall_s"] <= figures["wall_s"] and c["figures"]["together"] == figures for c in said["clips"])


def test_work_is_counted_where_it_can_be_and_supposed_where_not():
    assert work([3, 40, 40], (41, 84)) == {"steps": 41, "needed": 83, "computed": 84}
    assert work([3, 40, 40], None) == {"steps": 40, "needed": 83, "computed": 120}


def test_the_same_group_is_the_same_sound_and_its_order_belongs_to_it(tiny, spoken, tmp_path):
    _, child = spoken(batched(tiny))
    first, again, turned = (together(child, tmp_path, t) for t in (TEXTS, TEXTS, TEXTS[::-1]))
    hashes = [[c["pcm_sha256"] for c in said["clips"]] for said in (first, again, turned)]
    assert hashes[0] == hashes[1] and hashes[0] != hashes[2][::-1]


def test_compiled_frames_and_falling_temperatures_work_in_a_batch_too(tiny, spoken, tmp_path):
    (_, plain), (_, compiled) = spoken(batched(tiny)), spoken(batched(tiny) | {"compile": ["code-predictor", "sampler"]})
    ours, theirs = (together(child, tmp_path)["clips"] for child in (compiled, plain))
    assert [c["pcm_sha256"] for c in ours] == [c["pcm_sha256"] for c in theirs]
    _, falling = spoken(batched(tiny, temperature={"start": 0.9, "floor": 0.01, "steps": 2}))
    assert [c["pcm_sha256"] for c in together(falling, tmp_path)["clips"]] != [c["pcm_sha256"] for c in theirs]


def test_what_a_batch_can_not_be_is_refused_in_a_sentence(tiny, spoken):
    kokoro = Path(__file__).resolve().parent.parent.parent / "var" / "models" / "kokoro-82m"
    with pytest.raises(ChildRefused, match="one sentence at a time"):
        spoken({"name": "k", "model": {"path": str(kokoro)}, "voice": {"preset": "jm_kumo"}, "batching": {"size": 2}})
    with pytest.raises(ChildRefused, match="exclude one another"):
        spoken(batched(tiny) | {"streaming": {"interval_s": 0.5}})
    with pytest.raises(ChildRefused, match="batches pass it by"):
        spoken(batched(tiny) | {"levers": [{"lever": "chunk-text", "characters": 40}]})
    with pytest.raises(ChildRefused, match="takes no 'split_pattern'"):
        spoken(batched(tiny, extra={"split_pattern": "x"}))
