"""The checks a Mac passes before anybody relies on what it renders: each tries here what the rest of the code takes for granted."""

from __future__ import annotations

import json
import math
import platform
import plistlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from synth import contention, desk, launchd, probe, telemetry, timed
from synth.engine.supervise import Child, ChildFailed

TEXTS = [
    "The ferry leaves the harbour at dawn.", "She kept every letter he wrote.", "Close the window before the rain comes.",
    "Nobody told the driver about the bridge.", "The garden smelled of mint and rain.",
]  # fmt: skip
#: Passes of one system may differ by this much before three blocks can't show 3 %.
SPREAD = 0.03
MAC_ONLY = "needs a Mac"


@dataclass(frozen=True)
class Check:
    name: str
    result: str  # passed, failed, or not run
    said: str
    seconds: float


class NotHere(Exception):
    """This check can't be made on such a machine, or without what it needs."""


class Failed(Exception):
    """What was found, in a sentence."""


class Acceptance:
    """One machine, one configuration that it speaks with."""

    def __init__(
        self, configuration: dict[str, Any], models: Path, modules: list[str], connection: desk.Desk | None = None, facts: Any = None
    ) -> None:
        self.configuration, self.models, self.modules, self.desk, self.facts = configuration, models, modules, connection, facts
        self.mac = platform.system() == "Darwin"

    def run(self, tell: Callable[[Check], None]) -> dict[str, Any]:
        """All checks in their order, with the report that is kept."""
        made = []
        for name, check in self.checks():
            begin = time.monotonic()
            try:
                result, said = "passed", check()
            except NotHere as error:
                result, said = "not run", str(error)
            except Failed as error:
                result, said = "failed", str(error)
            except Exception as error:  # noqa: BLE001 - a check that breaks is one that failed, and the others go on
                result, said = "failed", f"{type(error).__name__}: {error}"
            made.append(Check(name, result, said, round(time.monotonic() - begin, 1)))
            tell(made[-1])
        counts = {r: sum(c.result == r for c in made) for r in ("passed", "failed", "not run")}
        return {
            "at": datetime.now(UTC).isoformat(timespec="seconds"), "machine": platform.platform(), "python": platform.python_version(),
            "configuration": self.configuration, "accepted": self.mac and not counts["failed"] and counts["passed"] > 0, **counts,
            "checks": [asdict(c) for c in made],
        }  # fmt: skip

    def checks(self) -> list[tuple[str, Callable[[], str]]]:
        return [
            ("MLX computes on the GPU", self.gpu), ("this process never loads MLX", self.clean), ("it speaks", self.speaks),
            ("one seed is one sound, in fresh processes", self.deterministic), ("a killed child is told and replaced", self.resumes),
            ("a child that hangs is ended", self.hangs), ("passes of one system take the same time", self.spread),
            ("other programs are seen", self.contended), ("memory does not grow", self.memory), ("the machine can be read", self.readable),
            ("it stays awake and starts at login", self.stays), ("the keychain answers", self.keychain), ("the host answers", self.host),
        ]  # fmt: skip

    @contextmanager
    def child(self) -> Iterator[tuple[Child, Path]]:
        """A fresh child, with a folder for what it says."""
        made = Child(self.configuration, "", self.models, self.modules)
        with tempfile.TemporaryDirectory(prefix="earwitness-") as name:
            try:
                made.start()
                yield made, Path(name)
            finally:
                made.end()

    def said(self, child: Child, folder: Path, seed: int = 1, text: str = TEXTS[0]) -> dict[str, Any]:
        clip = child.clip({"id": 0, "text": text, "language": "en", "seed": seed, "out": str(folder)})
        if clip["outcome"] != "made":
            raise Failed(f"{text!r} could not be said: {clip['error']}")
        return clip

    # -- the checks ---------------------------------------------------------------------------------------------------------

    def gpu(self) -> str:
        found = probe.mlx()
        if found.trouble:
            raise Failed(found.trouble)
        if not found.metal:
            raise NotHere(f"{MAC_ONLY}; here MLX computes on {found.device}")
        return found.device

    def clean(self) -> str:
        loaded = sorted(name for name in sys.modules if name.split(".")[0] in ("mlx", "mlx_audio"))
        if loaded:
            raise Failed(f"{loaded[0]} is loaded in the process that starts children: a fork after MLX was used hangs")
        return "children are started by a process that has none of it"

    def speaks(self) -> str:
        with self.child() as (child, folder):
            figures = self.said(child, folder)["figures"]
        if not figures["peak"] > 0.01:
            raise Failed(f"what it says is silent (peak {figures['peak']:.4f})")
        return f"{figures['audio_s']:.1f} s of sound in {figures['wall_s']:.1f} s"

    def deterministic(self) -> str:
        hashes, other = [], ""
        for _ in range(2):
            with self.child() as (child, folder):
                hashes.append(self.said(child, folder, 1)["pcm_sha256"])
                other = self.said(child, folder, 2)["pcm_sha256"]
        if hashes[0] != hashes[1]:
            raise Failed("the same seed gave two sounds: no lever can be settled bit for bit on this machine")
        return "the same bits twice" + (", and other ones for another seed" if other != hashes[0] else "; its sampling is greedy")

    def resumes(self) -> str:
        with self.child() as (child, folder):
            child.process.kill()
            try:
                self.said(child, folder)
            except ChildFailed as error:
                told = str(error)
            else:
                raise Failed("a killed child still answered")
        with self.child() as (child, folder):
            self.said(child, folder)
        return f"told as: {told}"

    def hangs(self) -> str:
        with self.child() as (child, folder):
            try:
                child.clip({"id": 0, "text": " ".join(TEXTS * 20), "language": "en", "seed": 1, "out": str(folder)}, limit_s=0.2)
            except ChildFailed as error:
                if child.alive():
                    raise Failed("it went on after it was given up") from error
                return str(error)
        raise Failed("a minute of speech came in a fifth of a second")

    def spread(self) -> str:
        walls = []
        sentences = [{"sentence": str(k), "text": text, "language": "en", "seed": k + 1} for k, text in enumerate(TEXTS)]
        for _ in range(4):
            with self.child() as (child, folder):
                walls.append(math.log(timed.run(child, self.configuration, sentences, folder)["figures"]["total_wall_s"]))
        ends, middle = (walls[0] + walls[3]) / 2, (walls[1] + walls[2]) / 2  # A-B-B-A of one system with itself
        ratio, largest = math.exp(abs(ends - middle)) - 1, math.exp(max(walls) - min(walls)) - 1
        if ratio > SPREAD:
            raise Failed(
                f"the system is {100 * ratio:.1f} % faster than itself; passes differ by {100 * largest:.1f} %. Close other programs"
            )
        return f"{100 * ratio:.1f} % between it and itself, at most {100 * largest:.1f} % between two passes"

    def contended(self) -> str:
        busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            contention.busy(None)
            time.sleep(2 * contention.INTERVAL_S)
            seen = contention.busy(None)
        finally:
            busy.kill()
            busy.wait()
        if not any(percent > 50 for percent in seen.values()):
            raise Failed("a program that took a whole core was not seen: nothing would be stamped here")
        return ", ".join(f"{name} {percent:.0f} %" for name, percent in seen.items())

    def memory(self) -> str:
        with self.child() as (child, folder):
            held = [self.said(child, folder, k)["figures"].get("held_memory_bytes") for k in range(6)]
        slope = timed.slope(held[1:])
        if slope is None:
            raise NotHere("this engine does not say what it holds")
        if slope > 16 << 20:
            raise Failed(f"it grows by {slope / 2**20:.0f} MB a clip")
        return f"{slope / 2**20:+.2f} MB a clip"

    def readable(self) -> str:
        battery = telemetry.on_battery()
        if battery:
            raise Failed("it runs on its battery: connect it, or it is timed at another speed")
        heat, macmon = telemetry.hottest(), shutil.which("macmon")
        parts = [f"swap {telemetry.swap_bytes() >> 20} MB", f"{heat:.0f} °C" if heat else "no sensor shown"]
        return ", ".join([*parts, "macmon is there" if macmon else "no macmon"])

    def stays(self) -> str:
        if not self.mac:
            raise NotHere(MAC_ONLY)
        made = launchd.agent(Path.cwd(), "https://host.example", Path("/dev/null"), Path("/tmp"))  # noqa: S108 - never installed
        plistlib.loads(made)
        if not shutil.which("caffeinate") or not shutil.which("launchctl"):
            raise Failed("caffeinate or launchctl is missing")
        done = subprocess.run(["plutil", "-lint", "-"], input=made, capture_output=True)
        if done.returncode:
            raise Failed(f"launchd would refuse the agent: {done.stdout.decode().strip()}")
        return "caffeinate is there, and launchd takes the agent"

    def keychain(self) -> str:
        if not self.mac:
            raise NotHere(MAC_ONLY)
        done = subprocess.run(["security", "list-keychains"], capture_output=True, text=True)
        if done.returncode:
            raise Failed("security can't open the keychain: log in on the Mac's own screen")
        return "it answers"

    def host(self) -> str:
        if self.desk is None:
            raise NotHere("give --host and --token")
        answer = self.desk.hello(self.facts)
        return f"{self.desk.url} knows this machine as {answer['name']}"


def keep(report: dict[str, Any], place: Path) -> Path:
    """The report in a file of its own, the last one beside it as latest.json."""
    place.mkdir(parents=True, exist_ok=True)
    file = place / f"{report['at'].replace(':', '')}.json"
    text = json.dumps(report, indent=1, ensure_ascii=False)
    file.write_text(text, encoding="utf-8")
    (place / "latest.json").write_text(text, encoding="utf-8")
    return file


def latest(place: Path) -> dict[str, Any] | None:
    """What the newest report says in short, for the host's page; None without one."""
    try:
        report = json.loads((place / "latest.json").read_text(encoding="utf-8"))
        return {name: report[name] for name in ("at", "accepted", "passed", "failed", "not run", "machine")}
    except (OSError, ValueError, KeyError):
        return None
