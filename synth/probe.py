"""Whether MLX runs on this machine, asked in a process of its own: importing it where there is no GPU can end the one that does."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from dataclasses import dataclass

from synth.engine.supervise import environment

#: Loads MLX, computes something on the default device, and says what it found.
_ASK = """
import json
import mlx.core as mx
value = float(mx.sum(mx.ones((64, 64)) @ mx.ones((64, 64))).item())
print(json.dumps({"metal": mx.metal.is_available(), "device": str(mx.default_device()), "right": value == 64.0**3}))
"""
LIMIT_S = 120.0


@dataclass(frozen=True)
class Found:
    """`trouble` is '' where MLX works as this kind of machine should have it; else one sentence."""

    metal: bool
    device: str
    trouble: str


def mlx(script: str = _ASK, system: str = "") -> Found:
    """Asks. A Mac without Metal is trouble; Linux computes on the processor."""
    system = system or platform.system()
    try:
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=LIMIT_S, env=environment({}))
    except subprocess.TimeoutExpired:
        return Found(False, "", f"MLX did not answer within {LIMIT_S:.0f} s.")
    last = [line for line in (done.stderr or "").strip().splitlines() if line.strip()][-1:]
    if done.returncode:
        how = f"ended by signal {-done.returncode}" if done.returncode < 0 else f"ended with {done.returncode}"
        hint = ": log in on the Mac's own screen, and leave virtual machines out" if system == "Darwin" else ""
        return Found(False, "", f"MLX can't be used here, its test {how}{f' ({last[0][:200]})' if last else ''}{hint}.")
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    if not answer["right"]:
        return Found(answer["metal"], answer["device"], "MLX computes wrongly on this machine: a product of ones is not what it must be.")
    if system == "Darwin" and not answer["metal"]:
        return Found(False, answer["device"], "This Mac has no Metal for MLX: log in on its own screen, and leave virtual machines out.")
    return Found(answer["metal"], answer["device"], "")
