"""A Mac's worker as a LaunchAgent of the logged-in user, kept awake while it runs."""

from __future__ import annotations

import os
import plistlib
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

#: Between tries to start it.
PAUSES_S = (1.0, 2.0, 4.0, 8.0, 15.0)
LABEL = "org.earwitness.worker"
Run = Callable[[list[str]], tuple[int, str]]


class NotInstalled(Exception):
    """What launchd said, and what to do."""


def carried(environment: Mapping[str, str]) -> dict[str, str]:
    """What of a shell's environment the agent needs to be the same worker; never the token."""
    wanted = ("EARWITNESS_", "HF_", "PYTHONPATH", "REQUESTS_CA_BUNDLE", "SSL_CERT_")
    return {name: value for name, value in sorted(environment.items()) if name.startswith(wanted) and name != "EARWITNESS_TOKEN"}


def agent(base: Path, host: str, token_file: Path, logs: Path, broker: str = "", environment: Mapping[str, str] | None = None) -> bytes:
    """The property list. A LaunchAgent, not a daemon: only a logged-in session has the GPU. `caffeinate` keeps the machine from sleeping.

    The token stays in its file: a property list can be read by every program of the user.
    """
    command = [sys.executable, str(base / "manage.py"), "worker", "--host", host, "--token-file", str(token_file)]
    command += ["--broker", broker] if broker else []
    return plistlib.dumps(
        {
            "Label": LABEL, "ProgramArguments": ["/usr/bin/caffeinate", "-is", *command], "WorkingDirectory": str(base), "RunAtLoad": True,
            "EnvironmentVariables": carried(environment or {}),
            "KeepAlive": {"SuccessfulExit": False}, "ThrottleInterval": 60, "ProcessType": "Interactive",
            "LimitLoadToSessionType": "Aqua", "StandardOutPath": str(logs / "worker.log"), "StandardErrorPath": str(logs / "worker.log"),
        }
    )  # fmt: skip


def run(command: list[str]) -> tuple[int, str]:
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, (done.stderr or done.stdout).strip()


def install(plist: bytes, home: Path, call: Run = run) -> Path:
    """Writes the agent and starts it. An agent that is there is taken out first: a mere restart would keep its old arguments.

    Raises NotInstalled.
    """
    place = home / "Library" / "LaunchAgents" / f"{LABEL}.plist"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(plist)
    place.chmod(0o600)
    domain = f"gui/{os.getuid()}"
    call(["launchctl", "bootout", f"{domain}/{LABEL}"])
    said = ""
    for pause in PAUSES_S:  # the one that is taken out needs a moment to end
        code, said = call(["launchctl", "bootstrap", domain, str(place)])
        if code == 0:
            return place
        time.sleep(pause)
    raise NotInstalled(f"launchd did not take the worker ({said or 'it said nothing'}): log in on the Mac's screen, and try again.")


def remove(home: Path, call: Run = run) -> bool:
    """Stops the agent and takes it out; False when there was none."""
    place = home / "Library" / "LaunchAgents" / f"{LABEL}.plist"
    call(["launchctl", "bootout", f"gui/{os.getuid()}/{LABEL}"])
    if not place.exists():
        return False
    place.unlink()
    return True
