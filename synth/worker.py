"""What a worker does with a unit of work. Holds at most one child; never imports an engine."""

from __future__ import annotations

import logging
import os
import platform
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from synth import contention, desk, diagnoses, roofline, telemetry, timed
from synth.engine.protocol import voice_file
from synth.engine.supervise import Child, ChildFailed, ChildRefused, OtherFiles
from synth.heart import Heart

log = logging.getLogger("earwitness.worker")

ALIVE_S = 30.0
IDLE_CHILD_S = 120.0
#: Spoken before anything is promised, never measured and never counted as a use of a sentence.
SAMPLES = {
    "en": "Hello there.", "hi": "नमस्ते।", "ja": "こんにちは。", "es": "Hola.", "fr": "Bonjour.", "de": "Guten Tag.",
    "it": "Buongiorno.",
}  # fmt: skip


def device_class() -> str:
    """What must be the same for times to be compared: system, architecture and chip."""
    chip = platform.processor() or platform.machine()
    if sys.platform == "darwin":
        chip = subprocess.run(["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True).stdout.strip() or chip
    elif Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        chip = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), chip)
    return f"{platform.system()} {platform.machine()}, {chip}"[:120]


class Bench:
    """One worker's desk, scratch folder and current child. Units are done one at a time."""

    def __init__(self, connection: desk.Desk, models: Path, modules: list[str], scratch: Path, idle_wait_s: float = 600.0) -> None:
        self.desk, self.models, self.modules, self.scratch, self.idle_wait_s = connection, models, modules, scratch, idle_wait_s
        self._empty_scratch()
        self.child: Child | None = None
        self.heart: Heart | None = None
        self._used = time.monotonic()
        self._lock, self._closed = threading.Lock(), threading.Event()
        threading.Thread(target=self._keep, daemon=True, name="keeper").start()

    def run(self, kind: str) -> bool:
        """Claims and does one unit; False when there was none. Raises desk.Denied when the token is not accepted."""
        with self._lock:
            loaded = self.child.digest if self.child and self.child.alive() else ""
            try:
                unit = self.desk.claim(kind, loaded)
                if unit is not None:
                    self._do(unit)
                return unit is not None
            except desk.Unreachable as error:
                log.warning("%s; this unit's lease will lapse and it will be done again", error)
                return False
            finally:
                self._used = time.monotonic()

    def _do(self, unit: dict[str, Any]) -> None:
        work: Callable[[dict[str, Any]], dict[str, Any]] = getattr(self, f"_{unit['kind']}")
        # A lost lease ends the child, which wakes whoever waits for its answer.
        self.heart = Heart(lambda: self._beat(unit), (desk.Lost, desk.Denied), lambda: self.child.end() if self.child else None)
        self.heart.start()
        try:
            self.desk.finish(unit, **work(unit))
        except desk.Lost:
            log.info("a %s was taken over by another worker or was already settled", unit["kind"])
        except (desk.Unreachable, desk.Denied):
            raise
        except OtherFiles as error:
            self._give_back(unit, partial(self.desk.refuse, elsewhere=True), str(error))
        except ChildRefused as error:
            self._give_back(unit, self.desk.refuse, str(error))
        except Exception as error:  # noqa: BLE001 - told to the host, which knows how often to try again
            if not self.heart.lost:
                self._give_back(unit, self.desk.fail, str(error) if isinstance(error, ChildFailed) else f"{type(error).__name__}: {error}")
        finally:
            self.heart.stop()
            self._empty_scratch()

    def _beat(self, unit: dict[str, Any]) -> None:
        try:
            self.desk.beat(unit)
        except desk.Unreachable:
            log.warning("the host is away; going on with a %s", unit["kind"])

    def _give_back(self, unit: dict[str, Any], say: Callable[..., None], error: str) -> None:
        log.warning("a %s could not be done: %s", unit["kind"], error)
        try:
            say(unit, error)
        except desk.Lost:
            pass

    def _empty_scratch(self) -> None:
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir(parents=True, exist_ok=True)

    def fresh(self, configuration: dict[str, Any], digest: str, made_of: dict[str, str] | None = None) -> Child:
        """A new child. `made_of`: digests of weights, adapter and code this configuration was first tried with. Raises ChildRefused."""
        self.end_child()
        if self.lost():  # whatever is begun now belongs to somebody else
            raise desk.Lost
        self._fetch_voice(configuration.get("voice", {}).get("reference"))
        self.child = Child(configuration, digest, self.models, self.modules)
        self.child.start()
        found = self.child.report["digests"]
        other = sorted(name for name, sha in (made_of or {}).items() if found.get(name) != sha)
        if other:
            self.end_child()
            raise OtherFiles(
                f"What the configuration is made of is another thing on this worker: {', '.join(other)}. Bring the same files here."
            )
        return self.child

    def lost(self) -> bool:
        """Whether the unit in hand belongs to somebody else by now."""
        return bool(self.heart and self.heart.lost)

    def wait_until_quiet(self) -> float:
        """Seconds waited for other programs to rest; not beyond the loss of the unit in hand."""
        return contention.wait_until_quiet(self.idle_wait_s, lambda: not self.lost())

    def _fetch_voice(self, reference: str | None) -> None:
        """Brings the recording of a cloned voice onto this machine, once."""
        if not reference:
            return
        place = voice_file(self.models, reference)
        if place.exists():
            return
        try:
            data = self.desk.voice(reference)
        except desk.Refused as error:
            raise ChildRefused(str(error)) from error
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            part = place.with_suffix(f".{os.getpid()}.part")
            part.write_bytes(data)
            part.replace(place)
        except OSError as error:
            raise ChildRefused(
                f"The recording of the cloned voice can't be kept in {place.parent} ({error.strerror}): make it writable."
            ) from error

    def end_child(self) -> None:
        if self.child:
            self.child.end()
            self.child = None

    def close(self) -> None:
        self._closed.set()
        self.end_child()

    def _keep(self) -> None:
        """Says that this worker is there while it has nothing to do, and ends a child nobody has used for a while."""
        while not self._closed.wait(ALIVE_S):
            if not self._lock.acquire(blocking=False):
                continue
            try:
                if time.monotonic() - self._used > IDLE_CHILD_S:
                    self.end_child()
                self.desk.alive()
            except (desk.Unreachable, desk.Denied):
                pass  # the next claim will say so
            finally:
                self._lock.release()

    def _preflight(self, unit: dict[str, Any]) -> dict[str, Any]:
        child = self.fresh(unit["configuration"], unit["digest"])
        report = child.report | {"tensors": child.tensors()}
        if weights := report.get("notes", {}).get("traffic"):  # a prediction, on record before anything is timed
            report["roofline"] = roofline.predict(roofline.Traffic(**weights), device_class())
        text = SAMPLES.get(unit["language"])
        if text:
            clip = child.clip({"id": 0, "text": text, "language": unit["language"], "seed": 1, "out": str(self.scratch)})
            if clip["outcome"] != "made":
                raise ChildRefused(f"The configuration loads, but can't say {text!r}: {clip['error']}.")
            self.desk.upload(unit, clip["file_sha256"], Path(clip["file"]).read_bytes())
            report["sample"] = {k: clip[k] for k in ("file_sha256", "pcm_sha256")} | {
                k: clip["figures"][k] for k in ("sample_rate", "samples")
            }
        return {"report": report}

    def _render(self, unit: dict[str, Any]) -> dict[str, Any]:
        child = self.child
        if child is None or not child.alive() or child.digest != unit["digest"]:
            child = self.fresh(unit["configuration"], unit["digest"], unit.get("made_of"))
        results = []
        for clip in self._spoken(child, unit):
            if clip["outcome"] == "made":
                try:
                    self.desk.upload(unit, clip["file_sha256"], Path(clip["file"]).read_bytes())
                except desk.Refused as error:  # the host won't have this sound: a runaway, say. That is the clip's outcome
                    clip = {**clip, "outcome": "error", "error": str(error)}
            results.append(
                {
                    "render": clip["id"], "outcome": clip["outcome"], "error": clip["error"], "figures": clip["figures"],
                    "file_sha256": clip.get("file_sha256", ""), "pcm_sha256": clip.get("pcm_sha256", ""),
                }
            )  # fmt: skip
        return {"clips": results}

    def _spoken(self, child: Child, unit: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The clips of a unit: of one call where the configuration batches, else one after the other."""
        if unit["configuration"].get("batching"):
            first = unit["clips"][0]
            rows = [{"id": clip["id"], "text": clip["text"]} for clip in unit["clips"]]
            order = {"rows": rows, "language": first["language"], "seed": first["seed"], "out": str(self.scratch)}
            yield from child.batch(order)["clips"]
        else:
            for order in unit["clips"]:
                yield child.clip(order | {"out": str(self.scratch)})

    def _diagnosis(self, unit: dict[str, Any]) -> dict[str, Any]:
        self.end_child()
        return {"report": diagnoses.KINDS[unit["what"]](self, unit)}

    def _block(self, unit: dict[str, Any]) -> dict[str, Any]:
        """A-B-B-A: four passes, each a fresh process; the longest sentence warms it up and is not counted there."""
        passes = []
        self.end_child()
        for place, arm in enumerate((0, 1, 1, 0)):
            configuration = unit["configurations"][arm]
            around = telemetry.neighbours()
            waited = self.wait_until_quiet()
            child = self.fresh(configuration, unit["digests"][arm], (unit.get("made_of") or [None, None])[arm])
            done = timed.run(child, configuration, unit["sentences"], self.scratch)
            done["figures"] |= {"waited_s": round(waited, 1), "neighbours": around}
            passes.append({"place": place, **done})
            self.end_child()
        contention.stamp_slow(passes, same_process=unit["configurations"][0].get("runtime") == unit["configurations"][1].get("runtime"))
        return {"passes": passes}
