"""What an engineer can do to a lever that is under way or over: a button each, and each may be pressed twice."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from gate import cumulative, history, lineage, register, standing
from gate.models import Lever
from gate.views import lever_or_404
from synth import bell
from synth.configuration import Refused
from synth.models import Preflight


@login_required
@require_POST
def check_again(request: HttpRequest, slug: str) -> HttpResponse:
    found = lever_or_404(slug)
    if found.state == Lever.State.CHECKING:
        known = Preflight.objects.filter(configuration=found.candidate).first()
        device_class = (known.report if known else {}).get("device_class", "")
        for configuration in (found.parent, found.candidate):
            register.want_preflight(configuration, found.corpus.language, again=True, device_class=device_class)
        Lever.objects.filter(pk=found.pk, state=Lever.State.CHECKING).update(problem="")
        history.note(found, "checked again on a worker", request.user)
        bell.ring_after_commit()
    return redirect("lever", slug=slug)


@login_required
@require_POST
def link_variant(request: HttpRequest, slug: str) -> HttpResponse:
    """Declares a lever a variant of an earlier one. Late, too: it can only make its verdict weaker."""
    found = lever_or_404(slug)
    other = get_object_or_404(Lever, slug=request.POST.get("of", ""))
    if other.pk >= found.pk or not Lever.objects.filter(pk=found.pk, variant_of=None).update(variant_of=other):
        text = f"{found.slug} is linked already." if other.pk < found.pk else "A lever is a variant of one that was registered before it."
        return render(request, "gate/problem.html", {"title": "Not linked", "text": text}, status=409)
    history.note(found, f"declared a variant of {other.slug}", request.user)
    for kin in Lever.objects.filter(pk__in=lineage.lineage(lever_or_404(slug)), state=Lever.State.SETTLED).select_related("draw"):
        standing.judge_again(kin)
    return redirect("lever", slug=slug)


@login_required
@require_POST
def time_root(request: HttpRequest, slug: str) -> HttpResponse:
    """Has the candidate timed against the root it grew from."""
    try:
        cumulative.ask(lever_or_404(slug), request.user)
    except Refused as error:
        return render(request, "gate/problem.html", {"title": "Not timed", "text": error.message}, status=409)
    return redirect("lever", slug=slug)
