"""Tiny checkpoints of real classes, and children that speak with them."""

import subprocess
import sys
from pathlib import Path

import pytest

from synth.engine.supervise import Child

ROOT = Path(__file__).resolve().parent.parent.parent


def _written(maker, folder, *kind):
    command = [sys.executable, "-m", f"tests.synth.{maker}", str(folder), *kind]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return {"name": "tiny", "model": {"path": str(folder)}}


def _beside_a_hub(body):
    """Codecs that are fetched by name are in the folder `hub` beside the checkpoint."""
    return body | {"runtime": {"env": {"HF_HUB_CACHE": str(Path(body["model"]["path"]).parent / "hub")}}}


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    pytest.importorskip("mlx_audio")
    body = _written("tiny_qwen3", tmp_path_factory.mktemp("models") / "tiny", "custom_voice")
    return body | {"sampling": {"max_tokens": 6}, "voice": {"preset": "ryan"}}


@pytest.fixture(scope="session")
def tiny_base(tmp_path_factory):
    pytest.importorskip("mlx_audio")
    return _written("tiny_qwen3", tmp_path_factory.mktemp("models") / "tiny-base", "base") | {"sampling": {"max_tokens": 6}}


@pytest.fixture(scope="session")
def tiny_zonos2(tmp_path_factory):
    pytest.importorskip("mlx_audio")
    return _beside_a_hub(_written("tiny_zonos2", tmp_path_factory.mktemp("zonos2") / "tiny")) | {"sampling": {"max_tokens": 12}}


@pytest.fixture(scope="session")
def tiny_fish(tmp_path_factory):
    pytest.importorskip("mlx_audio")
    return _written("tiny_fish", tmp_path_factory.mktemp("fish") / "tiny") | {"sampling": {"max_tokens": 6}}


@pytest.fixture(scope="session")
def tiny_csm(tmp_path_factory):
    pytest.importorskip("mlx_audio")
    body = _beside_a_hub(_written("tiny_csm", tmp_path_factory.mktemp("csm") / "tiny"))
    return body | {"sampling": {"extra": {"max_audio_length_ms": 240}}}


@pytest.fixture
def spoken(tmp_path):
    """Says something with a configuration: the clip, and the child it was said by."""
    children = []

    def spoken(body, **order):
        child = Child(body, "digest", tmp_path, order.pop("modules", []))
        children.append(child)
        child.start()
        clip = {"id": 1, "text": "The ferry leaves.", "language": "en", "seed": 3, "out": str(tmp_path)}
        return child.clip(clip | order), child

    yield spoken
    for child in children:
        child.end()
