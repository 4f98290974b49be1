"""Answers with byte ranges (RFC 9110, one range), which players need to seek."""

from __future__ import annotations

import re

from django.http import HttpRequest, HttpResponse


def ranged(request: HttpRequest, data: bytes, content_type: str) -> HttpResponse:
    size = len(data)
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", request.headers.get("Range", "").strip())
    headers = {"Accept-Ranges": "bytes", "Cache-Control": "private, max-age=3600"}
    if not match or not (match[1] or match[2]):
        return HttpResponse(data, content_type=content_type, headers=headers)
    first = int(match[1]) if match[1] else max(0, size - int(match[2]))
    last = min(size - 1, int(match[2])) if match[1] and match[2] else size - 1
    if first > last:
        return HttpResponse(status=416, headers={"Content-Range": f"bytes */{size}"})
    part = HttpResponse(data[first : last + 1], content_type=content_type, status=206, headers=headers)
    part["Content-Range"] = f"bytes {first}-{last}/{size}"
    return part
