"""The host's side of the desk: what a worker may ask. A worker has no database; this is all it can do."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Case, Exists, IntegerField, OuterRef, Q, Value, When
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router, Schema

from synth import clips, pcm, queue, voices
from synth.models import UNITS, Clip, Configuration, Leased, Pass, Preflight, Render, RenderGroup, Worker
from synth.signals import render_settled

router = Router()
#: What a worker is doing, for the page; not with which arm.
DOING = {"preflight": "trying a configuration", "render": "rendering", "block": "timing", "diagnosis": "taking a closer look"}
#: Units about two systems, or one of them alone.
PAIRS = ("block", "diagnosis")
SILENT = timedelta(minutes=10)
MAX_UPLOAD = 200 * 2**20


class Hello(Schema):
    name: str
    device_class: str
    environment: dict[str, Any] = {}


class Ask(Schema):
    kind: str
    loaded: str = ""


class Failure(Schema):
    error: str
    elsewhere: bool = False


class ClipResult(Schema):
    """What one render gave. `outcome` is made, empty or error."""

    render: int
    outcome: str
    error: str = ""
    file_sha256: str = ""
    pcm_sha256: str = ""
    figures: dict[str, Any] = {}


class PassResult(Schema):
    place: int
    clips: list[dict[str, Any]]
    figures: dict[str, Any] = {}
    contended: dict[str, Any] = {}


class Finished(Schema):
    report: dict[str, Any] = {}
    clips: list[ClipResult] = []
    passes: list[PassResult] = []


def problem(request: HttpRequest, status: int, code: str, message: str) -> HttpResponse:
    return HttpResponse(json.dumps({"code": code, "message": message}), status=status, content_type="application/json")


def me(request: HttpRequest) -> Worker:
    """The worker this token speaks for; it must have said hello."""
    return Worker.objects.get(name=request.auth.name)  # type: ignore[attr-defined]


@router.post("/hello")
def hello(request: HttpRequest, body: Hello):
    """A worker introduces itself and learns where the broker is. The token carries the name it is known by."""
    now = timezone.now()
    Worker.objects.update_or_create(
        name=request.auth.name,  # type: ignore[attr-defined]
        defaults={
            "device_class": body.device_class,
            "environment": body.environment,
            "last_seen": now,
            "doing": "",
            "loaded": "",
            "refuses": {},
        },
    )
    return {"name": request.auth.name, "broker": settings.BROKER_FOR_WORKERS, "version": settings.VERSION}  # type: ignore[attr-defined]


@router.post("/alive")
def alive(request: HttpRequest):
    """A worker with nothing to do is still there."""
    Worker.objects.filter(name=request.auth.name).update(last_seen=timezone.now(), doing="")  # type: ignore[attr-defined]
    return {"alive": True}


def renders_for(worker: Worker, loaded: str):
    """Render groups in the order this worker should take them: its device class, what it has loaded, both arms of a sentence."""
    now = timezone.now()
    elsewhere = (
        RenderGroup.objects.filter(draw_key=OuterRef("draw_key"), place=OuterRef("place"), worker__last_seen__gte=now - SILENT)
        .exclude(worker=worker)
        .exclude(worker=None)
        .exclude(pk=OuterRef("pk"))
    )
    return (
        RenderGroup.objects.filter(Q(device_class="") | Q(device_class=worker.device_class))
        .filter(~Exists(elsewhere))
        .exclude(configuration__digest__in=list(worker.refuses))
        .order_by(
            Case(When(configuration__digest=loaded, then=Value(0)), default=Value(1), output_field=IntegerField()),
            "draw_key", "configuration_id", "place", "pk",
        )
    )  # fmt: skip


def _made_of(configuration: Configuration) -> dict[str, str]:
    """Digests of weights, adapter and code this configuration had when it was tried; another worker's must be the same."""
    flight = Preflight.objects.filter(configuration=configuration).first()
    found: dict[str, str] = (flight.report if flight else {}).get("digests", {})
    return found


def as_unit(kind: str, unit: Any) -> dict[str, Any]:
    common = {"kind": kind, "lease": str(unit.lease), "attempt": unit.attempts}
    if kind in PAIRS:
        systems = [c for c in (unit.first, unit.second) if c is not None]
        common |= {
            "configurations": [c.body for c in systems],
            "digests": [c.digest for c in systems],
            "made_of": [_made_of(c) for c in systems],
            "sentences": unit.sentences,
        }
        return common | ({"number": unit.number} if kind == "block" else {"what": unit.kind, "asked": unit.asked})
    common |= {"configuration": unit.configuration.body, "digest": unit.configuration.digest}
    if kind == "preflight":
        common["language"] = unit.language
    if kind == "render":
        common["made_of"] = _made_of(unit.configuration)
        common["clips"] = [
            {"id": r.pk, "text": r.sentence.text, "language": r.sentence.language, "seed": r.seed}
            for r in unit.renders.select_related("sentence").order_by("pk")
        ]
    return common


@router.post("/claim")
def claim(request: HttpRequest, body: Ask):
    """One unit of work, or 204 when there is none for this worker."""
    worker, now = me(request), timezone.now()
    Worker.objects.filter(pk=worker.pk).update(last_seen=now, loaded=body.loaded)
    if body.kind not in UNITS:
        return problem(request, 400, "unknown_kind", f"kind is {body.kind!r}: ask for one of {', '.join(UNITS)}.")
    if body.kind == "render":
        rows = renders_for(worker, body.loaded)
    else:
        rows = UNITS[body.kind].objects.filter(Q(device_class="") | Q(device_class=worker.device_class)).order_by("pk")
        if body.kind in PAIRS:
            refused = list(worker.refuses)
            rows = rows.exclude(first__digest__in=refused).exclude(second__isnull=False, second__digest__in=refused)
        if body.kind == "block":
            rows = rows.order_by("draw_key", "number")
    unit = queue.claim(rows, now, worker=worker)
    if unit is None:
        return HttpResponse(status=204)
    Worker.objects.filter(pk=worker.pk).update(doing=DOING[body.kind])
    return as_unit(body.kind, unit)


def mine(request: HttpRequest, kind: str, lease: uuid.UUID) -> type[Leased]:
    """The model of this kind, when the lease belongs to the asking worker; else Lost."""
    model = UNITS.get(kind)
    if model is None or not model.objects.filter(lease=lease, worker__name=request.auth.name).exists():  # type: ignore[attr-defined]
        raise queue.Lost
    return model


@router.post("/units/{kind}/{lease}/beat")
def beat(request: HttpRequest, kind: str, lease: uuid.UUID):
    now = timezone.now()
    queue.beat(mine(request, kind, lease), lease, now)
    Worker.objects.filter(name=request.auth.name).update(last_seen=now)  # type: ignore[attr-defined]
    return {"keep": True}


@router.put("/units/{kind}/{lease}/clips/{file_sha256}")
def upload(request: HttpRequest, kind: str, lease: uuid.UUID, file_sha256: str):
    """The FLAC file itself, checked (hash, finite, rate, duration) before it counts."""
    mine(request, kind, lease)
    if int(request.headers.get("Content-Length") or 0) > MAX_UPLOAD:
        return problem(request, 413, "clip_too_large", f"The clip is larger than {MAX_UPLOAD // 2**20} MB.")
    try:
        clips.take(request.read(), file_sha256)  # a stream read: the 1 MB limit of parsed bodies is for forms
    except pcm.BadAudio as error:
        return problem(request, 422, "bad_audio", f"The clip was refused: {error}.")
    return HttpResponse(status=201)


@router.get("/voices/{pcm_sha256}")
def voice(request: HttpRequest, pcm_sha256: str):
    """A recording that voices are cloned from, as FLAC."""
    found = voices.named(pcm_sha256)
    if found is None:
        return problem(request, 422, "unknown_voice", f"There is no recording {pcm_sha256[:12]} on this host: add it with manage.py voice.")
    return HttpResponse(clips.read(found.clip), content_type="audio/flac")


def store_render(result: ClipResult, group: RenderGroup) -> None:
    render = group.renders.get(pk=result.render)
    render.outcome, render.error, render.figures = result.outcome, result.error[:2000], result.figures
    if result.outcome == Render.Outcome.MADE:
        render.clip = Clip.objects.get_or_create(
            pcm_sha256=result.pcm_sha256,
            defaults={
                "file_sha256": result.file_sha256,
                "sample_rate": result.figures["sample_rate"],
                "samples": result.figures["samples"],
            },
        )[0]
    render.save()


@router.post("/units/{kind}/{lease}/finish")
def finish(request: HttpRequest, kind: str, lease: uuid.UUID, body: Finished):
    model = mine(request, kind, lease)
    if kind == "render":
        expected = set(RenderGroup.objects.get(lease=lease).renders.values_list("pk", flat=True))
        if {c.render for c in body.clips} != expected:
            return problem(request, 422, "wrong_clips", "The clips are not those of this unit; the worker and the host disagree.")
        for result in body.clips:
            if result.outcome == "made" and not clips.storage().exists(clips.path(result.file_sha256)):
                return problem(request, 422, "clip_missing", "A clip was finished before its file was uploaded.")
    if kind == "block" and sorted(p.place for p in body.passes) != [0, 1, 2, 3]:
        return problem(request, 422, "wrong_passes", "A timed block has four passes, A-B-B-A.")

    def store(unit: Any) -> None:
        if kind == "preflight":
            unit.report = body.report | {"device_class": unit.worker.device_class}
            sample = body.report.get("sample")
            if sample and clips.storage().exists(clips.path(sample["file_sha256"])):
                unit.sample = Clip.objects.get_or_create(pcm_sha256=sample["pcm_sha256"], defaults=sample)[0]
            unit.save(update_fields=["report", "sample"])
        elif kind == "render":
            for result in body.clips:
                store_render(result, unit)
        elif kind == "diagnosis":
            unit.report = body.report | {"device_class": unit.worker.device_class, "worker": unit.worker.name}
            unit.save(update_fields=["report"])
        else:
            for part in body.passes:
                configuration = unit.first if part.place in (0, 3) else unit.second
                Pass.objects.create(block=unit, place=part.place, configuration=configuration, clips=part.clips, figures=part.figures)
            unit.contended = {str(p.place): p.contended for p in body.passes if p.contended}
            unit.save(update_fields=["contended"])

    unit = queue.finish(model, lease, timezone.now(), store)
    _ring(unit)
    return {"done": True}


@router.post("/units/{kind}/{lease}/fail")
def fail(request: HttpRequest, kind: str, lease: uuid.UUID, body: Failure):
    """The unit could not be done. After the last attempt a render's clips are failures, which are results."""
    with transaction.atomic():
        unit: Any = queue.fail(mine(request, kind, lease), lease, timezone.now(), body.error)
        if kind == "render" and unit.state == Leased.State.FAILED:
            unit.renders.update(outcome=Render.Outcome.ERROR, error=body.error[:2000])
        elif unit.state == Leased.State.QUEUED:
            type(unit).objects.filter(pk=unit.pk, state=Leased.State.QUEUED).update(worker=None)
    _ring(unit)
    return {"state": unit.state}


@router.post("/units/{kind}/{lease}/refuse")
def refuse(request: HttpRequest, kind: str, lease: uuid.UUID, body: Failure):
    """This worker can't run the configuration: a preflight or a closer look ends with the cause, anything else waits for another worker."""
    model, worker = mine(request, kind, lease), me(request)
    with transaction.atomic():
        if kind == "preflight" or (kind == "diagnosis" and not body.elsewhere):
            unit: Any = queue.fail(model, lease, timezone.now(), body.error, final=True)
        else:
            unit = queue.give_back(model, lease, body.error)
            model.objects.filter(pk=unit.pk, state=Leased.State.QUEUED).update(worker=None)
            digests = [unit.configuration.digest] if kind == "render" else [unit.first.digest, unit.second.digest]
            worker.refuses |= dict.fromkeys(digests, body.error[:500])
            worker.save(update_fields=["refuses"])
    _ring(unit)
    return {"state": unit.state}


def _ring(unit: Any) -> None:
    Worker.objects.filter(pk=unit.worker_id).update(doing="")
    sender, key = type(unit), getattr(unit, "draw_key", "")
    transaction.on_commit(lambda: render_settled.send_robust(sender=sender, draw_key=key))
