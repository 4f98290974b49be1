"""Starts, watches and ends synthesis children. Imports neither NumPy nor MLX: a fork after MLX was used hangs."""

from __future__ import annotations

import atexit
import collections
import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

BASE = Path(__file__).resolve().parent.parent.parent
START_S = 600.0
CLIP_S = 600.0


class ChildFailed(Exception):
    """The child died, hung or was ended; the message says which, with the end of what it printed."""


class ChildRefused(Exception):
    """The child can't run this configuration; the message is one sentence."""


class OtherFiles(ChildRefused):
    """This worker has other files than those a configuration was first tried with; another may have the same."""


def environment(extra: dict[str, str]) -> dict[str, str]:
    """The child's environment: a real BLAS on Linux (the mlx-cpu wheel links the reference one), no hub unless asked."""
    kept = {name: value for name, value in os.environ.items() if name != "EARWITNESS_TOKEN"}  # a model's code needs no key to the host
    result = {**kept, "PYTHONUNBUFFERED": "1", "HF_HUB_OFFLINE": os.environ.get("HF_HUB_OFFLINE", "1"), **extra}
    if "LD_PRELOAD" not in result:
        result = blas_settings(min(8, os.cpu_count() or 1)) | result
    return result


def blas_settings(threads: int) -> dict[str, str]:
    """Variables that give a process on Linux a real BLAS, always of as many threads; nothing elsewhere.

    MKL's results depend on its number of threads, which follows the processors a process may use: pinned, so that a hash can be
    compared between processes. STRICT makes them independent of a buffer's alignment, too.
    """
    blas = fast_blas()
    if not blas:
        return {}
    pinned = {"MKL_CBWR": "AUTO,STRICT", "MKL_DYNAMIC": "FALSE", "MKL_NUM_THREADS": str(threads)}
    return {"LD_PRELOAD": preloadable(blas), **pinned}


def fast_blas() -> str:
    """Path of MKL (x86-64) or Debian's OpenBLAS, else nothing; a Mac has its own."""
    if sys.platform != "linux":
        return ""
    candidates = [Path(sys.prefix) / "lib" / "libmkl_rt.so.3", *Path("/usr/lib").glob("*/openblas-pthread/libblas.so.3")]
    return next((str(path) for path in candidates if path.exists()), "")


@cache
def preloadable(library: str) -> str:
    """The library under a name LD_PRELOAD can hold: it is split at spaces and colons, and a folder may have them."""
    if not any(character in library for character in " :\t"):
        return library
    folder = Path(tempfile.mkdtemp(prefix="earwitness-"))  # ours alone: who could change the link could run code
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "lib").symlink_to(Path(library).parent)
    return str(folder / "lib" / Path(library).name)


class Child:
    """A running child holding one configuration."""

    def __init__(self, configuration: dict[str, Any], digest: str, models: Path, modules: list[str]) -> None:
        self.digest = digest
        self.report: dict[str, Any] = {}
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._printed: collections.deque[str] = collections.deque(maxlen=200)
        extra = configuration.get("runtime", {}).get("env", {})
        self.process = subprocess.Popen(
            [sys.executable, "-m", "synth.engine.child"], cwd=BASE, env=environment(extra), text=True, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        for stream, put in ((self.process.stdout, self._lines.put), (self.process.stderr, self._printed.append)):
            threading.Thread(target=self._read, args=(stream, put), daemon=True).start()
        self._load = {"op": "load", "configuration": configuration, "models": str(models), "modules": modules}

    def _read(self, stream: Any, put: Callable[[Any], None]) -> None:
        for line in stream:
            put(line)
        if put == self._lines.put:
            put(None)

    def start(self, limit_s: float = START_S) -> dict[str, Any]:
        """Loads the configuration and returns the child's report. Raises ChildRefused or ChildFailed."""
        self.report = self._ask(self._load, limit_s)["report"]
        return self.report

    def clip(self, order: dict[str, Any], limit_s: float = CLIP_S) -> dict[str, Any]:
        return self._ask({"op": "clip", **order}, limit_s)

    def batch(self, order: dict[str, Any]) -> dict[str, Any]:
        """{"clips", "figures"} of several sentences spoken in one call."""
        return self._ask({"op": "batch", **order}, CLIP_S * (1 + len(order["rows"]) / 8))

    def look(self, what: str, **order: Any) -> dict[str, Any]:
        """What a closer look found. Raises ChildRefused where this model has nothing to look at."""
        found: dict[str, Any] = self._ask({"op": "look", "what": what, **order}, CLIP_S)["found"]
        return found

    def near(self, streamed: str, whole: str, seams: list[int]) -> dict[str, Any]:
        """See engine.near.compare."""
        found: dict[str, Any] = self._ask({"op": "near", "streamed": streamed, "whole": whole, "seams": seams}, CLIP_S)["found"]
        return found

    def tensors(self, limit_s: float = CLIP_S) -> dict[str, str]:
        """Name -> checksum of every weight as it stands after loading; {} from an engine that has none to show."""
        found: dict[str, str] = self._ask({"op": "tensors"}, limit_s)["tensors"]
        return found

    def sentinels(self, limit_s: float = CLIP_S) -> dict[str, float]:
        """Seconds of work that is not the model's speech: the yardstick, and parts of it alone; {} from an engine that has none."""
        found: dict[str, float] = self._ask({"op": "sentinels"}, limit_s)["seconds"]
        return found

    def _ask(self, order: dict[str, Any], limit_s: float) -> dict[str, Any]:
        """Sends one order and waits for its answer; a child that gives none, or a refusal, is ended."""
        try:
            self.process.stdin.write(json.dumps(order) + "\n")  # type: ignore[union-attr]
            self.process.stdin.flush()  # type: ignore[union-attr]
            line = self._lines.get(timeout=limit_s)
        except OSError as error:
            raise ChildFailed(self._epitaph("ended before it was asked")) from error
        except queue.Empty:
            self.end()
            raise ChildFailed(self._epitaph(f"made no progress for {limit_s:.0f} s and was stopped")) from None
        if line is None:
            self.process.wait()
            raise ChildFailed(self._epitaph("ended"))
        event = json.loads(line)
        if event["event"] == "refused":
            self.end()
            raise ChildRefused(event["error"])
        return event

    def _epitaph(self, what: str) -> str:
        time.sleep(0.05)  # let the reader catch the last lines
        code = self.process.poll()
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                what += f" by {signal.Signals(-code).name}"
        tail = [line.strip() for line in self._printed if line.strip()]
        return f"the synthesis process {what}" + (f"; it last printed: {tail[-1][:300]}" if tail else "")

    def alive(self) -> bool:
        return self.process.poll() is None

    def end(self) -> None:
        """Ends the child and whatever it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
