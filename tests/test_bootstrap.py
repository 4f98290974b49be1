import io
import json
import os
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from config import bootstrap

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(
    ("output", "says"),
    [
        ("OSError: [Errno 28] No space left on device", "the disk is full: free 330 MB under"),
        ("ERROR: No matching distribution found for mlx==0.32.4", "no wheel for this machine"),
        ("error: Distribution `mkl==1` can't be installed because it has no wheels with a matching platform", "no wheel for this machine"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE", "differs from the locked one"),
        ("error sending request for url: dns error: Temporary failure in name resolution", "check the network"),
        ("PermissionError: [Errno 13] Permission denied: 'x'", "no permission to write"),
        ("something nobody has seen\n\n", "the installer said: something nobody has seen"),
        ("", "the installer said: nothing"),
    ],
)
def test_what_an_installer_prints_becomes_one_sentence_with_a_remedy(output, says):
    sentence = bootstrap.remedy(output, bootstrap.STAGES["web"])
    assert says in sentence and "\n" not in sentence


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A project folder of its own, nothing installed."""
    monkeypatch.setattr(bootstrap, "BASE", tmp_path)
    monkeypatch.setattr(bootstrap, "VENV", tmp_path / ".venv")
    for stage in bootstrap.STAGES.values():
        (tmp_path / stage.lock).write_text("")
    return tmp_path


def test_too_little_room_is_said_before_anything_is_downloaded(elsewhere, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(0, 0, 100 * 2**20))
    with pytest.raises(bootstrap.BootstrapError, match="needs 330 MB and 100 MB are free"):
        bootstrap.install("web")
    assert not (elsewhere / ".venv").exists()


def test_an_installer_that_fails_leaves_no_stamp(elsewhere, monkeypatch):
    (elsewhere / "requirements.lock").write_text("no-such-package-anywhere==1.0 --hash=sha256:" + "0" * 64 + "\n")
    monkeypatch.setattr(bootstrap, "_make_venv", lambda: None)
    script = "print('ERROR: No matching distribution found for x'); raise SystemExit(1)"
    monkeypatch.setattr(bootstrap, "_installer", lambda lock: [sys.executable, "-c", script])
    with pytest.raises(bootstrap.BootstrapError, match="The web part could not be installed: a package has no wheel"):
        bootstrap.install("web")
    assert not bootstrap.done("web")


def test_an_installed_stage_is_stamped_and_a_new_lock_undoes_it(elsewhere, monkeypatch):
    (elsewhere / ".venv").mkdir()
    calls = []
    monkeypatch.setattr(bootstrap, "_make_venv", lambda: None)
    monkeypatch.setattr(
        bootstrap, "_installer", lambda lock: calls.append(lock) or [sys.executable, "-c", "print('Downloading x (1.5MiB)')"]
    )
    seen = []
    for _ in range(2):
        bootstrap.install("web", lambda line, megabytes: seen.append(megabytes))
    assert len(calls) == 1 and bootstrap.done("web") and seen == [1.5]
    (elsewhere / "requirements.lock").write_text("# newer")
    assert not bootstrap.done("web")


def test_the_background_stage_writes_its_progress_and_its_failure(elsewhere, monkeypatch):
    (elsewhere / ".venv").mkdir()
    monkeypatch.setattr(bootstrap, "_make_venv", lambda: None)
    monkeypatch.setattr(bootstrap, "_room", lambda stage: None)
    monkeypatch.setattr(bootstrap, "say", lambda text: None)
    progress = elsewhere / "install.json"
    monkeypatch.setattr(bootstrap, "_installer", lambda lock: [sys.executable, "-c", "raise SystemExit('No space left on device')"])
    assert bootstrap.background(progress) == 1
    assert json.loads(progress.read_text())["state"] == "failed" and "disk is full" in json.loads(progress.read_text())["text"]
    monkeypatch.setattr(bootstrap, "_installer", lambda lock: [sys.executable, "-c", ""])
    assert bootstrap.background(progress) == 0
    assert json.loads(progress.read_text())["state"] == "installed"


@pytest.mark.parametrize(
    ("argv", "now", "later"),
    [
        (["manage.py", "up"], ("web",), ("speech",)), (["manage.py", "up", "--no-worker"], ("web",), ("speech",)), (["manage.py"], ("web",), ()),
        (["manage.py", "test"], ("web", "speech", "dev"), ()), (["manage.py", "worker"], ("web", "speech"), ()), (["manage.py", "verdict", "x"], ("web",), ()),
    ],
)  # fmt: skip
def test_each_command_brings_what_it_needs(argv, now, later):
    assert bootstrap.wanted(argv) == (now, later)


def older_python():
    candidates = [shutil.which(f"python3.{minor}") for minor in (10, 9, 8)]
    pyenv = os.environ.get("PYENV_ROOT") or (Path(sys.base_prefix).parent if "versions" in sys.base_prefix else None)
    if pyenv:
        candidates += [str(p) for p in Path(pyenv).glob("**/3.10*/bin/python3.10")]
    runs = (c for c in candidates if c and subprocess.run([c, "-c", ""], capture_output=True).returncode == 0)
    return next(runs, None)


def test_a_python_that_is_too_old_is_one_sentence():
    source = (ROOT / "manage.py").read_text()
    head = source[: source.index("def main")]
    shown = io.StringIO()
    fake = type("V", (tuple,), {})((3, 9, 1))
    with pytest.raises(SystemExit) as ended:
        exec(compile(head.replace("sys.version_info", "VERSION"), "manage.py", "exec"), {"VERSION": fake, "print": shown.write})  # noqa: S102
    assert str(ended.value).startswith("Earwitness needs Python 3.11 or newer, this is 3.9")
    old = older_python()
    if old:
        run = subprocess.run([old, str(ROOT / "manage.py"), "up"], capture_output=True, text=True, cwd=ROOT)
        assert run.returncode == 1 and run.stderr.startswith("Earwitness needs Python 3.11") and run.stderr.count("\n") == 1
