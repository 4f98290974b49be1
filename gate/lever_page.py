"""What the page of a lever shows: its status while it moves, the evidence of the looks so far, its sentences."""

from __future__ import annotations

from typing import Any

from gate import annotations, charts, cumulative, draws, export, lineage, progress, reasons, standing, starting, timing
from gate.models import Lever, Look
from synth import configuration as schema
from synth.models import Pass, Preflight


def status(found: Lever) -> dict:
    verdict = found.verdict
    return {
        "lever": found,
        "bars": progress.bars(found),
        "verdict": verdict,
        "words": reasons.VERDICTS.get(verdict.verdict) if verdict else "",
        "fallen": [(code, *reasons.explain(code)) for code in standing.why_not(found)],
    }


def evidence(found: Lever) -> dict:
    """What the looks so far have read; nothing between looks."""
    looks = list(Look.objects.filter(plan__lever=found).order_by("pk"))
    if not looks:
        return {"looks": []}
    if not export.clips_unsealed(found):
        return {"looks": []}
    newest, first = looks[-1].evidence, [look for look in looks if look.kind == Look.Kind.AUTOMATIC][-1].evidence
    facts = newest["endpoints"]
    return {
        "looks": looks, "facts": first, "newest": newest, "defects": _defects(newest.get("defects", [])),
        "peculiar": peculiar(first["arms"]),
        "confidence": round(100 * (1 - newest.get("tail", found.plan.body["tail"])), 2),
        "lengthened": _lengthened(first.get("length_parts", [])),
        "endpoints": [{"fact": f, "chart": charts.interval(f), "shown": charts.shown(f)} for f in facts],
    }  # fmt: skip


def _defects(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Each sentence in parts: plain text, and words that listeners pointed at with how many did."""
    out = []
    for row in rows:
        parts, at = [], 0
        for word in row["words"]:
            if word["start"] < at:
                continue  # it overlaps one that is marked already
            parts.append({"text": row["sentence"][at : word["start"]], "parent": None})
            parts.append({"text": row["sentence"][word["start"] : word["end"]], "parent": word["parent"], "candidate": word["candidate"]})
            at = word["end"]
        out.append([*parts, {"text": row["sentence"][at:], "parent": None}])
    return out


def _sentences(found: Lever) -> list[dict]:
    """Per sentence, both arms' first replicate."""
    table: dict[int, dict] = {}
    for row in export.clip_rows(found):
        if row["replicate"] == 0:
            table.setdefault(row["place"], {"place": row["place"], "sentence": row["sentence"]})[row["arm"]] = row
    return list(table.values())


def _lengthened(parts: list[dict[str, Any]]) -> str:
    """The mean change of length of a sentence, or '' where no sentence has both."""
    known = [p["estimate"] for p in parts if p["estimate"] is not None]
    return f"{charts.signed(sum(known))} s" if known else ""


def peculiar(arms: dict[str, Any]) -> list[dict[str, Any]]:
    """Catastrophes and flags of both arms beside each other, with what each means."""
    rows = []
    for kind, words in (("catastrophes", reasons.CATASTROPHES), ("flags", reasons.FLAGS)):
        counts = [arms[arm].get(kind, {}) for arm in ("parent", "candidate")]
        for name in sorted(counts[0].keys() | counts[1].keys()):
            parent, candidate = (c.get(name, 0) for c in counts)
            text = words.get(name, name)
            rows.append({"name": name, "kind": kind.removesuffix("s"), "words": text, "parent": parent, "candidate": candidate})
    return rows


def _roofline(found: Lever, unsealed: bool) -> list[dict[str, Any]]:
    """For each system that speaks frame by frame: what its weights alone would take, predicted when it was tried; and what was timed."""
    blocks = timing.undisturbed(timing.against_parent(found).rows()) if unsealed and found.plan else []
    rows = []
    for configuration in (found.parent, found.candidate):
        flight = Preflight.objects.filter(configuration=configuration).first()
        predicted = flight.report.get("roofline") if flight else None
        if not predicted:
            continue
        same = found.plan and flight.report.get("device_class") == found.plan.body["device_class"]  # else a prediction for another machine
        timed = Pass.objects.filter(block__in=blocks if same else [], configuration=configuration)
        rows.append(predicted | {"name": configuration.name, "at": flight.settled_at, "measured_ms": _frame_ms(list(timed))})
    return rows


def _frame_ms(passes: list[Pass]) -> float | None:
    """Milliseconds of a frame, all in; of a batch a frame is a step of all its rows. None where no tokens were counted."""
    steps = wall = 0.0
    for one in passes:
        clips = [clip for clip in one.clips if clip.get("tokens")]
        steps += one.figures.get("steps") or sum(clip["tokens"] for clip in clips)
        wall += one.figures["total_wall_s"] if one.figures.get("steps") else sum(clip["wall_s"] for clip in clips)
    return 1000 * wall / steps if steps else None


def _loaded(found: Lever) -> list[tuple[str, Any, Any]]:
    """What both systems were once they were loaded, read back from their processes: (setting, parent, candidate)."""
    flights = [Preflight.objects.filter(configuration=c).first() for c in (found.parent, found.candidate)]
    sides = [_flat((f.report if f else {}).get("notes", {}).get("effective") or {}) for f in flights]
    return [(name, sides[0].get(name), sides[1].get(name)) for name in sorted(sides[0].keys() | sides[1].keys())]


def _flat(effective: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in effective.items():
        out |= {f"{name}: {inner}": v for inner, v in value.items()} if isinstance(value, dict) else {name: value}
    return out


def _start(found: Lever) -> dict[str, Any] | None:
    return starting.rows(found.parent, found.candidate, timing.undisturbed(timing.against_parent(found).rows()))


def _stock(found: Lever) -> draws.Stock:
    """What is left for a next attempt of this lever's lineage: its own draw is spent once it is locked."""
    return draws.stock(found.corpus, [found], "" if found.draw else found.campaign)


def whole(found: Lever) -> dict[str, Any]:
    verdict, plan = found.verdict, found.plan
    unsealed = export.clips_unsealed(found)
    kin = Lever.objects.filter(pk__in=lineage.lineage(found)).exclude(pk=found.pk).order_by("pk")
    return status(found) | evidence(found) | {
        "changes": schema.difference(found.candidate.parsed(), found.parent.parsed()), "plan": plan,
        "history": found.history.order_by("-pk")[:50],
        "reasons": [(code, *reasons.explain(code)) for code in verdict.reasons] if verdict else [],
        "clips": _sentences(found) if unsealed else None,
        "comparisons": annotations.comparisons(found) if unsealed else [],
        "judgements": annotations.judgements(found) if unsealed else [],
        "kin": kin, "stock": _stock(found), "proposed": lineage.proposed(found) if found.variant_of is None else [],
        "root_speed": cumulative.facts(found), "may_time_root": unsealed and cumulative.against_root(found) is not None,
        "roofline": _roofline(found, unsealed), "start": _start(found) if unsealed else None, "loaded": _loaded(found),
        "votes_open": found.study is not None and verdict is not None,
    }  # fmt: skip
