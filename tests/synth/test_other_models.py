"""Every section of a configuration on the other models that mlx-audio speaks with: what it changes, and what they can't do."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from synth.engine.supervise import Child, ChildRefused
from tests.synth.test_batching import together
from tests.synth.test_levers import reference

pytestmark = pytest.mark.slow
ORDER = {"id": 1, "text": "The ferry leaves.", "language": "en", "seed": 3}
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
    rows: bool = True  # whether it speaks several sentences at once


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
            ({"sampling": {"extra": {"temprature": 0.5}}}, "takes no 'temprature'"),
            ({"quantisation": [{"match": "^speaker_projection", "bits": 8}]}, "matches no module"),
        ),
    ),
    "tiny_fish": Case(
        rules={r"^model\.layers\..*attention": 4, r"^model\.layers": 6},
        layer="model.layers.0.attention.wo",
        sampling={"temperature": 1.1, "top_k": 40, "top_p": 0.9},
        interval_s=0.1,
        refused=(
            ({"voice": {"preset": "ryan"}}, "has 'voice' and never reads it"),
            ({"sampling": {"repetition_penalty": 1.1}}, "has 'repetition_penalty' and never reads it"),
            ({"sampling": {"min_p": 0.1}}, "takes no 'min_p'"),
            ({"quantisation": [{"match": "fast_", "bits": 8}]}, "matches no module"),
        ),
        words="Far out.",
    ),
    "tiny_csm": Case(
        rules={r"backbone\..*self_attn": 8, r"^model\.(backbone|decoder)\.": 13},
        layer="model.backbone.layers.0.self_attn.q_proj",
        sampling={"extra": {"max_audio_length_ms": 240, "voice_match": False}},
        interval_s=0.16,
        refused=(
            ({"sampling": {"temperature": 0.9}}, "takes no 'temperature'"),
            ({"sampling": {"max_tokens": 9}}, "takes no 'max_tokens'"),
            ({"batching": {"size": 3}}, "one sentence at a time"),
            ({"quantisation": [{"match": "_audio_tokenizer", "bits": 8}]}, "matches no module"),
        ),
        words="Far out.",
        rows=False,
    ),
}
NOT_FOR_THEM = (
    ({"sampling": {"cfg_scale": 2.0}}, "no classifier-free guidance"),
    ({"sampling": {"temperature": FALLING}}, "nothing can reach"),
    ({"compile": ["code-predictor"]}, "no code predictor"),
    ({"compile": ["sampler"]}, "nothing can reach"),
    ({"levers": [{"lever": "fold-weight-norm"}]}, "no_effect"),
)


@dataclass(frozen=True)
class Model:
    """A model and what it said, unchanged."""

    case: Case
    body: dict[str, Any]
    child: Child
    clip: dict[str, Any]


@pytest.fixture(scope="module", params=CASES)
def model(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    body = request.getfixturevalue(request.param)
    child = Child(body, "digest", folder, [])
    child.start()
    yield Model(CASES[request.param], body, child, child.clip(ORDER | {"out": str(folder)}))
    child.end()


def adapter(folder, layer):
    """The configuration's section for an adapter of one layer."""
    draw = np.random.default_rng(5)
    tensors = {f"{layer}.lora_a": draw.normal(size=(64, 4)), f"{layer}.lora_b": draw.normal(size=(4, 64))}
    save_file({name: value.astype(np.float32) for name, value in tensors.items()}, folder / "adapter.safetensors")
    return {"adapter": {"path": str(folder / "adapter.safetensors"), "scale": 0.5}}


def test_one_seed_is_one_sound_in_fresh_processes_and_another_is_another(model, spoken, tmp_path):
    again, child = spoken(model.body)
    other = model.child.clip(ORDER | {"seed": 4, "out": str(tmp_path)})
    assert model.clip["outcome"] == "made" and model.clip["figures"]["hit_cap"]
    turned = model.child.clip(ORDER | {"out": str(tmp_path)})  # after another clip, of which nothing may be left
    assert model.clip["pcm_sha256"] == again["pcm_sha256"] == turned["pcm_sha256"] != other["pcm_sha256"]
    assert model.child.report["digests"] == child.report["digests"]


def test_quantisation_reaches_what_its_rules_say_and_is_heard(model, spoken):
    rules = [{"match": pattern, "bits": 3, "group_size": 32} for pattern in model.case.rules]
    clip, child = spoken(model.body | {"quantisation": rules})
    assert child.report["effects"]["quantisation"] == model.case.rules
    assert clip["outcome"] == "made" and clip["pcm_sha256"] != model.clip["pcm_sha256"]


def test_an_adapter_and_sampling_are_taken_and_a_stream_comes_in_pieces(model, spoken, tmp_path):
    wanted = model.body["sampling"] | model.case.sampling
    changed = {"sampling": wanted, "streaming": {"interval_s": model.case.interval_s}} | adapter(tmp_path, model.case.layer)
    clip, child = spoken(model.body | changed)
    names = wanted.keys() - {"extra"} | wanted.get("extra", {}).keys() | {"stream", "streaming_interval"}
    assert child.report["effects"] == {"adapter": {"wrap": 1}, "generate": sorted(names)}
    plain, figures = model.clip["figures"], clip["figures"]
    assert figures["chunks"] > 1 and (figures["tokens"], figures["samples"]) == (plain["tokens"], plain["samples"])
    assert figures["hit_cap"] and clip["pcm_sha256"] != model.clip["pcm_sha256"]


def test_a_voice_is_cloned_from_a_recording(model, spoken, tmp_path):
    voice = reference(tmp_path)
    if model.case.words:
        voice["voice"]["reference_text"] = model.case.words
    clip, child = spoken(model.body | voice)
    assert child.report["effects"]["voice.reference"] == 1
    assert clip["outcome"] == "made" and clip["pcm_sha256"] != model.clip["pcm_sha256"]


def test_three_sentences_in_one_call_are_three_clips(model, spoken, tmp_path):
    if not model.case.rows:
        assert "batching" in str(model.case.refused)
        return
    _, child = spoken(model.body | {"batching": {"size": 3}})
    first, again = (together(child, tmp_path)["clips"] for _ in range(2))
    hashes = [row["pcm_sha256"] for row in first]
    assert [row["outcome"] for row in first] == ["made"] * 3 and len(set(hashes)) == 3
    assert hashes == [row["pcm_sha256"] for row in again]


def answer_to(child, body):
    """The sentence with which a child that holds a model refuses another configuration; None where it takes it."""
    child.process.stdin.write(json.dumps(child._load | {"configuration": body}) + "\n")
    child.process.stdin.flush()
    return json.loads(child._lines.get(timeout=120)).get("error")


def test_what_a_model_has_not_is_refused_in_a_sentence(model):
    asked = NOT_FOR_THEM + model.case.refused
    if model.case.words:
        asked += (({"voice": {"reference": "ab" * 32}}, "give voice.reference_text, too"),)
    answers = [answer_to(model.child, model.body | {"sampling": {}} | section) for section, _ in asked]
    assert [says for (_, says), answer in zip(asked, answers, strict=True) if says not in (answer or "")] == [], answers


def test_a_codec_that_is_not_on_the_worker_is_told_before_anything_is_said(tiny_zonos2, spoken):
    with pytest.raises(ChildRefused, match="The model's codec tiny/dac can't be loaded on this worker"):
        spoken({name: value for name, value in tiny_zonos2.items() if name != "runtime"})


def test_fish_takes_its_codec_from_elsewhere_and_others_take_none(tiny_fish, tiny, spoken, tmp_path):
    """The codec's folder decides the sound, and what it is goes on record; a folder without one is a sentence."""
    from safetensors.numpy import load_file

    own = Path(tiny_fish["model"]["path"])
    weights = load_file(own / "codec.safetensors")
    (elsewhere := tmp_path / "codec").mkdir()
    save_file(
        {name: value * 0.5 if name.startswith("decoder") else value for name, value in weights.items()}, elsewhere / "codec.safetensors"
    )
    (elsewhere / "config.json").write_text("{}")

    def with_codec(body, folder, **more):
        return body | {"model": body["model"] | {"codec": {"path": str(folder)} | more}}

    (plain, _), (same, _) = spoken(tiny_fish), spoken(with_codec(tiny_fish, own))
    other, child = spoken(with_codec(tiny_fish, elsewhere))
    assert plain["pcm_sha256"] == same["pcm_sha256"] != other["pcm_sha256"] and len(child.report["digests"]["model.codec"]) == 64
    for body, says in (
        (with_codec(tiny_fish, tmp_path / "none"), "no model at"),
        (with_codec(tiny_fish, elsewhere, sha256="0" * 64), "has sha256"),
        (with_codec(tiny, own), "takes no other"),
    ):
        with pytest.raises(ChildRefused, match=says):
            spoken(body)
