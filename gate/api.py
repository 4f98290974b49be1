"""The HTTP API: the workers' desk, and verdicts for CI."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Body, NinjaAPI, Schema
from ninja.errors import ValidationError

from gate import cumulative, diagnoses, export, register, standing, tokens
from gate.models import Lever
from gate.reasons import explain
from synth import queue
from synth.api import problem
from synth.api import router as desk
from synth.configuration import Refused

api = NinjaAPI(title="Earwitness", version="1", docs_url=None, openapi_url="openapi.json")
api.add_router("/desk", desk, auth=tokens.worker)


class Look(Schema):
    """`kind`: sweep, cadence, forced or components; `values`: sizes or intervals, with spaces between them."""

    kind: str
    values: str = ""


@api.exception_handler(queue.Lost)
def lost(request: HttpRequest, error: queue.Lost):
    return problem(request, 409, "lease_lost", "This unit is not yours any more; what you bring changes nothing.")


@api.exception_handler(Refused)
def refused(request: HttpRequest, error: Refused):
    return problem(request, 422, error.code, error.message)


@api.exception_handler(ValidationError)
def malformed(request: HttpRequest, error: ValidationError):
    first = error.errors[0]
    return problem(request, 422, "malformed", f"{'.'.join(str(p) for p in first['loc'])}: {first['msg']}.")


def summary(lever: Lever) -> dict:
    """State and, once there is one, the verdict. Nothing that is sealed."""
    verdict = lever.verdict
    return {
        "lever": lever.slug, "state": lever.state, "problem": lever.problem, "verdict": verdict.verdict if verdict else None,
        "evidence": verdict.evidence if verdict else "",
        "fallen": [{"code": code, "text": explain(code)[0]} for code in standing.why_not(lever)],
        "reasons": [{"code": code, "text": explain(code)[0]} for code in verdict.reasons] if verdict else [],
    }  # fmt: skip


@api.get("/levers/{slug}", auth=tokens.reader)
def read(request: HttpRequest, slug: str):
    return summary(get_object_or_404(Lever, slug=slug))


@api.post("/levers/{slug}/root-speed", auth=tokens.engineer)
def time_root(request: HttpRequest, slug: str):
    """Has the candidate timed against the root it grew from; the figures come with GET."""
    lever = get_object_or_404(Lever, slug=slug)
    cumulative.ask(lever)
    return root_speed(request, slug)


@api.get("/levers/{slug}/root-speed", auth=tokens.reader)
def root_speed(request: HttpRequest, slug: str):
    """Null when nobody asked; counts until the blocks are done; then the speed-up with its interval."""
    found = cumulative.facts(get_object_or_404(Lever, slug=slug))
    return found and found | {"root": found["root"].name}


@api.get("/levers/{slug}/looks", auth=tokens.reader)
def looks(request: HttpRequest, slug: str):
    """The closer looks at a lever's systems, the newest first. None before its clips are unsealed."""
    lever = get_object_or_404(Lever, slug=slug)
    return [diagnoses.facts(one) for one in diagnoses.of(lever)] if export.clips_unsealed(lever) else []


@api.post("/levers/{slug}/looks", auth=tokens.engineer)
def look(request: HttpRequest, slug: str, body: Look):
    """Has a worker take a closer look; what it finds comes with GET."""
    return diagnoses.facts(diagnoses.ask(get_object_or_404(Lever, slug=slug), body.kind, body.values))


@api.post("/levers", auth=tokens.engineer)
def create(request: HttpRequest, spec: Body[dict[str, Any]]):
    """Registers one lever; the body is the spec, as in a lever's file."""
    (lever,) = register.register([spec])
    return summary(lever)
