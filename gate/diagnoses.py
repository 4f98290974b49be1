"""Closer looks at a lever's two systems: asked for by an engineer once its clips are unsealed, shown, and read by no verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from statistics import median
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from gate import export, history
from gate.models import Lever
from synth import bell, streaming
from synth.batches import whole_batches
from synth.configuration import Refused
from synth.models import Diagnosis, Leased

#: Sentences of the draw that a look speaks; a sweep takes whole batches of its largest size.
SENTENCES = {"sweep": 8, "cadence": 6, "forced": 20, "components": 3}
SIZES, INTERVALS = [1, 2, 4, 8], [0.32, 0.64, 1.28, 2.0]
MOST_VALUES = 8
#: Seconds buffered before playing begins, in the grid.
PREROLLS = (0.0, 0.1, 0.2, 0.4, 0.8, 1.2, 2.0, 3.0)
#: A listener's patience with a gap, in milliseconds.
GAPS_MS = (50, 100, 200)
#: What an accepted merge of an adapter was measured at (seed 001): a scale for what is near.
ACCEPTED = {"kl": 0.004, "same": 0.927, "tv": 0.044, "dlogp": -0.001}
#: Recorded tokens that the recording system itself must be able to draw again.
SELF_CHECK = 0.999


def of(lever: Lever) -> QuerySet[Diagnosis]:
    """The looks at this lever's systems, the newest first."""
    if lever.draw is None:
        return Diagnosis.objects.none()
    return Diagnosis.objects.filter(draw_key=lever.draw.key, first=lever.parent, second=lever.candidate).order_by("-pk")


def numbers(kind: str, text: str) -> dict[str, list[float]]:
    """What is varied, from a line of numbers. Raises Refused with the number that can't be."""
    name, default, low, high = {"sweep": ("sizes", SIZES, 1, 256), "cadence": ("intervals", INTERVALS, 0.04, 30)}.get(kind, ("", [], 0, 0))
    if not name:
        return {}
    found: list[float] = []
    for part in text.replace(",", " ").split() or map(str, default):
        try:
            value = int(part) if kind == "sweep" else float(part)
        except ValueError:
            value = -1
        if not low <= value <= high:
            raise Refused("diagnosis_value", f"{name} has {part!r}: give numbers from {low} to {high}, with spaces between them.", name)
        found.append(value)
    if len(set(found)) > MOST_VALUES:
        raise Refused("diagnosis_value", f"{name} has {len(set(found))} values: {MOST_VALUES} are enough for one look.", name)
    return {name: sorted(set(found))}


def ask(lever: Lever, kind: str, text: str = "", user: Any = None) -> Diagnosis:
    """Has a worker take a closer look. Raises Refused where it is sealed, under way already, or can't be."""
    if kind not in Diagnosis.Kind.values:
        raise Refused("unknown_diagnosis", f"kind is {kind!r}: ask for one of {', '.join(Diagnosis.Kind.values)}.", "kind")
    if not export.clips_unsealed(lever):
        raise Refused("still_sealed", f"{lever.slug} is not measured yet: what its systems do is sealed until then. Ask again later.")
    asked = numbers(kind, text)
    drawn, largest = len(lever.draw.order), max((int(size) for size in asked.get("sizes", [])), default=1)
    if largest > drawn:
        raise Refused("batch_too_large", f"A batch of {largest} needs as many sentences; {drawn} were drawn.", "sizes")
    count = min(whole_batches(SENTENCES[kind], [largest], drawn), drawn)
    with transaction.atomic():
        Lever.objects.select_for_update().get(pk=lever.pk)  # who presses twice waits here, and is refused below
        if of(lever).filter(kind=kind).exclude(state__in=Leased.SETTLED).exists():
            raise Refused("diagnosis_under_way", f"That look at {lever.slug} is under way already: wait for it.")
        made = Diagnosis.objects.create(
            kind=kind, first=lever.parent, second=lever.candidate, draw_key=lever.draw.key, asked=asked,
            sentences=lever.draw.to_speak(count), device_class=lever.plan.body["device_class"],
        )  # fmt: skip
        history.note(lever, f"a closer look was asked for: {made.get_kind_display()}", user)
        bell.ring_after_commit()
    return made


def take_back(lever: Lever, pk: int, user: Any = None) -> bool:
    """Ends a look that still waits for a worker; False when one has it, or it is over."""
    waiting = of(lever).filter(pk=pk, state=Leased.State.QUEUED)
    ended = waiting.update(state=Leased.State.FAILED, settled_at=timezone.now(), error="It was taken back while it waited for a worker.")
    if ended:
        history.note(lever, "a closer look was taken back", user)
    return bool(ended)


def facts(one: Diagnosis) -> dict[str, Any]:
    """A look as a page or a program reads it."""
    readers: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {"cadence": _cadence, "forced": _forced, "components": _components}
    found: dict[str, Any] = {
        "pk": one.pk, "kind": one.kind, "state": one.state, "error": one.error, "asked": one.asked, "at": one.created_at,
        "worker": one.report.get("worker"), "device_class": one.report.get("device_class"), "sentences": len(one.sentences),
    }  # fmt: skip
    return found | (readers.get(one.kind, _as_is)(one.report) if one.state == Leased.State.DONE else {})


def _as_is(report: dict[str, Any]) -> dict[str, Any]:
    return report


def _cadence(report: dict[str, Any]) -> dict[str, Any]:
    rows = []
    for row in report["rows"]:
        streams = [(s["arrivals_s"], s["durations_s"]) for s in row["streams"]]
        played = {preroll: [asdict(streaming.play(a, d, preroll)) for a, d in streams] for preroll in PREROLLS}
        heard = [s["first_audio_s"] for s in row["streams"] if s["first_audio_s"] is not None]
        clicks = [b["click"] for b in row["beside_whole"] if b["click"] is not None]
        rows.append(
            {
                "system": row["system"], "interval_s": row["interval_s"],
                "cells": [_cell(preroll, found) for preroll, found in played.items()],
                "smallest_preroll_s": max(streaming.smallest_preroll(a, d) for a, d in streams),
                "first_audio_s": median(heard) if heard else None,
                "rtf": median([p["rtf_wall_over_audio"] for p in played[0.0]]),
                "stable_share": min((b["stable_share"] for b in row["beside_whole"]), default=None),
                "extra_samples": max((abs(b["extra_samples"]) for b in row["beside_whole"]), default=None),
                "click": max(clicks, default=None),
            }
        )  # fmt: skip
    return {"rows": rows}


def _cell(preroll: float, played: list[dict[str, Any]]) -> dict[str, Any]:
    """One place of the grid: the share of streams that starve, and of those without a gap longer than 50, 100, 200 ms."""
    n = len(played)
    continuous = {f"c{ms}": sum(round(1000 * p["longest_stall_s"], 3) <= ms for p in played) / n for ms in GAPS_MS}
    return {
        "preroll_s": preroll, "starving": sum(p["stalls"] > 0 for p in played) / n, "starved_s": sum(p["starved_s"] for p in played) / n,
        "start_s": median([p["start_s"] for p in played]), **continuous,
    }  # fmt: skip


def _forced(report: dict[str, Any]) -> dict[str, Any]:
    rows, itself = _means(report["codebooks"]), _means(report["itself"])
    whole, check = rows[-1], itself[-1]
    edges = {edge: {arm: report["margins"][arm][edge] for arm in ("parent", "candidate")} for edge in ("first", "last")}
    return {
        "frames": report["frames"], "left_out": report["left_out"], "codebooks": rows[:-1], "whole": whole, "accepted": ACCEPTED,
        "itself": check, "trusted": check["inside"] >= SELF_CHECK and check["kl"] < 1e-3,
        "margins": {k: _edge(v) for k, v in edges.items()},
    }  # fmt: skip


def _means(sums: list[dict[str, float]]) -> list[dict[str, float]]:
    """Means per codebook, and last over all of them."""
    names = ("kl", "same", "tv", "dlogp", "inside")
    every = {name: sum(row[name] for row in sums) for name in ("n", *names)}
    return [{name: row[name] / row["n"] for name in names} | {"codebook": row.get("codebook", -1), "n": row["n"]} for row in (*sums, every)]


def _edge(arms: dict[str, list[float]]) -> dict[str, Any]:
    """Least, 1st percentile and histogram of the margin over the end of speech, on bins both arms share."""
    values = [v for found in arms.values() for v in found]
    if not values:
        return {}
    low, high = min(values), max(values)
    width = (high - low) / 12 or 1.0
    counts = {arm: [0] * 12 for arm in arms}
    for arm, found in arms.items():
        for value in found:
            counts[arm][min(11, int((value - low) / width))] += 1
    ends = {arm: {"least": min(found), "p01": sorted(found)[len(found) // 100]} for arm, found in arms.items() if found}
    return {"low": low, "width": width, "counts": counts, "ends": ends}


def _components(report: dict[str, Any]) -> dict[str, Any]:
    rows = []
    for row in report["rows"]:
        tokens = row["tokens"] or 1
        named = sum(p["seconds"] for p in row["parts"])
        parts = [p | {"ms_per_frame": 1000 * p["seconds"] / tokens, "share": p["seconds"] / named if named else None} for p in row["parts"]]
        corrected = row["watched_s"] - row["sync_s"] * sum(p["calls"] for p in row["parts"])
        rows.append(row | {"parts": parts, "corrected_s": corrected, "rest_ms": 1000 * max(0.0, corrected - named) / tokens})
    return {"rows": rows}
