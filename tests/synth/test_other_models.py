"""Every section of a configuration on the other models that mlx-audio speaks with: what it changes, and what they can't do."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.synth.test_batching import together
from tests.synth.test_levers import reference

pytestmark = pytest.mark.slow
FALLING = {"start": 1.0, "floor": 0.5, "steps": 9}


@dataclass(frozen=True)
class Case:
    """What a model is asked. `rules`: pattern -> modules it reaches, first match wins. `refused`: sections, and what is said of them."""

    rules: dict[str, int]
    layer: str  # a square one, for the adapter
    sampling: dict[str, Any]
    interval_s: float
    refused: tuple[tuple[dict[str, Any], str], ...]
    words: str | None = None  # of a recording, where it can't be used without
    rows: bool = True


CASES = {
    "tiny_zonos2": Case(
        rules={r"\.experts\.": 6, ".": 28},
        layer="layers.0.attention.wo",
        sampling={"temperature": 0.4, "top_k": 9, "top_p": 0.9, "min_p": 0.01, "repetition_penalty": 1.5, "repetition_window": 4},
        interval_s=0.06,
        refused=(
            ({"voice": {"preset": "ryan"}}, "has 'voice' and never reads it"),
            ({"voice": {"speed": 1.2}}, "has 'speed' and never reads it"),
            ({"voice": {"instruct": "whisper"}}, "takes no 'instruct'"),
            ({"quantisation": [{"match": "^speaker_projection", "bits": 8}]}, "matches no module"),
            ({"runtime": {"version": "0.0.1"}}, "asks for mlx-audio 0.0.1"),
        ),
    ),
}
NOT_FOR_THEM = (
    ({"sampling": {"extra": {"temprature": 0.5}}}, "takes no 'temprature'"),
    ({"sampling": {"cfg_scale": 2.0}}, "no classifier-free guidance"),
    ({"sampling": {"temperature": FALLING}}, "nothing can reach"),
    ({"compile": ["code-predictor"]}, "no code predictor"),
    ({"compile": ["sampler"]}, "nothing can reach"),
    ({"levers": [{"lever": "fold-weight-norm"}]}, "no_effect"),
    ({"quantisation": [{"match": "^nothing", "bits": 4}]}, "matches no module"),
)


@pytest.fixture(params=CASES)
def model(request):
    """(its configuration, what it is asked)"""
    return request.getfixturevalue(request.param), CASES[request.param]


def sampled(body, **options):
    return body | {"sampling": body["sampling"] | options}


def adapter(folder, layer):
    """The configuration's section for an adapter of one layer, large enough to be heard."""
    draw = np.random.default_rng(5)
    tensors = {f"{layer}.lora_a": draw.normal(size=(64, 4)), f"{layer}.lora_b": draw.normal(size=(4, 64))}
    save_file({name: value.astype(np.float32) for name, value in tensors.items()}, folder / "adapter.safetensors")
    return {"adapter": {"path": str(folder / "adapter.safetensors"), "scale": 0.5}}


def test_one_seed_is_one_sound_and_changed_weights_are_another(model, spoken, tmp_path):
    body, case = model
    (plain, child), (again, _) = spoken(body), spoken(body)
    other = child.clip({"id": 2, "text": "The ferry leaves.", "language": "en", "seed": 4, "out": str(tmp_path)})
    assert plain["outcome"] == "made" and plain["figures"]["hit_cap"] and len(child.report["digests"]["weights"]) == 64
    rules = [{"match": pattern, "bits": 3, "group_size": 32} for pattern in case.rules]
    quantised, by = spoken(body | {"quantisation": rules})
    assert by.report["effects"]["quantisation"] == case.rules
    adapted, by = spoken(body | adapter(tmp_path, case.layer))
    assert by.report["effects"]["adapter"] == {"wrap": 1}
    assert plain["pcm_sha256"] == again["pcm_sha256"]
    assert len({clip["pcm_sha256"] for clip in (plain, other, quantised, adapted)}) == 4


def test_sampling_is_taken_and_a_stream_comes_in_pieces(model, spoken):
    body, case = model
    body = sampled(body, **case.sampling)
    whole, child = spoken(body)
    streamed, by = spoken(body | {"streaming": {"interval_s": case.interval_s}})
    assert child.report["effects"]["generate"] == sorted(body["sampling"].keys() - {"extra"} | body["sampling"].get("extra", {}).keys())
    assert {"stream", "streaming_interval"} <= set(by.report["effects"]["generate"])
    assert whole["figures"]["chunks"] == 1 < streamed["figures"]["chunks"]
    assert streamed["figures"]["tokens"] == whole["figures"]["tokens"] and streamed["figures"]["audio_s"] == whole["figures"]["audio_s"]


def test_a_cloned_voice_is_heard_and_another_one_is_another(model, spoken, tmp_path):
    body, case = model
    heard = set()
    for hertz in (180, 900):
        voice = reference(tmp_path, hertz)
        if case.words:
            voice["voice"]["reference_text"] = case.words
        clip, child = spoken(body | voice)
        assert child.report["effects"]["voice.reference"] == 1
        heard.add(clip["pcm_sha256"])
    assert len(heard) == 2


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.rows])
def test_three_sentences_in_one_call_are_three_clips(name, request, spoken, tmp_path):
    _, child = spoken(request.getfixturevalue(name) | {"batching": {"size": 3}})
    first, again = (together(child, tmp_path) for _ in range(2))
    assert [clip["outcome"] for clip in first["clips"]] == ["made"] * 3 and first["figures"]["rows"] == 3
    hashes = [clip["pcm_sha256"] for clip in first["clips"]]
    assert len(set(hashes)) == 3 and hashes == [clip["pcm_sha256"] for clip in again["clips"]]


def test_what_a_model_has_not_is_refused_in_a_sentence(model, refusals):
    body, case = model
    asked = NOT_FOR_THEM + case.refused
    answers = refusals([body | {"sampling": {}} | section for section, _ in asked])
    assert [says for (_, says), answer in zip(asked, answers, strict=True) if says not in (answer or "")] == [], answers
