"""Streaming as the mlx-audio engine does it, on a tiny model of the real classes: noise, but with real chunks and real clocks."""

from pathlib import Path

import pytest

from synth.engine.supervise import ChildRefused
from synth.pcm import decode

ROOT = Path(__file__).resolve().parent.parent.parent
pytestmark = pytest.mark.slow


def test_a_stream_comes_in_pieces_whose_times_and_lengths_are_kept(tiny, spoken):
    tiny = tiny | {"sampling": {"max_tokens": 24}}
    whole, _ = spoken(tiny)
    streamed, _ = spoken(tiny | {"streaming": {"interval_s": 0.4}})
    figures = streamed["figures"]
    assert whole["figures"]["chunks"] == 1 and figures["chunks"] == len(figures["arrivals_s"]) == len(figures["durations_s"]) > 2
    assert figures["arrivals_s"] == sorted(figures["arrivals_s"]) and figures["arrivals_s"][-1] <= figures["wall_s"]
    assert sum(figures["durations_s"]) == pytest.approx(figures["audio_s"])
    assert 0 < figures["first_chunk_s"] < figures["wall_s"] and figures["durations_s"][0] == pytest.approx(0.4, abs=0.1)
    sound = decode(Path(streamed["file"]))
    assert len(sound.samples) / sound.sample_rate == pytest.approx(figures["audio_s"])


def test_a_model_that_does_not_stream_says_so(spoken):
    models = ROOT / "var" / "models"
    if not (models / "kokoro-82m" / "config.json").exists():
        pytest.skip("the models are not made: run manage.py test")
    body = {"name": "k", "model": {"path": str(models / "kokoro-82m")}, "voice": {"preset": "jm_kumo"}, "streaming": {"interval_s": 1.0}}
    with pytest.raises(ChildRefused, match="does not stream"):
        spoken(body)


def test_the_checksums_name_the_weights_a_change_touches(tiny, spoken):
    _, parent = spoken(tiny)
    _, again = spoken(tiny)
    _, changed = spoken(tiny | {"quantisation": [{"match": "talker.*mlp", "bits": 8, "group_size": 32}]})
    before, after = parent.tensors(), changed.tensors()
    assert before == again.tensors() and len(before) > 20
    touched = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert touched and all("mlp" in name for name in touched)
