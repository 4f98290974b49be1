"""The page of closer looks at a lever's two systems."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from gate import charts, diagnoses, export
from gate.models import Lever
from gate.views import lever_or_404
from synth.configuration import Refused
from synth.models import Diagnosis, Leased

#: kind -> (title, what it tells, label of its field, what is in it).
KINDS = {
    "sweep": ("Batch sizes", "Throughput, latency and memory at each size of a batch.", "Sizes", diagnoses.SIZES),
    "cadence": ("Streaming cadence", "Which interval and pre-roll never leave a player dry.", "Intervals, seconds", diagnoses.INTERVALS),
    "forced": ("Teacher-forced comparison", "How far apart the next-token distributions are, given the same history.", "", []),
    "components": ("Times of components", "Where a frame's time goes.", "", []),
}
EDGES = {"first": "At the first frames of each sentence", "last": "At its last frames"}


@login_required
def page(request: HttpRequest, slug: str) -> HttpResponse:
    found = lever_or_404(slug)
    problem: tuple[str, str] = ("", "")
    if request.method == "POST":
        if request.POST.get("take_back", "").isdigit():
            diagnoses.take_back(found, int(request.POST["take_back"]), request.user)
            return redirect("diagnoses", slug=slug)
        kind = request.POST.get("kind", "")
        try:
            diagnoses.ask(found, kind, request.POST.get("values", ""), request.user)
            return redirect("diagnoses", slug=slug)
        except Refused as error:
            problem = (kind, error.message)
    status = 422 if problem[1] else 200
    return render(request, "gate/diagnoses.html", _context(found, request.POST.get("values", ""), *problem), status=status)


def _context(found: Lever, typed: str, kind: str, problem: str) -> dict[str, Any]:
    rows = list(diagnoses.of(found)[:40])
    waiting = {one.kind for one in rows if one.state not in Leased.SETTLED}
    drawn = len(found.draw.order) if found.draw else 0
    kinds = [
        {
            "name": name, "title": title, "words": words, "label": label, "waiting": name in waiting,
            "default": typed if name == kind and problem else " ".join(str(v) for v in values if name != "sweep" or v <= drawn),
            "problem": problem if name == kind else "",
        }
        for name, (title, words, label, values) in KINDS.items()
    ]  # fmt: skip
    unsealed = export.clips_unsealed(found)
    return {"lever": found, "unsealed": unsealed, "kinds": kinds, "looks": [_shown(one) for one in rows] if unsealed else []}


def _shown(one: Diagnosis) -> dict[str, Any]:
    """The facts of a look with shares as percent, and its charts."""
    found = diagnoses.facts(one) | {"title": KINDS[one.kind][0]}
    if one.state != Leased.State.DONE:
        return found
    if one.kind == "sweep":
        found["rows"] = [row | {"useful_percent": _percent(row.get("useful_share"))} for row in found["rows"]]
    elif one.kind == "cadence":
        found["systems"] = [_system(name, list(rows)) for name, rows in groupby(found["rows"], key=lambda row: row["system"])]
    elif one.kind == "forced":
        found["accepted_same"] = _percent(found["accepted"]["same"])
        known = [(edge, margins) for edge, margins in found["margins"].items() if margins]
        found["edges"] = [margins | {"title": EDGES[edge], "chart": charts.histogram(margins)} for edge, margins in known]
    else:
        for row in found["rows"]:
            row["sync_us"] = 1e6 * row["sync_s"]
            row["parts"] = [part | {"percent": _percent(part["share"])} for part in row["parts"]]
    return found


def _system(name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    gaps = [{f"c{ms}": _percent(row["cells"][0][f"c{ms}"]) for ms in diagnoses.GAPS_MS} for row in rows]
    shown = [row | gap | {"stable": _percent(row["stable_share"])} for row, gap in zip(rows, gaps, strict=True)]
    return {"name": name, "rows": shown, "heat": charts.heat(rows)}


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
