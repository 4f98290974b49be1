"""The engineers' pages: parse, call one verb, answer."""

from __future__ import annotations

import json
from datetime import timedelta

from django.conf import settings
from django.contrib.auth import get_user_model, login, update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm
from django.core import signing
from django.db import connection
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods

from gate import export, identity, lever_page, progress, register, scoring, specfile
from gate.files import ranged
from gate.forms import SpecForm
from gate.models import Lever, Measurement, Scorer
from synth import clips
from synth import configuration as schema
from synth.models import Leased, Render, RenderGroup, Worker

ENTRY_SALT, ENTRY_AGE = "first-run", 24 * 3600


@require_GET
def health(request: HttpRequest) -> HttpResponse:
    """For load balancers and the supervisor: the database answers."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return HttpResponse("ok", content_type="text/plain")


def entry_token(username: str) -> str:
    """A link for one login: it carries the time of the last one, which that login changes."""
    user = get_user_model().objects.get(username=username)
    return signing.dumps([username, str(user.last_login)], salt=ENTRY_SALT)


@require_GET
def enter(request: HttpRequest, token: str) -> HttpResponse:
    """The link that `manage.py up` prints: whoever can read the terminal owns the machine."""
    if request.user.is_authenticated:
        return redirect("levers")
    try:
        username, last_login = signing.loads(token, salt=ENTRY_SALT, max_age=ENTRY_AGE)
        user = get_user_model().objects.get(username=username, is_active=True)
        if str(user.last_login) != last_login:
            raise signing.BadSignature("used")
    except (signing.BadSignature, ValueError, get_user_model().DoesNotExist):
        text = "This link was used already, is older than a day, or was made elsewhere. Start `manage.py up` again, or log in."
        return render(request, "gate/problem.html", {"title": "This link is no longer valid", "text": text}, status=410)
    login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    return redirect("levers")


@login_required
@require_http_methods(["GET", "POST"])
def password(request: HttpRequest) -> HttpResponse:
    """A first password for who came by link, a new one for who has one."""
    kind = PasswordChangeForm if request.user.has_usable_password() else SetPasswordForm
    form = kind(request.user, request.POST or None)
    if request.method == "POST" and form.is_valid():
        form.save()
        update_session_auth_hash(request, request.user)
        return redirect("machine")
    return render(request, "gate/password.html", {"form": form}, status=422 if form.errors else 200)


def installation() -> dict | None:
    """Progress of the speech parts while `manage.py up` brings them; None when there is nothing to say."""
    try:
        found = json.loads((settings.VAR / "run" / "install.json").read_text())
    except (OSError, ValueError):
        return None
    return None if found["state"] == "ready" else found | {"percent": round(100 * found["mb"] / max(1, found["of_mb"]))}


def _listed() -> dict:
    found = Lever.objects.select_related("parent", "candidate", "draw", "study").order_by("-pk")[:100]
    # Bars only for what still moves: the list is asked for every few seconds.
    rows = [{"lever": x, "bars": [] if x.state == Lever.State.SETTLED else progress.bars(x), "verdict": x.verdict} for x in found]
    workers = Worker.objects.filter(last_seen__gte=timezone.now() - timedelta(minutes=2)).count()
    return {"rows": rows, "installation": installation(), "workers": workers, "unsettled": any(r["verdict"] is None for r in rows)}


@login_required
@require_GET
def levers(request: HttpRequest) -> HttpResponse:
    return render(request, "gate/levers.html", _listed())


@login_required
@require_GET
def lever_list(request: HttpRequest) -> HttpResponse:
    return render(request, "gate/_levers.html", _listed())


@login_required
@require_http_methods(["GET", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    form = SpecForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            made = register.register(specfile.read_yaml(form.cleaned_data["spec"]), request.user)
        except schema.Refused as error:
            form.add_error("spec", error.message)
        else:
            return redirect("lever", slug=made[0].slug) if len(made) == 1 else redirect("levers")
    return render(request, "gate/new.html", {"form": form}, status=422 if form.errors else 200)


def lever_or_404(slug: str) -> Lever:
    return get_object_or_404(Lever.objects.select_related("parent", "candidate", "draw", "study", "corpus"), slug=slug)


@login_required
@require_GET
def lever(request: HttpRequest, slug: str) -> HttpResponse:
    found = lever_or_404(slug)
    return render(request, "gate/lever.html", lever_page.whole(found))


@login_required
@require_GET
def lever_status(request: HttpRequest, slug: str) -> HttpResponse:
    """The part of the page that moves; when the state changed, the whole page is loaded again."""
    found = lever_or_404(slug)
    response = render(request, "gate/_status.html", lever_page.status(found))
    if request.GET.get("state") not in (None, found.state):
        response["HX-Refresh"] = "true"
    return response


def _file(text: str, name: str, kind: str) -> HttpResponse:
    return HttpResponse(text, content_type=f"{kind}; charset=utf-8", headers={"Content-Disposition": f'attachment; filename="{name}"'})


@login_required
@require_GET
def clips_csv(request: HttpRequest, slug: str) -> HttpResponse:
    try:
        return _file(export.clips_csv(lever_or_404(slug)), f"{slug}-clips.csv", "text/csv")
    except export.Sealed as error:
        return render(request, "gate/problem.html", {"title": "Still sealed", "text": str(error)}, status=409)


@login_required
@require_GET
def votes_csv(request: HttpRequest, slug: str) -> HttpResponse:
    try:
        return _file(export.votes_csv(lever_or_404(slug)), f"{slug}-votes.csv", "text/csv")
    except export.Sealed as error:
        return render(request, "gate/problem.html", {"title": "Still sealed", "text": str(error)}, status=409)


@login_required
@require_GET
def plan_json(request: HttpRequest, slug: str) -> HttpResponse:
    plan = lever_or_404(slug).plan
    if plan is None:
        raise Http404("The plan is not locked yet.")
    return _file(json.dumps(plan.body, indent=2, sort_keys=True), f"{slug}-plan.json", "application/json")


@login_required
@require_GET
def clip(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """A clip of this lever, once the automatic look has read it; ranges are honoured, as Safari needs."""
    found = lever_or_404(slug)
    if not (found.draw and export.clips_unsealed(found)):
        raise Http404
    render_ = Render.objects.filter(draw_key=found.draw.key, configuration__in=list(identity.arms(found)), clip=pk).first()
    if render_ is None or render_.clip is None:
        raise Http404
    return ranged(request, clips.read(render_.clip), "audio/flac")


@login_required
@require_GET
def machine(request: HttpRequest) -> HttpResponse:
    """Workers, queues, and what is being installed."""
    waiting = [
        ("Clips to render", RenderGroup.objects.exclude(state__in=[Leased.State.DONE, Leased.State.FAILED]).count()),
        ("Clips to measure", Measurement.objects.exclude(state__in=[Leased.State.DONE, Leased.State.FAILED]).count()),
    ]
    soon = timezone.now() - timedelta(minutes=2)
    context = {
        "workers": Worker.objects.order_by("name"),
        "soon": soon,
        "waiting": waiting,
        "installation": installation(),
        "version": settings.VERSION,
        "scorers": [(s, scoring.recent(s)) for s in Scorer.objects.order_by("name")],
    }
    return render(request, "gate/machine.html", context)
