"""Pages about the people who listen: invitations, and how a panel is doing. No page here tells what anybody preferred."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.core.validators import URLValidator
from django.db.models import Count
from django.db.models.functions import TruncDate
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from gate import ears, history, site_policy
from gate.files import ranged
from listening import passage, screening
from listening.models import Invitation, Panel, Vote, Word
from listening.pairs import PERSON
from synth import clips, pcm
from synth.configuration import LANGUAGES

MOST_BYTES = 5 << 20


class InvitationForm(forms.Form):
    """A link for raters. What a crowd platform needs is optional."""

    language = forms.ChoiceField(choices=sorted(LANGUAGES.items(), key=lambda x: x[1]), initial="en")
    raters = forms.IntegerField(label="Raters at most", min_value=1, max_value=10000, initial=24)
    note = forms.CharField(label="Note for you", max_length=200, required=False)
    answers_wanted = forms.IntegerField(label="Answers of each", min_value=1, max_value=400, required=False)
    return_url = forms.CharField(
        label="Where the platform wants them back", max_length=300, required=False, validators=[URLValidator(schemes=["https"])],
        help_text="https://…?cc={code}",
    )  # fmt: skip
    code_complete = forms.CharField(label="Code: complete", max_length=40, required=False)
    code_screened = forms.CharField(label="Code: screened out", max_length=40, required=False)
    code_full = forms.CharField(label="Code: full", max_length=40, required=False)


@login_required
@require_http_methods(["GET", "POST"])
def invitations(request: HttpRequest) -> HttpResponse:
    """Links for raters: make one, see how many came, withdraw one."""
    if request.method == "POST" and request.POST.get("revoke"):
        Invitation.objects.filter(token=request.POST["revoke"], revoked_at=None).update(revoked_at=timezone.now())
        return redirect("invitations")
    form = InvitationForm(request.POST or None, label_suffix="")
    if request.method == "POST" and form.is_valid():
        given = dict(form.cleaned_data)
        panel, _ = Panel.objects.get_or_create(language=given.pop("language"))
        Invitation.objects.create(
            panel=panel, max_raters=given.pop("raters"), created_by=request.user, expires_at=timezone.now() + timedelta(days=30), **given
        )
        return redirect("invitations")
    rows = [(i, i.raters.count(), i.why_closed()) for i in Invitation.objects.select_related("panel").order_by("-pk")[:100]]
    context = {"rows": rows, "site": settings.SITE_URL, "form": form, "panels": Panel.objects.order_by("language")}
    return render(request, "gate/invitations.html", context, status=422 if form.errors else 200)


class WordForm(forms.Form):
    """A recorded word for the language test, and the word it must be told from."""

    file = forms.FileField(label="Recording (WAV or FLAC, one channel)")
    said = forms.CharField(label="Word that is said", max_length=60)
    other = forms.CharField(label="Word it is told from", max_length=60)
    contrast = forms.CharField(label="What tells them apart", max_length=60, required=False)

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or {}
        if given.get("said") and given.get("said") == given.get("other"):
            self.add_error("other", "The two words are the same: give the one it is mistaken for.")
        return given


#: What a set for a language should ask for; shown where words are uploaded.
ASKS = {"hi": "For Hindi, ask for pairs that differ in retroflex and dental, and in aspirated and plain consonants: टाल / ताल, खाल / काल."}


@login_required
@require_http_methods(["GET", "POST"])
def panel(request: HttpRequest, language: str) -> HttpResponse:
    """How a panel listens: who counts and who doesn't and why, its controls, its words."""
    found = get_object_or_404(Panel, language=language)
    form = WordForm(request.POST or None, request.FILES or None, label_suffix="")
    if request.method == "POST" and form.is_valid() and _add_word(found, form, request):
        return redirect("panel", language=language)
    rules = ears.rules(site_policy.current())
    rows = screening.summary(found, rules)
    context = {
        "panel": found, "rows": rows, "alarm": screening.alarm(found, rules), "form": form, "asks": ASKS.get(language, ""),
        "counted": sum(not r["why"] for r in rows), "reasons": dict(Counter(r["why"] for r in rows if r["why"])),
        "days": _days(found, {r["rater"] for r in rows if r["why"]}), "controls": screening.controls_answered(found),
        "words": found.words.filter(retired_at=None).annotate(n=Count("approved_by")).order_by("pk"),
        "needed": passage.APPROVALS, "fewest": passage.FEWEST,
    }  # fmt: skip
    return render(request, "gate/panel.html", context, status=422 if form.errors else 200)


def _add_word(found: Panel, form: WordForm, request: HttpRequest) -> bool:
    given = form.cleaned_data
    try:
        if given["file"].size > MOST_BYTES:
            raise pcm.BadAudio(f"it is larger than {MOST_BYTES >> 20} MB")
        sound = pcm.decode(given["file"].read())
        clip = clips.keep(sound.samples, sound.sample_rate)
    except pcm.BadAudio as error:
        form.add_error("file", f"The recording was refused: {error}.")
        return False
    _, made = Word.objects.get_or_create(
        panel=found, clip=clip, defaults={"said": given["said"], "other": given["other"], "contrast": given["contrast"]}
    )
    if not made:
        form.add_error("file", "This very recording is there already.")
        return False
    history.note(None, f"a word for the language test of {found.language} was uploaded: {given['said']}", request.user)
    return True


def _days(found: Panel, out: set[int]) -> list[dict[str, Any]]:
    """Votes of the last fortnight, day by day: by raters who count, and by others."""
    since = timezone.now() - timedelta(days=14)
    votes = Vote.objects.filter(trial__rater__panel=found, cast_at__gt=since, superseded_at=None)
    rows = votes.annotate(day=TruncDate("cast_at"), person=PERSON).values("day", "person").annotate(n=Count("pk")).order_by("-day")
    days: dict[Any, list[int]] = {}
    for row in rows:
        days.setdefault(row["day"], [0, 0])[row["person"] in out] += row["n"]
    return [{"day": day, "counted": n[0], "excluded": n[1]} for day, n in days.items()]


@login_required
@require_POST
def word(request: HttpRequest, pk: int) -> HttpResponse:
    """Approves a recorded word, once for each person; or takes it out of the test."""
    found = get_object_or_404(Word.objects.select_related("panel"), pk=pk)
    if request.POST.get("do") == "approve":
        found.approved_by.add(request.user)
    elif request.POST.get("do") == "retire":
        Word.objects.filter(pk=pk, retired_at=None).update(retired_at=timezone.now())
    return redirect("panel", language=found.panel.language)


@login_required
def word_clip(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(Word.objects.select_related("clip"), pk=pk)
    return ranged(request, clips.read(found.clip), "audio/flac")
