"""What the machine was doing while a pass was timed: memory, swap, heat, mains; with macmon, the GPU. Never used for a claim of speed.

macmon is asked only where EARWITNESS_MACMON=1 is set: it was seen to disturb the GPU.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Mapping
from typing import Any

import psutil

EVERY_MS = 500
#: Most of a process list that is kept.
MOST = 8


def swap_bytes() -> int:
    used: int = psutil.swap_memory().used
    return used


def hottest() -> float | None:
    """The hottest sensor, degrees Celsius; None where the machine shows none to an ordinary user."""
    ask = getattr(psutil, "sensors_temperatures", None)
    readings = [r.current for found in (ask() if ask else {}).values() for r in found if r.current]
    return max(readings, default=None)


def on_battery() -> bool | None:
    """Whether the machine runs on its battery; None where it has none, or none that it shows."""
    ask = getattr(psutil, "sensors_battery", None)
    found = ask() if ask else None
    return None if found is None else not found.power_plugged


def neighbours() -> list[str]:
    """The largest other programs by memory, as `name 1234 MB`: what else lived on the machine when a run began."""
    rows = []
    for process in psutil.process_iter(["name", "memory_info"]):
        if process.pid != os.getpid() and process.info["memory_info"]:
            rows.append((process.info["memory_info"].rss, process.info["name"] or "?"))
    return [f"{name} {rss >> 20} MB" for rss, name in sorted(rows, reverse=True)[:MOST]]


def reading(line: Mapping[str, Any]) -> dict[str, float]:
    """One line of macmon in either of its formats, as gpu_busy (share), gpu_mhz, gpu_w, all_w, gpu_c, cpu_c, swap_bytes."""
    if "gpu_usage" in line:  # up to 0.7
        mhz, busy = line["gpu_usage"]
    else:
        mhz, busy = line.get("gpu_freq_mhz"), line.get("gpu_active_ratio")
    heat, memory = line.get("temp") or {}, line.get("memory") or {}
    found = {
        "gpu_busy": busy, "gpu_mhz": mhz, "gpu_w": line.get("gpu_power"), "all_w": line.get("all_power"),
        "gpu_c": heat.get("gpu_temp_avg"), "cpu_c": heat.get("cpu_temp_avg"), "swap_bytes": memory.get("swap_usage"),
    }  # fmt: skip
    return {name: float(value) for name, value in found.items() if isinstance(value, int | float)}


def summary(readings: list[dict[str, float]]) -> dict[str, Any]:
    """Mean and most of each figure."""
    names = sorted({name for one in readings for name in one})
    columns = {name: [one[name] for one in readings if name in one] for name in names}
    return {"samples": len(readings)} | {
        name: {"mean": round(sum(values) / len(values), 3), "most": round(max(values), 3)} for name, values in columns.items()
    }


class Macmon:
    """macmon beside a timed pass, where it is wanted and there; else nothing."""

    def __init__(self) -> None:
        self.program = shutil.which("macmon") if os.environ.get("EARWITNESS_MACMON") == "1" else None
        self.version = ""
        self.readings: list[dict[str, float]] = []
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        if not self.program:
            return
        with contextlib.suppress(OSError, subprocess.SubprocessError):  # a monitor that won't run costs no pass
            self.version = subprocess.run([self.program, "--version"], capture_output=True, text=True, timeout=10).stdout.strip()
            self.process = subprocess.Popen(
                [self.program, "pipe", "-i", str(EVERY_MS)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
            self.reader = threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True)
            self.reader.start()

    def _read(self, stream: Any) -> None:
        for line in stream:
            try:
                self.readings.append(reading(json.loads(line)))
            except (ValueError, TypeError, AttributeError):  # a line cut short by its end, or of a format nobody has seen
                continue

    def end(self) -> dict[str, Any]:
        """The summary with macmon's version; {} where it did not run."""
        if self.process is None:
            return {}
        self.process.kill()
        self.process.wait()
        self.reader.join(timeout=5)
        return {"macmon": self.version} | summary(self.readings)
