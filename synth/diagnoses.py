"""What a worker does when an engineer asks for a closer look. Nothing here is read by a verdict."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from synth import timed
from synth.engine.supervise import Child, ChildFailed, ChildRefused, OtherFiles

if TYPE_CHECKING:
    from synth.worker import Bench

Unit = dict[str, Any]
#: Left out where tokens are watched: compiled graphs and batches draw where nobody can see it.
UNSEEN = ("compile", "batching", "streaming")


def _arms(unit: Unit) -> list[tuple[str, dict[str, Any], dict[str, str]]]:
    names = ("parent", "candidate") if len(unit["configurations"]) == 2 else ("system",)
    return list(zip(names, unit["configurations"], unit["made_of"], strict=True))


def _without(configuration: dict[str, Any], *sections: str) -> dict[str, Any]:
    return {name: value for name, value in configuration.items() if name not in sections}


def sweep(bench: Bench, unit: Unit) -> dict[str, Any]:
    """Throughput, step time, latency, useful share and peak memory of each system at each size of a batch, each in a fresh process."""
    rows = []
    for name, configuration, made_of in _arms(unit):
        for size in unit["asked"]["sizes"]:
            varied = _without(configuration, "streaming") | {"batching": (configuration.get("batching") or {}) | {"size": size}}
            row: dict[str, Any] = {"system": name, "size": size}
            try:
                bench.wait_until_quiet()
                row |= _size(timed.run(bench.fresh(varied, "", made_of), varied, unit["sentences"], bench.scratch))
            except OtherFiles:
                raise
            except (ChildRefused, ChildFailed) as error:  # too large for the memory, say; the other sizes go on
                row["error"] = str(error)
            finally:
                bench.end_child()
            rows.append(row)
    if all("error" in row for row in rows):
        raise ChildRefused(rows[0]["error"])
    return {"rows": rows}


def _size(done: dict[str, Any]) -> dict[str, Any]:
    clips, figures = done["clips"], done["figures"]
    walls = sorted(clip["wall_s"] for clip in clips)
    return {
        "audio_per_s": sum(clip["audio_s"] for clip in clips) / figures["total_wall_s"],
        "step_ms": 1000 * figures["total_wall_s"] / figures["steps"] if figures["steps"] else None,
        "latency_s": walls[len(walls) // 2], "latest_s": walls[-1], "useful_share": figures["useful_share"],
        "peak_memory_bytes": max((clip["peak_memory_bytes"] or 0 for clip in clips), default=0) or None, "contended": done["contended"],
    }  # fmt: skip


def cadence(bench: Bench, unit: Unit) -> dict[str, Any]:
    """Arrivals and durations of every stream at each interval between chunks; and how the stream compares with the same clip whole."""
    rows = []
    for name, configuration, made_of in _arms(unit):
        whole = _whole(bench, configuration, made_of, unit)
        for interval in unit["asked"]["intervals"]:
            varied = _without(configuration, "batching") | {"streaming": (configuration.get("streaming") or {}) | {"interval_s": interval}}
            bench.wait_until_quiet()
            child = bench.fresh(varied, "", made_of)
            _clip(child, bench, max(unit["sentences"], key=lambda s: len(s["text"])))  # a warm-up
            said = [_clip(child, bench, sentence) for sentence in unit["sentences"]]
            beside = [child.near(clip["file"], file, clip["figures"]["seams"]) for clip, file in zip(said, whole, strict=True)]
            streams = [
                {k: clip["figures"][k] for k in ("arrivals_s", "durations_s", "first_chunk_s", "first_audio_s", "wall_s", "audio_s")}
                for clip in said
            ]
            rows.append({"system": name, "interval_s": interval, "streams": streams, "beside_whole": beside})
            bench.end_child()
    return {"rows": rows}


def _whole(bench: Bench, configuration: dict[str, Any], made_of: dict[str, str], unit: Unit) -> list[str]:
    """Files of the same clips spoken without streaming."""
    child = bench.fresh(_without(configuration, "streaming", "batching"), "", made_of)
    files = [_clip(child, bench, sentence)["file"] for sentence in unit["sentences"]]
    bench.end_child()
    return files


def _clip(child: Child, bench: Bench, sentence: dict[str, Any]) -> dict[str, Any]:
    clip = child.clip({"id": 0, "out": str(bench.scratch)} | {k: sentence[k] for k in ("text", "language", "seed")})
    if clip["outcome"] != "made":
        raise ChildFailed(f"a clip failed: {clip['error']}")
    return clip


def forced(bench: Bench, unit: Unit) -> dict[str, Any]:
    """The parent's tokens replayed through the candidate, and through the parent itself as a check of the method."""
    systems = [_watched(c) for c in unit["configurations"]]
    caps = [c.get("sampling", {}).get("max_tokens") for c in systems]
    if caps[0] != caps[1]:  # the candidate goes as far as the parent went
        systems[1] = systems[1] | {"sampling": {k: v for k, v in (systems[1].get("sampling", {}) | {"max_tokens": caps[0]}).items() if v}}
    orders = [
        {k: s[k] for k in ("text", "language", "seed")} | {"file": str(bench.scratch / f"{k}.npz")} for k, s in enumerate(unit["sentences"])
    ]
    # What the preflight found was without the watch, which is code of its own.
    parent = bench.fresh(systems[0], "", None)
    recorded = [parent.look("record", **order) for order in orders]
    itself = [parent.look("replay", **order) for order in orders]
    bench.end_child()
    candidate = bench.fresh(systems[1], "", None)
    replayed = [candidate.look("replay", **order) for order in orders]
    bench.end_child()
    left_out = sorted({k for c in unit["configurations"] for k in UNSEEN if c.get(k)})
    return {
        "frames": sum(r["frames"] for r in recorded), "codebooks": _sum(replayed), "itself": _sum(itself), "left_out": left_out,
        "margins": {name: _margins(found) for name, found in (("parent", recorded), ("candidate", replayed))},
    }  # fmt: skip


def _watched(configuration: dict[str, Any]) -> dict[str, Any]:
    """The system with a watch on its tokens, and without what hides them or gives the two another text."""
    levers = [one for one in configuration.get("levers", []) if one["lever"] != "chunk-text"]
    return _without(configuration, *UNSEEN) | {"levers": [{"lever": "watch-tokens"}, *levers]}


def _sum(found: list[dict[str, Any]]) -> list[dict[str, float]]:
    """Sums per codebook of all sentences."""
    sums: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for one in found:
        for row in one["codebooks"]:
            for name, value in row.items():
                sums[row["codebook"]][name] += value
    return [dict(sums[book]) | {"codebook": book} for book in sorted(sums)]


def _margins(found: list[dict[str, Any]]) -> dict[str, list[float]]:
    return {edge: [value for one in found for value in one["margins"][edge]] for edge in ("first", "last")}


def components(bench: Bench, unit: Unit) -> dict[str, Any]:
    """Seconds of each component of each system, from an instrumented run of its own."""
    rows = []
    for name, configuration, made_of in _arms(unit):
        bench.wait_until_quiet()
        child = bench.fresh(_without(configuration, "batching", "streaming"), "", made_of)
        begin = time.perf_counter()
        sentence = max(unit["sentences"], key=lambda s: len(s["text"]))
        found = child.look("components", **{k: sentence[k] for k in ("text", "language", "seed")})
        rows.append({"system": name, "took_s": time.perf_counter() - begin} | found)
        bench.end_child()
    return {"rows": rows}


KINDS: dict[str, Callable[[Bench, Unit], dict[str, Any]]] = {
    "sweep": sweep, "cadence": cadence, "forced": forced, "components": components,
}  # fmt: skip
