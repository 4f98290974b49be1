"""What a worker does with a unit of work. Holds at most one child; never imports an engine."""

from __future__ import annotations

import logging
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from synth import contention, desk
from synth.engine.supervise import Child, ChildFailed, ChildRefused

log = logging.getLogger("earwitness.worker")

BEAT_S = 8.0
IDLE_CHILD_S = 120.0
#: Spoken before anything is promised, never measured and never counted as a use of a sentence.
SAMPLES = {
    "en": "Hello there.",
    "hi": "नमस्ते।",
    "ja": "こんにちは。",
    "es": "Hola.",
    "fr": "Bonjour.",
    "de": "Guten Tag.",
    "it": "Buongiorno.",
}


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
    """One worker's desk, scratch folder and current child. Used from one thread at a time."""

    def __init__(self, connection: desk.Desk, models: Path, modules: list[str], idle_wait_s: float = 600.0) -> None:
        self.desk, self.models, self.modules, self.idle_wait_s = connection, models, modules, idle_wait_s
        self.scratch = Path(tempfile.mkdtemp(prefix="earwitness-"))
        self.child: Child | None = None
        self._used = time.monotonic()
        self._lock = threading.Lock()
        threading.Thread(target=self._end_idle_child, daemon=True).start()

    def run(self, kind: str) -> bool:
        """Claims and does one unit; False when there was none. Raises desk.Denied when the token is not accepted."""
        with self._lock:
            loaded = self.child.digest if self.child and self.child.alive() else ""
            try:
                unit = self.desk.claim(kind, loaded)
                if unit is None:
                    return False
                return self._do(unit)
            except desk.Unreachable as error:
                log.warning("%s; this unit's lease will lapse and it will be done again", error)
                return False
            finally:
                self._used = time.monotonic()

    def _do(self, unit: dict[str, Any]) -> bool:
        work: Callable[[dict[str, Any]], dict[str, Any]] = getattr(self, f"_{unit['kind']}")
        try:
            self.desk.finish(unit, **work(unit))
        except desk.Lost:
            log.info("a %s was taken over by another worker or was already settled", unit["kind"])
        except ChildRefused as error:
            self._fail(unit, str(error), final=unit["kind"] == "preflight")
        except ChildFailed as error:
            self._fail(unit, str(error))
        finally:
            shutil.rmtree(self.scratch, ignore_errors=True)
            self.scratch.mkdir(parents=True, exist_ok=True)
        return True

    def _fail(self, unit: dict[str, Any], error: str, final: bool = False) -> None:
        log.warning("a %s failed: %s", unit["kind"], error)
        try:
            self.desk.fail(unit, error, final)
        except desk.Lost:
            pass

    def _beat(self, unit: dict[str, Any], doing: str) -> Callable[[], None]:
        """A beat that may be called often and goes out every BEAT_S. Raises desk.Lost when the unit is not mine any more."""
        last = [time.monotonic()]

        def beat() -> None:
            if time.monotonic() - last[0] < BEAT_S:
                return
            last[0] = time.monotonic()
            try:
                self.desk.beat(unit, doing, self.child.digest if self.child else "")
            except desk.Unreachable:
                log.warning("the host is away; going on with %s", doing)

        return beat

    def _fresh(self, configuration: dict[str, Any], digest: str, beat: Callable[[], None]) -> Child:
        self._end_child()
        self.child = Child(configuration, digest, self.models, self.modules)
        self.child.start(beat)
        return self.child

    def _end_child(self) -> None:
        if self.child:
            self.child.end()
            self.child = None

    def _end_idle_child(self) -> None:
        while True:
            time.sleep(30)
            if time.monotonic() - self._used > IDLE_CHILD_S and self._lock.acquire(blocking=False):
                try:
                    self._end_child()
                finally:
                    self._lock.release()

    def _preflight(self, unit: dict[str, Any]) -> dict[str, Any]:
        beat = self._beat(unit, f"trying {unit['configuration']['name']}")
        child = self._fresh(unit["configuration"], unit["digest"], beat)
        text = SAMPLES.get(unit.get("language", "en"))
        report = dict(child.report)
        if text:
            order = {"id": 0, "text": text, "language": unit.get("language", "en"), "seed": 1, "out": str(self.scratch)}
            clip = child.clip(order, beat)
            if clip["outcome"] != "made":
                raise ChildRefused(f"The configuration loads, but can't say {text!r}: {clip['error']}.")
            self.desk.upload(unit, clip["file_sha256"], Path(clip["file"]).read_bytes())
            report["sample"] = {k: clip[k] for k in ("file_sha256", "pcm_sha256")} | {
                k: clip["figures"][k] for k in ("sample_rate", "samples")
            }
        return {"report": report}

    def _render(self, unit: dict[str, Any]) -> dict[str, Any]:
        beat = self._beat(unit, f"rendering with {unit['configuration']['name']}")
        child = self.child
        if child is None or not child.alive() or child.digest != unit["digest"]:
            child = self._fresh(unit["configuration"], unit["digest"], beat)
        results = []
        for order in unit["clips"]:
            clip = child.clip(order | {"out": str(self.scratch)}, beat)
            if clip["outcome"] == "made":
                self.desk.upload(unit, clip["file_sha256"], Path(clip["file"]).read_bytes())
            results.append(
                {
                    "render": clip["id"], "outcome": clip["outcome"], "error": clip["error"], "figures": clip["figures"],
                    "file_sha256": clip.get("file_sha256", ""), "pcm_sha256": clip.get("pcm_sha256", ""),
                }
            )  # fmt: skip
        return {"clips": results}

    def _block(self, unit: dict[str, Any]) -> dict[str, Any]:
        """A-B-B-A: four passes, each a fresh process; the longest sentence warms it up and is not counted there."""
        passes = []
        self._end_child()
        for place, arm in enumerate((0, 1, 1, 0)):
            configuration = unit["configurations"][arm]
            beat = self._beat(unit, f"timing pass {place + 1} of 4 of block {unit['number'] + 1}")
            waited = contention.wait_until_quiet(self.idle_wait_s, beat)
            child = self._fresh(configuration, unit["digests"][arm], beat)
            warm = max(unit["sentences"], key=lambda s: len(s["text"]))
            begin = time.perf_counter()
            for _ in range(max(1, configuration.get("warmup_clips", 1))):
                self._timed(child, warm, beat)
            warmup_s = time.perf_counter() - begin
            watch = contention.Watch(child.process.pid)
            watch.start()
            clips = [self._timed(child, sentence, beat) for sentence in unit["sentences"]]
            seen = watch.end()
            figures = {"waited_s": round(waited, 1), "warmup_s": warmup_s, "load_s": child.report["notes"].get("load_s")}
            passes.append({"place": place, "clips": clips, "figures": figures, "contended": seen})
            self._end_child()
        return {"passes": passes}

    def _timed(self, child: Child, sentence: dict[str, Any], beat: Callable[[], None]) -> dict[str, Any]:
        order = {"id": 0, "text": sentence["text"], "language": sentence["language"], "seed": sentence["seed"], "out": str(self.scratch)}
        clip = child.clip(order, beat)
        if clip["outcome"] != "made":
            raise ChildFailed(f"a timed clip failed: {clip['error']}")
        return {
            "sentence": sentence["sentence"], "wall_s": clip["figures"]["wall_s"], "audio_s": clip["figures"]["audio_s"],
            "pcm_sha256": clip["pcm_sha256"], "peak_memory_bytes": clip["figures"].get("peak_memory_bytes"),
        }  # fmt: skip
