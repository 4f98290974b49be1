"""The engineers' pages before a lever: what a plan can detect, and which sentences there are."""

from __future__ import annotations

import yaml
from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from gate import corpora, planning, policy, site_policy, specfile
from gate.models import Corpus, Policy, Use
from synth.configuration import LANGUAGES, Refused


class PlanForm(forms.Form):
    """What matters for the power of a plan; the margins are the policy's unless changed here."""

    sentences = forms.IntegerField(min_value=2, max_value=100_000, initial=300)
    replicates = forms.IntegerField(min_value=1, max_value=20, initial=1)
    attempts = forms.IntegerField(label="Attempts", min_value=1, max_value=5, initial=1)
    cer = forms.FloatField(label="CER margin", min_value=1e-6, max_value=1, initial=policy.POLICY.margins.cer)
    dnsmos = forms.FloatField(label="DNSMOS margin", min_value=1e-6, max_value=4, initial=policy.POLICY.margins.dnsmos)
    length = forms.FloatField(label="Length margin", min_value=1e-6, max_value=0.89, initial=policy.POLICY.margins.length)
    preference = forms.FloatField(label="Preference margin", min_value=1e-6, max_value=1, initial=policy.POLICY.margins.preference)
    votes_per_pair = forms.IntegerField(label="Votes a pair (0: nobody listens)", min_value=0, max_value=50, initial=2)
    raters = forms.IntegerField(min_value=2, max_value=10_000, initial=12)
    panel = forms.ChoiceField(
        label="How the panel differs", choices=[("low", "little"), ("both", "raters and sentences"), ("rater-heavy", "mostly raters")]
    )

    def plan(self) -> policy.Plan:
        given = self.cleaned_data
        listening = {"required": bool(given["votes_per_pair"]), "votes_per_pair": given["votes_per_pair"] or 1}
        margins = {name: given[name] for name in ("cer", "dnsmos", "length", "preference")}
        return policy.parse(
            site_policy.filled(
                {"replicates": given["replicates"], "attempts": given["attempts"], "margins": margins, "listening": listening}
            )
        )


@login_required
@require_GET
def plan(request: HttpRequest) -> HttpResponse:
    initial = {name: field.initial for name, field in PlanForm.base_fields.items()} | {"panel": "low"}
    margins = site_policy.current().margins.model_dump()
    initial |= {name: margins[name] for name in ("cer", "dnsmos", "length", "preference")}
    form = PlanForm(request.GET if request.GET else initial, label_suffix="")
    found = None
    if form.is_valid():
        found = planning.outlook(form.plan(), form.cleaned_data["sentences"], form.cleaned_data["raters"], form.cleaned_data["panel"])
    context = {
        "form": form, "found": found, "rows": planning.as_table(found) if found else [],
        "percent": {"passes": round(100 * found.passes), "undecided": round(100 * found.undecided)} if found else {},
    }  # fmt: skip
    return render(request, "gate/plan.html", context, status=200 if found else 422)


class CorpusForm(forms.Form):
    """A corpus file and what to know of it."""

    file = forms.FileField(label="File (.txt, .csv or .jsonl)")
    name = forms.CharField(max_length=120)
    language = forms.ChoiceField(choices=sorted(LANGUAGES.items(), key=lambda x: x[1]), initial="en")
    licence = forms.CharField(max_length=80, required=False)
    source = forms.CharField(max_length=200, required=False)
    revision = forms.CharField(max_length=80, required=False)


@login_required
@require_http_methods(["GET", "POST"])
def sentences(request: HttpRequest) -> HttpResponse:
    """Corpora, how much of each was used, and a form to add one."""
    form = CorpusForm(request.POST or None, request.FILES or None, label_suffix="")
    if request.method == "POST" and form.is_valid():
        given, sent = form.cleaned_data, form.cleaned_data["file"]
        try:
            corpora.check_size(sent.size, sent.name)
            data = sent.read()
            lines = corpora.read(data, sent.name, given["language"])
            taken = corpora.keep(given["name"], given["language"], lines, data, given["licence"], given["source"], given["revision"])
        except Refused as error:
            form.add_error("name" if error.field == "name" else "file", error.message)
        else:
            if taken.near:
                first = ", ".join(f"{a} and {b}" for a, b in taken.near[:5])
                messages.warning(
                    request, f"{len(taken.near)} pairs of lines are nearly the same ({first}); only one of each counts as fresh at a time."
                )
            return redirect("sentences")
    rows = [
        {"corpus": c, "total": c.sentences.count(), "used": Use.objects.filter(sentence__corpora=c).values("sentence").distinct().count()}
        for c in Corpus.objects.order_by("language", "name")
    ]
    return render(request, "gate/sentences.html", {"form": form, "rows": rows}, status=422 if form.errors else 200)


class PolicyForm(forms.Form):
    """The whole policy as YAML, and why it changes."""

    body = forms.CharField(label="The policy, as YAML", widget=forms.Textarea(attrs={"rows": 30, "spellcheck": "false"}))
    note = forms.CharField(label="Why it changes", max_length=300)


@login_required
@require_http_methods(["GET", "POST"])
def policy_page(request: HttpRequest) -> HttpResponse:
    """The policy in force and its versions; leads (staff) write a new one."""
    shown = yaml.safe_dump(site_policy.current().model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    form = PolicyForm(request.POST or None, initial={"body": shown}, label_suffix="")
    status = 200
    if request.method == "POST":
        status = 422
        if not request.user.is_staff:
            form.add_error(None, "Only leads change the policy: ask somebody who may log in to the admin pages.")
            status = 403
        elif form.is_valid():
            try:
                site_policy.replace(specfile.mapping(form.cleaned_data["body"]), form.cleaned_data["note"], request.user)
            except Refused as error:
                form.add_error("body", error.message)
            else:
                return redirect("policy")
    context = {"form": form, "versions": Policy.objects.select_related("by").order_by("-pk")[:50], "shown": shown}
    return render(request, "gate/policy.html", context, status=status)
