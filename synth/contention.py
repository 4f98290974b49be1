"""Other programs that take the processor while a pass is timed, and the wait for a quiet machine before it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

import psutil

from synth.engine.protocol import YARDSTICK

LIMIT_PERCENT = 40.0  # of one core
INTERVAL_S = 1.0
#: The same work may take this much longer in one pass than in the quickest of its block, before or after; drift is slower than that.
SLOWER = 1.25
#: A pass during which this much more memory lay on disk was not about the model.
SWAPPED = 64 << 20
#: What it is called where a program would be named.
SENTINEL = "something no program shows"


def _own(pid: int | None) -> set[int]:
    """This process, the child and everything the child started."""
    mine = {os.getpid()}
    if pid is not None:
        mine.add(pid)
        try:
            mine |= {c.pid for c in psutil.Process(pid).children(recursive=True)}
        except psutil.Error:
            pass
    return mine


def busy(pid: int | None, limit: float = LIMIT_PERCENT) -> dict[str, float]:
    """name -> percent of one core since the last call, for other processes at or above the limit.

    psutil.process_iter keeps its objects, so the second call on a process is a rate; the first gives 0.
    """
    mine, seen = _own(pid), {}
    for process in psutil.process_iter(["name"]):
        if process.pid in mine:
            continue
        try:
            percent = process.cpu_percent(None)
        except psutil.Error:
            continue
        if percent >= limit:
            name = process.info["name"] or f"process {process.pid}"
            seen[name] = max(seen.get(name, 0.0), percent)
    return seen


def wait_until_quiet(limit_s: float, going: Callable[[], bool]) -> float:
    """Waits for two quiet seconds in a row, at most limit_s and while `going()`; returns the seconds waited."""
    begin, quiet = time.monotonic(), 0
    busy(None)
    while quiet < 2 and going() and time.monotonic() - begin < limit_s:
        time.sleep(INTERVAL_S)
        quiet = 0 if busy(None) else quiet + 1
    return time.monotonic() - begin


class Watch(threading.Thread):
    """Samples once a second while a pass runs. A program counts as contention when it was busy in two samples or more."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self._stop_it, self.samples = pid, threading.Event(), 0
        self.seen: dict[str, dict[str, float]] = {}

    def run(self) -> None:
        busy(self.pid)
        while not self._stop_it.wait(INTERVAL_S):
            self.samples += 1
            for name, percent in busy(self.pid).items():
                entry = self.seen.setdefault(name, {"samples": 0, "max_percent": 0.0})
                entry["samples"] += 1
                entry["max_percent"] = max(entry["max_percent"], round(percent, 1))

    def end(self) -> dict[str, Any]:
        self._stop_it.set()
        self.join()
        return {name: entry for name, entry in self.seen.items() if entry["samples"] >= 2}


def stamp_slow(passes: list[dict[str, Any]], same_process: bool = True) -> None:
    """Marks passes of one block during which work that no lever touches took much longer: a neighbour on the GPU, a throttled machine.

    The yardstick is the same work in both systems, unless their processes are set up differently (not `same_process`). Of a component
    nobody knows whether the lever sped it up: each system's is compared with its own in the other pass. Swapping is marked, too.
    """
    everyone, alone = [[0, 1, 2, 3]], [[0, 3], [1, 2]]
    for name in sorted({name for p in passes for name in p["figures"].get("sentinel_s", {})}):
        for places in everyone if name == YARDSTICK and same_process else alone:
            _stamp([p for p in passes if p["place"] in places and name in p["figures"].get("sentinel_s", {})], name)
    for one in passes:
        if one["figures"].get("swap_bytes", 0) > SWAPPED:
            one["contended"] = one["contended"] | {"memory swapped to disk": {"mb": one["figures"]["swap_bytes"] >> 20}}


def _stamp(passes: list[dict[str, Any]], name: str) -> None:
    quickest = min((min(p["figures"]["sentinel_s"][name]) for p in passes), default=0.0)
    for one in passes:
        slowest = max(one["figures"]["sentinel_s"][name])
        if slowest > SLOWER * quickest:
            what = SENTINEL if name == YARDSTICK else f"{SENTINEL} (the {name} alone)"
            one["contended"] = one["contended"] | {what: {"slower": round(slowest / quickest, 2)}}
