"""The linter and the type checker are part of the suite."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def tracked():
    return subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize("command", [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]], ids=lambda c: " ".join(c[:2]))
def test_the_tools_find_nothing(command):
    run = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def test_no_migration_is_missing(db):
    from django.core.management import call_command

    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


def test_no_committed_file_names_a_machine_or_an_index():
    wrong = []
    for name in tracked():
        if name.endswith((".png", ".svg")):
            continue
        text = (ROOT / name).read_text(encoding="utf-8")
        if re.search(r"(?<![\w.])/(?:root|home)/|pypi\.org|pythonhosted|--index-url|--extra-index", text) and name != "tests/test_code.py":
            wrong.append(name)
    assert wrong == []


def test_locks_carry_hashes():
    for lock in ROOT.glob("requirements*.lock"):
        text = lock.read_text()
        assert text.count("==") and all("--hash=sha256:" in block for block in re.split(r"\n(?=\S)", text) if "==" in block)


def test_modules_stay_small():
    long = {
        n: len((ROOT / n).read_text().splitlines())
        for n in tracked()
        if n.endswith(".py") and "migrations" not in n and not n.startswith("tests/")
    }
    assert {n: lines for n, lines in long.items() if lines > 400} == {}
