"""The synthesis child: ONE configuration in one fresh process, the only place where an engine runs.

Started by supervise.py as `python -m synth.engine.child`. Everything that prints goes to stderr; the original
stdout carries the protocol. When the input ends - the supervisor left, however it left - so does this process.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import IO, Any

PROTOCOL = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)  # engines print

import numpy as np  # noqa: E402 - after the file descriptors are arranged
import numpy.typing as npt  # noqa: E402

from synth import pauses, pcm  # noqa: E402
from synth.engine import near, protocol, together  # noqa: E402

MOST_SEAMS = 2000


def emit(event: str, **fields: Any) -> None:
    PROTOCOL.write(json.dumps({"event": event, **fields}) + "\n")


def seams(parts: list[protocol.Chunk]) -> list[int]:
    """First sample of every chunk but the first: where a seam could click."""
    return np.cumsum([len(p.samples) for p in parts])[:-1].tolist()[:MOST_SEAMS]


def heard_first(samples: npt.NDArray[np.float32], rate: int, first_chunk_s: float) -> dict[str, float | None]:
    """Time to the first chunk, and to the first sound in it: the silence it begins with is waiting, too. None in a clip without sound."""
    sound = pauses.analyse(samples, rate) if np.isfinite(samples).all() else None
    silent = None if sound is None or sound.leading_ms is None else sound.leading_ms / 1000
    return {"first_chunk_s": first_chunk_s, "first_audio_s": None if silent is None else first_chunk_s + silent}


def hit_cap(engine: protocol.Engine, parts: list[protocol.Chunk]) -> bool:
    """Whether the model was stopped by its token cap rather than by itself."""
    cap = getattr(engine, "token_cap", None)
    spent: Counter[int] = Counter()
    for part in parts:
        spent[part.segment] += part.tokens
    return cap is not None and max(spent.values()) >= cap


def failed(order: dict[str, Any], outcome: str, error: str, **figures: float) -> dict[str, Any]:
    return {"id": order["id"], "outcome": outcome, "error": error, "figures": figures}


def clip_of(
    engine: protocol.Engine, order: dict[str, Any], parts: list[protocol.Chunk], arrivals: list[float], wall: float, more: dict[str, Any]
) -> dict[str, Any]:
    """Outcome, figures and the FLAC's path of what was said. `arrivals`: when each part was there, `wall`: when all was; seconds."""
    samples = np.concatenate([p.samples for p in parts]) if parts else np.zeros(0, np.float32)
    if not len(samples):
        return failed(order, "empty", "the model ended before it said anything", wall_s=wall)
    rate = parts[0].sample_rate
    figures = {
        "wall_s": wall, "audio_s": len(samples) / rate,
        "rtf_wall_over_audio": wall / (len(samples) / rate), "chunks": len(parts), **heard_first(samples, rate, arrivals[0]),
        "arrivals_s": [round(a, 6) for a in arrivals[:MOST_SEAMS]], "durations_s": [len(p.samples) / rate for p in parts[:MOST_SEAMS]],
        "tokens": sum(p.tokens for p in parts), "hit_cap": hit_cap(engine, parts),
        "seams": seams(parts), "sample_rate": rate, "samples": len(samples),
        "peak": float(np.nanmax(np.abs(samples))), **more,
    }  # fmt: skip
    try:
        data = pcm.encode_flac(samples, rate)
    except pcm.BadAudio as error:
        return failed(order, "error", f"the model made no usable sound: {error}", wall_s=wall)
    digest = hashlib.sha256(data).hexdigest()
    target = Path(order["out"]) / f"{digest}.flac"
    part = target.with_suffix(".part")
    part.write_bytes(data)
    part.replace(target)  # the whole file or none
    return {
        "id": order["id"], "outcome": "made", "error": "", "figures": figures, "file": str(target),
        "file_sha256": digest, "pcm_sha256": pcm.pcm_sha256(samples, rate),
    }  # fmt: skip


def memory(engine: protocol.Engine) -> dict[str, Any]:
    """The most memory this call held, and what is still held after it; bytes, from engines that know."""
    asked = {name: getattr(engine, name, None) for name in ("peak_memory_bytes", "held_memory_bytes")}
    return {name: ask() for name, ask in asked.items() if ask is not None}


def speak(engine: protocol.Engine, order: dict[str, Any]) -> dict[str, Any]:
    """One clip: outcome, figures and the FLAC's path. A clip that raises or is empty is a result, not the end of the run."""
    begin, cpu = time.perf_counter(), time.process_time()
    parts: list[protocol.Chunk] = []
    arrivals: list[float] = []
    try:
        for chunk in engine.generate(order["text"], order["language"], order["seed"]):
            arrivals.append(time.perf_counter() - begin)
            parts.append(chunk)
    except protocol.EngineRefused:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a model raises is this clip's outcome
        return failed(order, "error", f"{type(error).__name__}: {error}"[:1000])
    wall, cpu_s = time.perf_counter() - begin, time.process_time() - cpu
    return clip_of(engine, order, parts, arrivals, wall, {"cpu_s": cpu_s} | memory(engine))


def speak_together(engine: protocol.Engine, order: dict[str, Any]) -> dict[str, Any]:
    """Several clips in one call, {"clips", "figures"}. A clip's wall time is when its sound was there; a row without sound is empty."""
    rows = [row | {"out": order["out"]} for row in order["rows"]]
    begin, cpu = time.perf_counter(), time.process_time()
    parts: list[list[protocol.Chunk]] = [[] for _ in rows]
    arrivals: list[list[float]] = [[] for _ in rows]
    try:
        for chunk in engine.generate_batch([row["text"] for row in rows], order["language"], order["seed"]):
            arrivals[chunk.row].append(time.perf_counter() - begin)
            parts[chunk.row].append(chunk)
    except protocol.EngineRefused:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a model raises is the outcome of all that were spoken together
        return {"clips": [failed(row, "error", f"{type(error).__name__}: {error}"[:1000]) for row in rows], "figures": {}}
    wall = time.perf_counter() - begin
    tokens = [sum(p.tokens for p in said) for said in parts]
    figures = {
        "wall_s": wall, "cpu_s": time.process_time() - cpu, "rows": len(rows), **memory(engine),
        **together.work(tokens, getattr(engine, "rows_taken", lambda: None)()),
    }  # fmt: skip
    figures["useful_share"] = figures["needed"] / figures["computed"] if figures["computed"] else None
    clips = []
    for row, said, at in zip(rows, parts, arrivals, strict=True):
        clips.append(clip_of(engine, row, said, at, at[-1] if at else wall, {"together": figures}))
    return {"clips": clips, "figures": figures}


def orders(source: IO[str]):
    """The supervisor's lines. Read on a thread, so that its death ends a child that is busy inside a model."""
    import queue

    waiting: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        for line in source:
            waiting.put(line)
        waiting.put(None)
        time.sleep(2)  # time to end by itself
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    while (line := waiting.get()) is not None:
        yield json.loads(line)


def main() -> None:
    engine: protocol.Engine | None = None
    for order in orders(sys.stdin):
        try:
            if order["op"] == "load":
                configuration = order["configuration"]
                factory = protocol.resolve(
                    configuration.get("engine", "mlx-audio"), "earwitness.engines", protocol.BUNDLED, order["modules"]
                )
                begin = time.perf_counter()
                engine = factory(configuration, Path(order["models"]), order["modules"])
                engine.report.notes["load_s"] = round(time.perf_counter() - begin, 3)
                emit("ready", report=vars(engine.report))
            elif order["op"] == "tensors":
                emit("tensors", tensors=getattr(engine, "tensors", dict)())
            elif order["op"] == "sentinels":
                emit("sentinels", seconds=getattr(engine, "sentinels", dict)())
            elif order["op"] == "near":
                emit("near", found=near.compare(order))
            elif order["op"] == "look" and engine is not None:
                if not hasattr(engine, "look"):
                    raise protocol.EngineRefused("This system's engine shows nothing of what goes on inside it.")
                try:
                    found = engine.look(order)
                except protocol.EngineRefused:
                    raise
                except Exception as error:
                    raise protocol.EngineRefused(f"The look broke off: {type(error).__name__}: {str(error)[:500]}.") from error
                emit("look", found=found)
            elif engine is not None:
                event = order["op"]
                emit(event, **(speak_together if event == "batch" else speak)(engine, order))
        except protocol.EngineRefused as error:
            emit("refused", error=str(error))
    PROTOCOL.flush()
    os._exit(0)  # some engines keep threads that would hold the process


if __name__ == "__main__":
    main()
