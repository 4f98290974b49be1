"""How a worker introduces itself: what makes another machine of it, read without importing an engine."""

from __future__ import annotations

import contextlib
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

from synth import acceptance, telemetry, worker


def facts(name: str, var: Path) -> dict[str, Any]:
    """What the host is told. It compares packages and platform with what levers were measured on; the rest is shown."""
    found: dict[str, Any] = {"python": platform.python_version(), "platform": platform.platform()}
    for package in ("mlx", "mlx-audio"):
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    found |= {"memory_gb": round(psutil.virtual_memory().total / 2**30), "battery": telemetry.on_battery()}
    return {"name": name, "device_class": worker.device_class(), "environment": found | {"acceptance": acceptance.latest(folder(var))}}


def folder(var: Path) -> Path:
    """Where this machine keeps its reports of acceptance."""
    return var / "acceptance"
