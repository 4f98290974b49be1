"""The page of recordings that voices are cloned from."""

from __future__ import annotations

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from gate import voices
from gate.files import ranged
from synth import clips
from synth.configuration import Refused
from synth.models import Voice


class VoiceForm(forms.Form):
    """A recording, and that its speaker agreed."""

    file = forms.FileField(label="Recording (WAV or FLAC, one channel)")
    name = forms.CharField(max_length=80)
    consent = forms.CharField(label="Whose voice it is, and that they agreed to its being cloned", max_length=300)
    text = forms.CharField(label="What is said in it", required=False)


@login_required
@require_http_methods(["GET", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    """Lists recordings with the name a configuration gives them; takes a new one."""
    sent = (request.POST, request.FILES) if request.method == "POST" else ()
    form = VoiceForm(*sent, label_suffix="")
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        try:
            if given["file"].size > voices.MOST_BYTES:
                raise voices.too_large()
            voices.keep(given["name"], given["file"].read(), given["consent"], given["text"], request.user)
        except Refused as error:
            form.add_error(error.field if error.field in form.fields else "file", error.message)
        else:
            return redirect("voices")
    rows = Voice.objects.select_related("clip").order_by("name")
    return render(request, "gate/voices.html", {"form": form, "rows": rows}, status=422 if form.errors else 200)


@login_required
def clip(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(Voice.objects.select_related("clip"), pk=pk)
    return ranged(request, clips.read(found.clip), "audio/flac")
