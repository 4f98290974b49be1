"""Charts as SVG made on the server; colours come from the page's style sheet."""

from __future__ import annotations

import math
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString

WIDTH, HEIGHT, PAD = 320, 34, 10


def number(value: float | None, digits: int = 3) -> str:
    if value is None:
        return "∞"
    return f"{round(value, digits) + 0.0:.{digits}f}"  # no minus before a zero


def signed(value: float, digits: int = 3) -> str:
    return ("+" if round(value, digits) > 0 else "") + number(value, digits)


def shown(fact: dict[str, Any]) -> tuple[str, str, str, str]:
    """Estimate, lower, upper and margin as texts with as many digits as keep a limit off its margin."""
    limits = [fact[k] for k in ("margin", "low", "high") if fact.get(k) is not None]
    digits = 3
    while digits < 8 and any(
        fact[end] is not None and fact[end] != limit and number(fact[end], digits) == number(limit, digits)
        for end in ("lower", "upper")
        for limit in limits
    ):
        digits += 1
    margin = f"< {number(fact['margin'], 2)}" if fact["margin"] is not None else f"{number(fact['low'], 2)} to {number(fact['high'], 2)}"
    return (
        number(fact["estimate"], digits) if fact["estimate"] is not None else "–",
        number(fact["lower"], digits),
        number(fact["upper"], digits),
        margin,
    )


def interval(fact: dict[str, Any]) -> SafeString:
    """The interval as a bar with its estimate, the margin as lines; an arrow where an end lies outside the picture."""
    limits = [fact["margin"]] if fact["margin"] is not None else [fact["low"], fact["high"]]
    neutral = 1.0 if fact["name"].endswith("length") else 0.0
    reach = 2.0 * max(abs(limit - neutral) for limit in limits)
    inside = [abs(v - neutral) for v in (fact["lower"], fact["upper"]) if v is not None and math.isfinite(v)]
    reach = max(reach, min(max(inside, default=0.0) * 1.1, 4 * reach))
    left, right = neutral - reach, neutral + reach

    def x(value: float | None, default: float) -> float:
        value = default if value is None else value
        return PAD + (WIDTH - 2 * PAD) * min(max((value - left) / (right - left), 0.0), 1.0)

    low, high = x(fact["lower"], left), x(fact["upper"], right)
    estimate = x(fact["estimate"], neutral)
    lines = "".join(f'<line class="margin" x1="{x(v, 0):.1f}" x2="{x(v, 0):.1f}" y1="3" y2="31"/>' for v in limits)
    text = f"{fact['label']}: {shown(fact)[0]}, interval {shown(fact)[1]} to {shown(fact)[2]}, margin {shown(fact)[3]}"
    return format_html(
        '<svg class="interval {}" viewBox="0 0 {} {}" role="img" aria-label="{}">'
        '<line class="neutral" x1="{}" x2="{}" y1="8" y2="26"/>{}'
        '<line class="span" x1="{}" x2="{}" y1="17" y2="17"/><circle cx="{}" cy="17" r="4.5"/></svg>',
        fact["state"], WIDTH, HEIGHT, text, f"{x(neutral, 0):.1f}", f"{x(neutral, 0):.1f}", SafeString(lines),
        f"{low:.1f}", f"{high:.1f}", f"{estimate:.1f}",
    )  # fmt: skip


CELL_W, CELL_H, LABEL_W = 58, 30, 96


def heat(cadences: list[dict[str, Any]]) -> SafeString:
    """Intervals down, pre-rolls across; the more streams starve, the darker. The smallest pre-roll that never starves is framed."""
    prerolls = [cell["preroll_s"] for cell in cadences[0]["cells"]]
    parts = [
        f'<text class="axis" x="{LABEL_W + k * CELL_W + CELL_W / 2}" y="16" text-anchor="middle">{preroll:g} s</text>'
        for k, preroll in enumerate(prerolls)
    ]
    for r, row in enumerate(cadences):
        y = 24 + r * CELL_H
        parts.append(f'<text class="axis" x="{LABEL_W - 10}" y="{y + 20}" text-anchor="end">{row["interval_s"]:g} s</text>')
        good = next((k for k, cell in enumerate(row["cells"]) if cell["starving"] == 0), None)
        for k, cell in enumerate(row["cells"]):
            x = LABEL_W + k * CELL_W
            kind = "cell good" if k == good else "cell"
            parts.append(f'<rect class="{kind}" x="{x + 1}" y="{y + 1}" width="{CELL_W - 2}" height="{CELL_H - 2}" rx="3"/>')
            parts.append(
                f'<rect class="hot" x="{x + 1}" y="{y + 1}" width="{CELL_W - 2}" height="{CELL_H - 2}" rx="3" '
                f'fill-opacity="{0.5 * cell["starving"]:.2f}"/>'
            )
            parts.append(f'<text x="{x + CELL_W / 2}" y="{y + 20}" text-anchor="middle">{round(100 * cell["starving"])} %</text>')
    width, height = LABEL_W + len(prerolls) * CELL_W, 26 + len(cadences) * CELL_H
    return format_html(
        '<svg class="heat" width="{}" height="{}" viewBox="0 0 {} {}" role="img" aria-label="Share of streams that starve">{}</svg>',
        width, height, width, height, SafeString("".join(parts)),
    )  # fmt: skip


def histogram(edge: dict[str, Any]) -> SafeString:
    """Both arms' counts side by side on shared bins, with a line where the end of speech becomes the likeliest."""
    counts, low, width = edge["counts"], edge["low"], edge["width"]
    most = max(max(c) for c in counts.values()) or 1
    step, tall = WIDTH / len(counts["parent"]), 90
    bars = []
    for k in range(len(counts["parent"])):
        for j, arm in enumerate(("parent", "candidate")):
            height = tall * counts[arm][k] / most
            bars.append(
                f'<rect class="{arm}" x="{k * step + 2 + j * (step / 2 - 2):.1f}" y="{4 + tall - height:.1f}" '
                f'width="{step / 2 - 3:.1f}" height="{height:.1f}"/>'
            )
    zero = (0 - low) / width * step
    if 0 <= zero <= WIDTH:
        bars.append(f'<line class="margin" x1="{zero:.1f}" x2="{zero:.1f}" y1="0" y2="{tall + 4}"/>')
    high = low + width * len(counts["parent"])
    label = f"Margins from {low:.1f} to {high:.1f}; parent {counts['parent']}, candidate {counts['candidate']}"
    return format_html(
        '<svg class="histogram" width="{}" height="112" viewBox="0 0 {} 112" role="img" aria-label="{}">{}'
        '<text class="axis" x="0" y="108">{}</text><text class="axis" x="{}" y="108" text-anchor="end">{}</text></svg>',
        WIDTH, WIDTH, label, SafeString("".join(bars)), f"{low:.1f}", WIDTH, f"{high:.1f}",
    )  # fmt: skip
