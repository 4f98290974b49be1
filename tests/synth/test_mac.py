"""What a Mac's worker needs of the Mac, as far as it can be tested without one."""

import plistlib
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from synth import launchd, probe


def test_the_agent_starts_this_worker_keeps_the_mac_awake_and_holds_no_secret(tmp_path):
    shell = {"EARWITNESS_TOKEN": "ew_secret", "EARWITNESS_MODULES": "half", "HF_HOME": "/models", "PATH": "/bin", "PYTHONPATH": "/levers"}
    plist = launchd.agent(tmp_path / "a folder", "https://ears.example.org", tmp_path / "token", tmp_path / "logs", "redis://b", shell)
    made = plistlib.loads(plist)
    assert b"ew_secret" not in plist
    assert made["EnvironmentVariables"] == {"EARWITNESS_MODULES": "half", "HF_HOME": "/models", "PYTHONPATH": "/levers"}
    assert made["ProgramArguments"] == [
        "/usr/bin/caffeinate", "-is", sys.executable, str(tmp_path / "a folder" / "manage.py"), "worker", "--host",
        "https://ears.example.org", "--token-file", str(tmp_path / "token"), "--broker", "redis://b",
    ]  # fmt: skip
    assert made["RunAtLoad"] and made["KeepAlive"] == {"SuccessfulExit": False} and made["LimitLoadToSessionType"] == "Aqua"


def test_an_old_agent_is_taken_out_before_the_new_one_is_started(tmp_path):
    asked = []

    def call(command):
        asked.append(command[1:3])
        return 0, ""

    place = launchd.install(b"plist", tmp_path, call)
    assert place.read_bytes() == b"plist" and place.stat().st_mode & 0o777 == 0o600
    assert [a[0] for a in asked] == ["bootout", "bootstrap"] and asked[0][1].startswith("gui/")
    assert launchd.remove(tmp_path, call) and not place.exists() and not launchd.remove(tmp_path, call)


def test_an_agent_that_ends_slowly_is_waited_for_and_then_launchd_is_quoted(tmp_path, monkeypatch):
    monkeypatch.setattr(launchd, "PAUSES_S", (0, 0, 0))
    answers = iter([(0, ""), (37, "Operation already in progress"), (5, "Input/output error"), (0, "")])
    assert launchd.install(b"plist", tmp_path, lambda command: next(answers)).exists()
    with pytest.raises(launchd.NotInstalled, match="Bootstrap failed: 5.*log in on the Mac's screen"):
        launchd.install(b"plist", tmp_path, lambda command: (5, "Bootstrap failed: 5"))


@pytest.mark.parametrize(
    ("script", "system", "says"),
    [
        ("import os; os.abort()", "Darwin", "ended by signal 6.*leave virtual machines out"),
        ("raise ImportError('no mlx here')", "Linux", r"ended with 1 \(ImportError: no mlx here\)"),
        ("""print('{"metal": false, "device": "cpu", "right": true}')""", "Darwin", "no Metal for MLX"),
        ("""print('{"metal": false, "device": "cpu", "right": false}')""", "Linux", "computes wrongly"),
    ],
)
def test_what_keeps_mlx_from_working_is_said_in_a_sentence(script, system, says):
    import re

    assert re.search(says, probe.mlx(script, system).trouble)


def test_mlx_works_here_on_the_processor():
    found = probe.mlx()
    assert found.trouble == "" and found.device


def test_a_token_comes_from_its_file_and_an_open_file_is_told(tmp_path, capsys, monkeypatch):
    from synth.management.commands import worker

    kept = tmp_path / "token"
    kept.write_text("ew_secret\n")
    kept.chmod(0o644)
    command = worker.Command()
    assert command._kept(kept) == "ew_secret"
    assert "chmod 600" in capsys.readouterr().err
    with pytest.raises(CommandError, match="can't be read"):
        command._kept(tmp_path / "nothing")
    monkeypatch.setattr(worker.platform, "system", lambda: "Darwin")
    monkeypatch.setattr(worker, "from_keychain", lambda: "ew_chain")
    assert command._kept(None) == "ew_chain"


def test_installing_is_for_macs_and_a_worker_without_a_token_says_where_to_get_one(settings):
    settings.WORKER_TOKEN = ""
    with pytest.raises(CommandError, match="No token"):
        call_command("worker", host="http://localhost:1")
    with pytest.raises(CommandError, match="for Macs"):
        call_command("worker", host="http://localhost:1", token="t", install=True)


def test_a_machine_where_mlx_does_not_work_does_not_start(settings, tmp_path, monkeypatch):
    settings.VAR, settings.WORKER_MODULES = tmp_path, []
    monkeypatch.setattr(probe, "mlx", lambda: probe.Found(False, "", "This Mac has no Metal for MLX."))
    with pytest.raises(CommandError, match="no Metal"):
        call_command("worker", host="http://localhost:1", token="t")
    assert Path(tmp_path / "run" / "worker.lock").exists()
