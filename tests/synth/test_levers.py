"""What each lever changes on a loaded model, what it leaves alone to the bit, and the sentence it refuses with."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth import pcm
from synth.engine.pieces import pieces
from synth.engine.protocol import voice_file
from synth.engine.supervise import ChildRefused
from synth.pcm import decode

pytestmark = pytest.mark.slow


def sound(clip):
    return decode(Path(clip["file"])).samples


def adapter(body, name="adapter-mlx", **changes):
    return body | {"adapter": {"path": str(Path(body["model"]["path"]).parent / name), "scale": 2.0} | changes}


# -- adapters -------------------------------------------------------------------------------------------------------------


def test_an_adapter_is_heard_and_its_dense_merge_is_the_same_sound(tiny, spoken):
    (bare, _), (wrapped, child) = spoken(tiny), spoken(adapter(tiny))
    merged, by = spoken(adapter(tiny, apply="merge-dense"))
    assert child.report["effects"]["adapter"] == {"wrap": 4} and len(child.report["digests"]["adapter"]) == 64
    assert by.report["effects"]["adapter"] == {"merge-dense": 4}
    assert bare["pcm_sha256"] != wrapped["pcm_sha256"]
    assert len(sound(merged)) == len(sound(wrapped)) and np.abs(sound(merged) - sound(wrapped)).max() < 0.01
    assert by.report["notes"]["adapter"]["largest"] < 1e-5  # float32 weights: within 1 % of unmerged by far


def test_names_as_peft_writes_them_are_the_same_adapter(tiny, spoken):
    assert spoken(adapter(tiny))[0]["pcm_sha256"] == spoken(adapter(tiny, "adapter-peft"))[0]["pcm_sha256"]


def test_a_merge_into_quantised_weights_keeps_their_bits_and_says_how_far_it_is(tiny, spoken):
    quantised = {"quantisation": [{"match": "mlp", "bits": 8, "group_size": 32}]}
    clip, child = spoken(adapter(tiny, apply="merge") | quantised)
    assert clip["outcome"] == "made" and child.report["effects"]["quantisation"] == {"mlp": 12}
    assert child.report["effects"]["adapter"] == {"merge": 4}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"path": "/nowhere/adapter.safetensors"}, "no adapter at"),
        ({"sha256": "0" * 64}, "has sha256"),
    ],
)
def test_an_adapter_that_is_not_there_or_another_one_is_refused(tiny, spoken, changes, says):
    with pytest.raises(ChildRefused, match=says):
        spoken(adapter(tiny, **changes))


def test_an_adapter_for_another_model_is_refused(tiny, spoken, tmp_path):
    made = tmp_path / "other.safetensors"
    from safetensors.numpy import save_file

    ones = np.ones((64, 4), np.float32)
    save_file({"talker.model.layers.9.mlp.up_proj.lora_a": ones, "talker.model.layers.9.mlp.up_proj.lora_b": ones.T.copy()}, made)
    with pytest.raises(ChildRefused, match="which this model has not"):
        spoken(adapter(tiny) | {"adapter": {"path": str(made), "scale": 1.0}})
    save_file(
        {"talker.model.layers.0.mlp.up_proj.lora_a": ones[:9].copy(), "talker.model.layers.0.mlp.up_proj.lora_b": ones.T.copy()}, made
    )
    with pytest.raises(ChildRefused, match="another shape than talker.model.layers.0.mlp.up_proj"):
        spoken(adapter(tiny) | {"adapter": {"path": str(made), "scale": 1.0}})
    path, b = "talker.model.layers.0.mlp.up_proj", np.ones((4, 128), np.float32)
    for tensors, says in (
        ({f"{path}.lora_a": ones}, "no complete adapter"),
        ({f"{path}.lora_a": ones, f"{path}.lora_b": b, "lm_head.weight": ones}, "lm_head.weight, which is more than a low-rank pair"),
        ({f"{path}.lora_A": ones, f"{path}.lora_B": b}, "more than a low-rank pair"),
        ({f"{path}.lora_a": ones, f"{path}.lora_b": 0 * b}, "no_effect"),
        ({f"{path}.lora_a": ones, f"{path}.lora_b": np.nan * b}, "not finite"),
    ):
        save_file(tensors, made)
        with pytest.raises(ChildRefused, match=says):
            spoken(adapter(tiny) | {"adapter": {"path": str(made), "scale": 1.0, "apply": "merge"}})
    save_file({f"{path}.lora_a": ones, f"{path}.lora_b": b}, made)
    for settings, says in (({"lora_alpha": 8, "r": 4}, "make it 2"), ({"use_dora": True}, "sets use_dora")):
        (tmp_path / "adapter_config.json").write_text(json.dumps(settings))
        with pytest.raises(ChildRefused, match=says):
            spoken(adapter(tiny) | {"adapter": {"path": str(made), "scale": 1.0}})


# -- compiled ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clips", [2, pytest.param(100, marks=pytest.mark.long)])
def test_the_compiled_frame_is_bit_identical_whatever_is_said_and_however_it_is_drawn(tiny, spoken, clips):
    for options in ({}, {"temperature": 0.0}, {"top_p": 0.9, "top_k": 20}):
        body = tiny | {"sampling": tiny["sampling"] | options}
        (first, stock), (second, compiled) = spoken(body), spoken(body | {"compile": ["code-predictor"]})
        assert compiled.report["effects"]["compile.code-predictor"] == 15 and "lever:code-predictor" in compiled.report["digests"]
        assert first["pcm_sha256"] == second["pcm_sha256"]
        for seed in range(clips):
            order = {"id": seed, "text": f"Sentence number {seed}.", "language": "en", "seed": seed, "out": str(Path(first["file"]).parent)}
            assert stock.clip(order)["pcm_sha256"] == compiled.clip(order)["pcm_sha256"]


def test_the_compiled_sampler_draws_the_same_and_is_at_home_with_the_compiled_frame(tiny, spoken):
    plain, _ = spoken(tiny)
    sampler, child = spoken(tiny | {"compile": ["sampler"]})
    both, by = spoken(tiny | {"compile": ["code-predictor", "sampler"]})
    assert len(by.tensors()) == len(child.tensors())  # what is compiled is still there to be compared
    assert child.report["effects"]["compile.sampler"] == 1
    assert plain["pcm_sha256"] == sampler["pcm_sha256"] == both["pcm_sha256"]


def test_a_model_without_a_code_predictor_says_so(spoken):
    models = Path(__file__).resolve().parent.parent.parent / "var" / "models"
    if not (models / "kokoro-82m" / "config.json").exists():
        pytest.skip("the models are not made: run manage.py test")
    kokoro = {"name": "k", "model": {"path": str(models / "kokoro-82m")}, "voice": {"preset": "jm_kumo"}}
    for section, says in (
        ({"compile": ["code-predictor"]}, "no code predictor"),
        ({"compile": ["sampler"]}, "nothing can reach"),
        ({"sampling": {"temperature": {"start": 1.0, "floor": 0.5, "steps": 9}}}, "nothing can reach"),
        ({"sampling": {"cfg_scale": 2.0}}, "no classifier-free guidance"),
        ({"compile": ["mine.own:thing"]}, "list of modules"),
    ):
        with pytest.raises(ChildRefused, match=says):
            spoken(kokoro | section)


# -- sampling ---------------------------------------------------------------------------------------------------------------


def test_a_schedule_of_the_temperature_is_heard_and_a_flat_one_is_its_number(tiny, spoken):
    def said(temperature, **more):
        return spoken(tiny | {"sampling": tiny["sampling"] | {"temperature": temperature}} | more)

    flat, _ = said(0.8)
    level, _ = said({"start": 0.8, "floor": 0.8, "steps": 5})
    falling, child = said({"start": 0.8, "floor": 0.1, "steps": 8})
    compiled, _ = said({"start": 0.8, "floor": 0.1, "steps": 8}, compile=["code-predictor"])
    assert flat["pcm_sha256"] == level["pcm_sha256"] != falling["pcm_sha256"] == compiled["pcm_sha256"]
    assert child.report["effects"]["sampling.temperature"] == 8


# -- voices -----------------------------------------------------------------------------------------------------------------


def reference(folder, hertz=180, amplitude=0.3, rate=16000):
    seconds = np.arange(2 * rate) / rate
    samples = (amplitude * np.sin(2 * np.pi * hertz * seconds) * np.abs(np.sin(2 * np.pi * 3 * seconds))).astype(np.float32)
    data = pcm.encode_flac(samples, rate)
    decoded = pcm.decode(data)
    name = pcm.pcm_sha256(decoded.samples, rate)
    file = voice_file(folder, name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return {"voice": {"reference": name}}


def test_a_cloned_voice_is_heard_and_another_one_is_another(tiny_base, spoken, tmp_path):
    tiny_base = tiny_base | {"sampling": {"max_tokens": 24}}  # a few tokens of a random model may be the same for two voices
    one, child = spoken(tiny_base | reference(tmp_path))
    other, _ = spoken(tiny_base | reference(tmp_path, 400))
    bare, _ = spoken(tiny_base)
    assert child.report["effects"]["voice.reference"] == 1
    assert len({c["pcm_sha256"] for c in (one, other, bare)}) == 3


def test_what_can_not_be_cloned_from_or_with_is_refused_in_a_sentence(tiny, tiny_base, spoken, tmp_path):
    with pytest.raises(ChildRefused, match="silent"):
        spoken(tiny_base | reference(tmp_path, 5, amplitude=0.0))
    swapped = reference(tmp_path, 300)
    voice_file(tmp_path, swapped["voice"]["reference"]).write_bytes(
        voice_file(tmp_path, reference(tmp_path)["voice"]["reference"]).read_bytes()
    )
    with pytest.raises(ChildRefused, match="is damaged"):
        spoken(tiny_base | swapped)
    with pytest.raises(ChildRefused, match="can't be used on this worker"):
        spoken(tiny_base | {"voice": {"reference": "ab" * 32}})
    with pytest.raises(ChildRefused, match="ignores recordings"):
        spoken(tiny | reference(tmp_path))


# -- long text, fused products ------------------------------------------------------------------------------------------------


def test_text_is_cut_where_a_speaker_pauses_and_nothing_is_lost():
    text = "The ferry was late. Nobody minded, because it rained; we waited inside. Then it came."
    assert pieces(text, 200) == [text]
    assert pieces(text, 40) == ["The ferry was late.", "Nobody minded, because it rained;", "we waited inside. Then it came."]
    assert pieces("雨が降った。船は遅れた。皆は待った。", 12) == ["雨が降った。船は遅れた。", "皆は待った。"]
    assert pieces("वह आया। वह गया।", 8) == ["वह आया।", "वह गया।"]
    assert pieces("Donaudampfschifffahrt is one word", 20) == ["Donaudampfschifffahrt", "is one word"]
    assert pieces("   ", 20) == []


@given(st.text(alphabet="abc .,;!?。、।", max_size=200), st.integers(20, 60))
def test_pieces_hold_all_letters_in_their_order(text, characters):
    made = pieces(text, characters)
    assert "".join("".join(made).split()) == "".join(text.split())
    assert all(len(p) <= characters or " " not in p for p in made)


def test_long_text_is_spoken_in_pieces_with_a_pause_between(tiny, spoken):
    text = "The ferry leaves early. Nobody waved at it."
    body = tiny | {"levers": [{"lever": "chunk-text", "characters": 24, "pause_ms": 200}]}
    (whole, _), (cut, child) = spoken(tiny, text=text), spoken(body, text=text)
    assert child.report["effects"]["levers.chunk-text"] == 1
    figures, samples = cut["figures"], sound(cut)
    assert figures["chunks"] == 3 and figures["durations_s"][1] == pytest.approx(0.2)
    begin = figures["seams"][0]
    assert np.abs(samples[begin : figures["seams"][1]]).max() == 0 and figures["audio_s"] > whole["figures"]["audio_s"]
    with pytest.raises(ChildRefused, match="characters is 20 or more"):
        spoken(tiny | {"levers": [{"lever": "chunk-text", "characters": 3}]})


@pytest.mark.parametrize("quantised", [False, True])
def test_fused_projections_change_the_number_of_products_and_no_sound(tiny, spoken, quantised):
    body = tiny | ({"quantisation": [{"match": "talker", "bits": 8, "group_size": 32}]} if quantised else {})
    plain, plainly = spoken(body)
    fused, child = spoken(body | {"levers": [{"lever": "fuse-projections"}]})
    assert child.report["effects"]["levers.fuse-projections"] >= 4 * 3  # talker and code predictor, two layers each
    assert child.report["notes"]["traffic"] == plainly.report["notes"]["traffic"]  # as many weights are read as before
    assert len(sound(fused)) == len(sound(plain)) and np.abs(sound(fused) - sound(plain)).max() < 1e-3
    with pytest.raises(ChildRefused, match="no_effect"):
        spoken(body | {"levers": [{"lever": "fuse-projections", "qkv": False, "gate_up": False}]})


# -- of one's own -------------------------------------------------------------------------------------------------------------


def test_the_worked_example_of_the_documentation_does_what_it_says(tiny, spoken, tmp_path, monkeypatch):
    text = (Path(__file__).resolve().parent.parent.parent / "docs" / "write-a-lever.md").read_text(encoding="utf-8")
    (tmp_path / "half.py").write_text(text.split("```python\n")[1].split("```")[0])
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    body = tiny | {"levers": [{"lever": "half:half", "match": "mlp"}]}
    (plain, _), (half, child) = spoken(tiny), spoken(body, modules=["half"])
    assert child.report["effects"]["levers.half:half"] == 15 and child.report["notes"]["half"] == {"layers": 15}
    assert plain["pcm_sha256"] != half["pcm_sha256"] and len(child.report["digests"]["lever:half:half"]) == 64
    for changed, says in (({"match": "no such layer"}, "no_effect"), ({"bits": 4}, "doesn't take these parameters")):
        with pytest.raises(ChildRefused, match=says):
            spoken(tiny | {"levers": [{"lever": "half:half"} | changed]}, modules=["half"])
    with pytest.raises(ChildRefused, match="list of modules"):
        spoken(body)
