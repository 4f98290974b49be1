"""Tiny checkpoints of real classes, and children that speak with them."""

import subprocess
import sys
from pathlib import Path

import pytest

from synth.engine.supervise import Child

ROOT = Path(__file__).resolve().parent.parent.parent


def _written(folder, kind):
    command = [sys.executable, "-m", "tests.synth.tiny_qwen3", str(folder), kind]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return {"name": "tiny", "model": {"path": str(folder)}, "sampling": {"max_tokens": 6}}


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    pytest.importorskip("mlx_audio")
    return _written(tmp_path_factory.mktemp("models") / "tiny", "custom_voice") | {"voice": {"preset": "ryan"}}


@pytest.fixture(scope="session")
def tiny_base(tmp_path_factory):
    pytest.importorskip("mlx_audio")
    return _written(tmp_path_factory.mktemp("models") / "tiny-base", "base")


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
