"""The mlx-audio engine on the real voice, in its own process: what each section changes on a loaded model."""

import os
from pathlib import Path

import pytest

from synth.engine.supervise import Child, ChildRefused
from synth.pcm import decode

ROOT = Path(__file__).resolve().parent.parent.parent
MODELS = Path(os.environ.get("EARWITNESS_MODELS") or ROOT / "var" / "models")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (MODELS / "kokoro-82m" / "config.json").exists(), reason="the models are not made: run manage.py test"),
]
KOKORO = {"name": "kokoro", "model": {"path": "kokoro-82m"}, "voice": {"preset": "jm_kumo"}}
ORDER = {"id": 1, "text": "Hi there.", "language": "en", "seed": 7}


@pytest.fixture(scope="module")
def spoken(tmp_path_factory):
    """Says something with a configuration; children of one configuration are kept for the module."""
    out, children = tmp_path_factory.mktemp("clips"), {}

    def spoken(body=KOKORO, fresh=False, **order):
        key = repr(body)
        if fresh or key not in children:
            child = Child(body, "digest", MODELS, [])
            child.start()
            children[key + (str(len(children)) if fresh else "")] = child
        else:
            child = children[key]
        return child.clip(ORDER | {"out": str(out)} | order), child.report

    yield spoken
    for child in children.values():
        child.end()


def test_it_speaks_and_says_what_it_is(spoken):
    clip, report = spoken()
    sound = decode(Path(clip["file"]))
    assert clip["outcome"] == "made" and 0.8 < len(sound.samples) / sound.sample_rate < 3
    assert len(report["digests"]["weights"]) == 64
    assert {"mlx", "mlx-audio", "python", "platform", "device"} <= set(report["environment"])
    assert report["effects"] == {"generate": ["voice"]}


def test_one_seed_is_one_hash_in_fresh_processes_and_another_is_another(spoken):
    (one, _), (two, _), (other, _) = spoken(), spoken(fresh=True), spoken(seed=8)
    assert one["pcm_sha256"] == two["pcm_sha256"] != other["pcm_sha256"]


def test_the_voice_and_the_text_reach_the_model(spoken):
    hashes = {
        spoken()[0]["pcm_sha256"],
        spoken(text="Good night.")[0]["pcm_sha256"],
        spoken(KOKORO | {"voice": {"preset": "jf_alpha"}})[0]["pcm_sha256"],
    }
    assert len(hashes) == 3


def test_speed_reaches_the_model(spoken):
    slow, _ = spoken(KOKORO | {"voice": {"preset": "jm_kumo", "speed": 0.7}})
    assert slow["figures"]["audio_s"] > 1.2 * spoken()[0]["figures"]["audio_s"]


def test_quantisation_changes_the_modules_it_names_and_the_sound(spoken):
    rules = [{"match": r"predictor\.F0_proj", "keep": True}, {"match": r"^(bert|bert_encoder|predictor)\b", "bits": 4, "group_size": 64}]
    try:
        clip, report = spoken(KOKORO | {"quantisation": rules[1:]})
    except ChildRefused as error:  # pragma: no cover - says why in the report
        pytest.fail(str(error))
    assert report["effects"]["quantisation"] == {rules[1]["match"]: 28}
    assert clip["pcm_sha256"] != spoken()[0]["pcm_sha256"]


def test_the_folded_weight_norm_changes_no_bit(spoken):
    folded = KOKORO | {"levers": [{"lever": "fold-weight-norm"}]}
    clip, report = spoken(folded)
    assert report["effects"]["levers.fold-weight-norm"] == 89 and "lever:fold-weight-norm" in report["digests"]
    for order in ({}, {"text": "Please close the window.", "seed": 99}):
        assert spoken(folded, **order)[0]["pcm_sha256"] == spoken(**order)[0]["pcm_sha256"]
    assert clip["outcome"] == "made"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"model": {"path": "nowhere"}}, "There is no model at 'nowhere'"),
        ({"model": {"path": "kokoro-82m", "sha256": "0" * 64}}, "the configuration names 000000000000"),
        ({"sampling": {"temperature": 0.5}}, "takes no 'temperature'"),
        ({"sampling": {"extra": {"temprature": 0.5}}}, "takes no 'temprature'"),
        ({"sampling": {"temperature": {"start": 0.7, "floor": 0.4, "steps": 3}}}, "a temperature schedule is not possible"),
        ({"quantisation": [{"match": "^nothing", "bits": 4}]}, "matches no module"),
        (
            {"quantisation": [{"match": "^predictor", "bits": 4, "group_size": 128, "mode": "affine"}, {"match": "^decoder", "bits": 4}]},
            "matches no module|can't be split",
        ),
        ({"levers": [{"lever": "unheard-of"}]}, "neither bundled nor an entry point"),
        ({"levers": [{"lever": "os.path:join"}]}, "not on this worker's list"),
        ({"levers": [{"lever": "fold-weight-norm", "depth": 3}]}, "doesn't take these parameters"),
        ({"compile": ["code-predictor"]}, "no code predictor to compile"),
        ({"batching": {"size": 4}}, "one sentence at a time"),
        ({"runtime": {"version": "0.0.1"}}, "asks for mlx-audio 0.0.1"),
    ],
)
def test_what_it_can_not_do_is_refused_and_never_ignored(change, says):
    child = Child(KOKORO | change, "digest", MODELS, [])
    with pytest.raises(ChildRefused, match=says):
        child.start()


def test_an_unknown_voice_and_language_are_told(spoken):
    clip, _ = spoken(KOKORO | {"voice": {"preset": "nobody"}})
    assert clip["outcome"] == "error" and clip["error"]
    with pytest.raises(ChildRefused, match="can't speak 'ja'"):
        spoken(language="ja")
