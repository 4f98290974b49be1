"""One process that starts, watches, restarts and stops the others; what `manage.py up` runs."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil

FIRST_WAIT_S, LONGEST_WAIT_S, STEADY_S = 1.0, 30.0, 60.0
STOP_S = 10.0


class AlreadyRunning(Exception):
    """Another supervisor holds this folder; the message names it."""


@dataclass
class Child:
    """A process to keep alive. `stop_signal` asks it to end; after STOP_S it is killed."""

    name: str
    argv: list[str]
    env: dict[str, str] = field(default_factory=dict)
    stop_signal: int = signal.SIGTERM
    process: subprocess.Popen | None = None
    started: float = 0.0
    wait: float = FIRST_WAIT_S
    due: float = 0.0


def port_is_free(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise
    return True


def free_port() -> int:
    """A port of this machine that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def is_running(run: Path) -> bool:
    """Whether a supervisor holds this folder."""
    try:
        return _is(json.loads((run / "up.json").read_text())["supervisor"])
    except (OSError, ValueError, KeyError):
        return False


def _is(entry: dict) -> bool:
    """The process of then, not another that got its number, nor what is left of a killed one that nobody has collected."""
    try:
        found = psutil.Process(entry["pid"])
        return abs(found.create_time() - entry["born"]) < 2 and found.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


class Supervisor:
    """Keeps children alive with a growing pause between restarts, and leaves nothing behind."""

    def __init__(self, run: Path, logs: Path, say: Callable[[str], None]) -> None:
        self.run_dir, self.logs, self.say = run, logs, say
        run.mkdir(parents=True, exist_ok=True)
        logs.mkdir(parents=True, exist_ok=True)
        self.children: list[Child] = []
        self.stopping = False

    def take_over(self) -> None:
        """Claims the folder; ends what a killed supervisor left behind. Raises AlreadyRunning."""
        known = self.run_dir / "up.json"
        with contextlib.suppress(OSError, ValueError, KeyError):
            before = json.loads(known.read_text())
            if _is(before["supervisor"]) and before["supervisor"]["pid"] != os.getpid():
                raise AlreadyRunning(f"Earwitness is already running here (process {before['supervisor']['pid']}): stop it first.")
            for left in before["children"]:
                if _is(left):
                    self.say(f"Ending {left['name']}, left over from a run that was killed.")
                    with contextlib.suppress(psutil.Error):
                        process = psutil.Process(left["pid"])
                        process.terminate()
                        try:
                            process.wait(STOP_S)
                        except psutil.TimeoutExpired:
                            process.kill()
        self._remember()

    def _remember(self) -> None:
        def entry(pid: int, name: str) -> dict:
            try:
                return {"pid": pid, "name": name, "born": psutil.Process(pid).create_time()}
            except psutil.Error:
                return {"pid": pid, "name": name, "born": 0}

        alive = [entry(c.process.pid, c.name) for c in self.children if c.process and c.process.poll() is None]
        part = self.run_dir / "up.part"
        part.write_text(json.dumps({"supervisor": entry(os.getpid(), "up"), "children": alive}))
        part.replace(self.run_dir / "up.json")

    def add(self, child: Child) -> None:
        self.children.append(child)
        self._start(child)

    def _start(self, child: Child) -> None:
        log = (self.logs / f"{child.name}.log").open("ab")
        child.process = subprocess.Popen(
            child.argv,
            env={**os.environ, **child.env},
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        log.close()
        child.started = time.monotonic()
        self._remember()

    def check(self) -> None:
        """Restarts what has ended, each after a pause that doubles until it holds for a minute."""
        now = time.monotonic()
        for child in self.children:
            if child.process is not None and child.process.poll() is not None:
                code, child.process = child.process.returncode, None
                child.wait = FIRST_WAIT_S if now - child.started > STEADY_S else min(child.wait * 2, LONGEST_WAIT_S)
                child.due = now + child.wait
                log = self.logs / f"{child.name}.log"
                self.say(f"The {child.name} process ended ({self._how(code)}); it is started again in {child.wait:.0f} s. Its log: {log}")
            elif child.process is None and now >= child.due and not self.stopping:
                self._start(child)

    @staticmethod
    def _how(code: int) -> str:
        return f"by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def alive(self, name: str) -> bool:
        return any(c.name == name and c.process is not None and c.process.poll() is None for c in self.children)

    def stop(self) -> None:
        """Ends the children in the reverse of the order they were started in."""
        self.stopping = True
        for child in reversed(self.children):
            if child.process is None or child.process.poll() is not None:
                continue
            with contextlib.suppress(ProcessLookupError):
                child.process.send_signal(child.stop_signal)
            try:
                child.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.process.pid, signal.SIGKILL)
                child.process.wait()
        (self.run_dir / "up.json").unlink(missing_ok=True)
