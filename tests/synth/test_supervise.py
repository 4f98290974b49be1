"""The child process, with an engine of tones loaded through the extension point of users' engines."""

import os
import time
from pathlib import Path

import pytest

from synth.engine.supervise import Child, ChildFailed, ChildRefused, environment, fast_blas, preloadable
from tests import factories

ORDER = {"id": 1, "text": "Hello there.", "language": "en", "seed": 7}


@pytest.fixture
def start(tmp_path):
    children = []

    def start(modules=("tests.tone",), body=None, **extra):
        child = Child(body or factories.tone(**extra), "digest", tmp_path, list(modules))
        children.append(child)
        child.start(limit_s=60)
        return child

    yield start
    for child in children:
        child.end()


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_clip_comes_back_with_its_file_and_figures(start, tmp_path):
    clip = start().clip(ORDER | {"out": str(tmp_path)})
    assert clip["outcome"] == "made"
    assert (tmp_path / f"{clip['file_sha256']}.flac").exists()
    figures = clip["figures"]
    assert figures["rtf_wall_over_audio"] == pytest.approx(figures["wall_s"] / figures["audio_s"])
    assert figures["samples"] == round(figures["audio_s"] * figures["sample_rate"])


def test_the_seed_and_the_text_reach_the_engine_and_nothing_else_changes_the_hash(start, tmp_path):
    one, two = start(), start()
    out = {"out": str(tmp_path)}
    hashes = [
        c.clip(o | out)["pcm_sha256"]
        for c, o in ((one, ORDER), (two, ORDER), (one, ORDER | {"seed": 8}), (one, ORDER | {"text": "Other."}))
    ]
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 3


def test_an_immediate_end_of_speech_is_an_empty_result(start, tmp_path):
    clip = start(empty_on="Hello").clip(ORDER | {"out": str(tmp_path)})
    assert (clip["outcome"], clip["error"]) == ("empty", "the model ended before it said anything")


def test_a_clip_that_raises_is_a_result_and_the_run_goes_on(start, tmp_path):
    child = start(raise_on="Hello")
    clip = child.clip(ORDER | {"out": str(tmp_path)})
    assert (clip["outcome"], clip["error"]) == ("error", "ValueError: asked to fail")
    assert child.clip(ORDER | {"text": "Bye.", "out": str(tmp_path)})["outcome"] == "made"


def test_a_child_that_dies_says_how(start, tmp_path):
    with pytest.raises(ChildFailed, match="ended by SIGKILL"):
        start(crash_on="Hello").clip(ORDER | {"out": str(tmp_path)})


def test_a_child_that_hangs_is_stopped(start, tmp_path):
    child = start(hang_on="Hello")
    with pytest.raises(ChildFailed, match="no progress"):
        child.clip(ORDER | {"out": str(tmp_path)}, limit_s=1)
    assert not child.alive()


def test_the_child_gets_no_key_to_the_host(monkeypatch):
    monkeypatch.setenv("EARWITNESS_TOKEN", "ew_secret")
    assert "ew_secret" not in environment({}).values()


def test_the_child_goes_when_its_supervisor_is_gone(start):
    child = start()
    child.process.stdin.close()
    deadline = time.monotonic() + 10
    while child.alive() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not child.alive()


@pytest.mark.parametrize(
    ("modules", "body", "says"),
    [
        ([], factories.tone(), "not on this worker's list"),
        (["tests.nothing"], factories.tone() | {"engine": "tests.nothing:Engine"}, "can't be imported"),
        ([], factories.tone() | {"engine": "nowhere"}, "neither bundled nor an entry point"),
        (["tests.tone"], factories.tone() | {"model": {"id": "missing/model"}}, "missing/model can't be loaded"),
    ],
)
def test_what_can_not_run_is_refused_in_one_sentence(start, modules, body, says):
    with pytest.raises(ChildRefused, match=says):
        start(modules, body)


def test_a_real_blas_is_found_on_linux():
    assert fast_blas() == "" or Path(fast_blas()).exists()


def test_a_library_in_a_folder_with_a_space_can_be_preloaded(tmp_path):
    folder = tmp_path / "two words"
    folder.mkdir()
    (folder / "lib.so").write_text("x")
    name = preloadable(str(folder / "lib.so"))
    assert " " not in name and Path(name).read_text() == "x"
    assert preloadable("/lib/plain.so") == "/lib/plain.so"
