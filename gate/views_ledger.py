"""The ledger's page: the ladders of systems, and every plan and verdict in the order they were written."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from gate import ladder
from gate.models import LedgerEntry


@login_required
@require_GET
def ledger_page(request: HttpRequest) -> HttpResponse:
    pages = Paginator(LedgerEntry.objects.select_related("lever").order_by("-number"), 100)
    return render(request, "gate/ledger.html", {"ladders": ladder.ladders(), "page": pages.get_page(request.GET.get("page"))})
