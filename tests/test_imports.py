"""Imports go one way: gate -> listening -> synth; pure packages import no Django."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FORBIDDEN = {
    "synth": {"listening", "gate"},
    "listening": {"gate"},
    "gate/statistics": {"django", "synth", "listening", "celery"},
    "gate/metrics": {"django", "synth", "listening", "celery"},
    "synth/engine": {"django", "celery", "gate", "listening"},
}
ALONE = {"gate/decide.py": {"django"}, "synth/configuration.py": {"django"}, "synth/pcm.py": {"django"}, "synth/pauses.py": {"django", "synth", "gate", "soundfile"},
         "synth/streaming.py": {"django", "numpy", "synth", "gate"}, "listening/audio.py": {"django"},
         "synth/engine/supervise.py": {"numpy", "mlx", "mlx_audio"}, "synth/worker.py": {"numpy", "mlx", "mlx_audio", "django"}}  # fmt: skip
#: Samples to numbers, with NumPy alone: the metrics may have them from where the worker needs them, too.
SAMPLES_ONLY = {"synth.pauses"}


def imported(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize(("place", "names"), [*FORBIDDEN.items(), *ALONE.items()])
def test_nothing_reaches_where_it_must_not(place, names):
    path = ROOT / place
    files = [path] if path.is_file() else [f for f in path.rglob("*.py") if "migrations" not in f.parts]
    assert files
    wrong = [
        (str(f.relative_to(ROOT)), name) for f in files for name in imported(f) if name.split(".")[0] in names and name not in SAMPLES_ONLY
    ]
    assert wrong == []
