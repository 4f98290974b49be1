"""CSV of clips and votes. Sealed until a look has read them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from typing import Any

from gate import identity
from gate.models import Lever, Measurement

DANGEROUS = ("=", "+", "-", "@", "\t", "\r")


class Sealed(Exception):
    """Not to be seen before the next look; the message says when."""


def _cell(value: Any) -> Any:
    """A text that a spreadsheet would run as a formula is quoted."""
    return f"'{value}" if isinstance(value, str) and value.startswith(DANGEROUS) else value


def _csv(header: list[str], rows: Iterable[list[Any]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(header)
    writer.writerows([_cell(v) for v in row] for row in rows)
    return out.getvalue()


def clips_unsealed(lever: Lever) -> bool:
    """Once the automatic evidence has had its say: between two of its looks clips stay sealed."""
    return bool(lever.plan) and (lever.state == Lever.State.LISTENING or lever.verdict is not None)


def clip_rows(lever: Lever) -> list[dict[str, Any]]:
    """One mapping per clip. Raises Sealed before the automatic look."""
    if not clips_unsealed(lever):
        raise Sealed("Clips, their lengths and scores are sealed until the automatic look.")
    listed = list(identity.all_renders(lever))
    found = {
        (m.clip_id, m.sentence_id): m.scores
        for m in Measurement.usable().filter(clip__in={r.clip_id for r in listed if r.clip_id}, identity=lever.plan.body["metrics"])
    }
    arms = identity.arms(lever)
    order = list(arms)
    place = {digest: k for k, digest in enumerate(lever.draw.order)}
    rows = []
    for render in sorted(listed, key=lambda r: (place[r.sentence.digest], r.replicate, order.index(r.configuration_id))):
        scores = found.get((render.clip_id, render.sentence_id), {})
        rows.append(
            {
                "place": place[render.sentence.digest] + 1, "sentence": render.sentence.text,
                "arm": arms[render.configuration_id],
                "replicate": render.replicate, "seed": render.seed, "outcome": render.outcome, "failed": scores.get("failed", ""),
                "catastrophes": " ".join(scores.get("catastrophes", ())), "flags": " ".join(scores.get("flags", ())),
                "cer": scores.get("cer"), "dnsmos": scores.get("dnsmos"), "level_dbfs": scores.get("level_dbfs"),
                "seconds": render.clip.seconds if render.clip else None, "wall_s": render.figures.get("wall_s"),
                "speech_s": scores.get("speech_s"), "pauses_s": scores.get("pauses_s"), "edges_s": scores.get("edges_s"),
                **_errors(scores), "transcript": scores.get("transcript", ""), "second_transcript": scores.get("second_transcript") or "",
                "second_cer": scores.get("second_cer"), "pcm_sha256": render.clip.pcm_sha256 if render.clip else "",
                "clip": render.clip_id, "error": render.error,
            }
        )  # fmt: skip
    return rows


def _errors(scores: dict[str, Any]) -> dict[str, Any]:
    """Counts from which any other average of the error rate can be computed."""
    counted = scores.get("details", {}).get("cer", {})
    return {name: counted.get(name) for name in ("edits", "reference_length", "no_space", "lenient")}


def clips_csv(lever: Lever) -> str:
    rows = clip_rows(lever)
    header = [name for name in rows[0] if name != "clip"] if rows else []
    return _csv(header, ([row[name] for name in header] for row in rows))


def votes_csv(lever: Lever) -> str:
    """One row per standing vote, raters under the numbers of this export. Raises Sealed before the verdict."""
    if lever.study is None:
        raise Sealed("Nobody has been asked to listen to this lever.")
    if lever.verdict is None:
        raise Sealed("Votes are sealed until the verdict; only their number is shown.")
    from listening.models import Vote

    names: dict[int, int] = {}
    rows = []
    for vote in (
        Vote.objects.filter(trial__pair__study=lever.study, trial__pair__kind="test", superseded_at=None)
        .select_related("trial__pair__sentence", "trial__rater")
        .order_by("cast_at", "pk")
    ):
        trial = vote.trial
        rater = names.setdefault(trial.rater.person, len(names) + 1)
        rows.append(
            [str(vote.pk), vote.cast_at.isoformat(), rater, trial.pair.sentence.text, "right" if trial.tested_side else "left",
             vote.choice, vote.score, vote.strength, json.dumps(vote.tags, ensure_ascii=False), vote.log.get("seconds"),
             vote.log.get("switches"), vote.log.get("first"), vote.doubt, vote.build]
        )  # fmt: skip
    header = [
        "vote",
        "cast_at",
        "rater",
        "sentence",
        "candidate_side",
        "choice",
        "score",
        "strength",
        "tags",
        "seconds",
        "switches",
        "first_heard",
        "doubt",
        "build",
    ]
    return _csv(header, rows)
