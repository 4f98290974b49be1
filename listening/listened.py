"""What a browser says of how somebody listened: kept in one shape, and doubted where it can't be true. Pure."""

from __future__ import annotations

from typing import Any

SIDES = ("left", "right")
#: A side counts as heard when so much of it was rendered, its very end included.
HEARD_SHARE = 0.9
#: Clocks of browsers and servers part by so many seconds in an answer's time.
SLACK_S = 5.0
MOST_STATES = 20
#: Samples a second where a browser does not say.
USUAL_RATE = 24000.0
#: Rendered frames below this share of what was said to be heard of the shorter recording prove it wrong; silence at an end is not played.
PROVEN_SHARE = 0.25
#: What may be wrong with a recording; the page has the words for them.
TAGS = (
    "mispronounced", "noise", "pause", "cut", "robotic", "accent", "pace", "reading", "other-voice", "retroflex", "aspirated",
)  # fmt: skip
MOST_TAGS = 24


def _number(value: Any, low: float = 0.0, high: float = 1e7) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return round(float(min(max(value, low), high)), 3) if known else None  # bounded first: a number may be too long for a float


def _sides(value: Any, high: float = 1e9) -> dict[str, float]:
    given = value if isinstance(value, dict) else {}
    return {side: _number(given.get(side), 0.0, high) or 0.0 for side in SIDES}


def kept(log: dict[str, Any]) -> dict[str, Any]:
    """The log with the keys and kinds we know; whatever else was sent is dropped."""
    tail = log.get("tail") if isinstance(log.get("tail"), dict) else {}
    client = log.get("client") if isinstance(log.get("client"), dict) else {}
    states = log.get("states") if isinstance(log.get("states"), list) else []
    return {
        "frames": _sides(log.get("frames")), "share": _sides(log.get("share"), 1.0), "tail": {s: tail.get(s) is True for s in SIDES},
        "plays": _sides(log.get("plays"), 1e4), "switches": _number(log.get("switches"), 0, 1e4) or 0.0,
        "first": log.get("first") if log.get("first") in SIDES else "", "seconds": _number(log.get("seconds")),
        "output_latency_s": _number(log.get("output_latency_s"), 0, 60), "sound_breaks": _number(log.get("sound_breaks"), 0, 1e4) or 0.0,
        "glitches": _number(log.get("glitches"), 0, 1e6) or 0.0, "states": [str(s)[:20] for s in states[:MOST_STATES]],
        "rate": _number(client.get("rate"), 8000, 384000) or USUAL_RATE,
        "client": {str(k)[:20]: str(v)[:120] for k, v in list(client.items())[:8]},
    }  # fmt: skip


def doubt(log: dict[str, Any], lengths_s: tuple[float, float], since_s: float) -> str:
    """Why the listening behind an answer is in doubt, or ''. Args: a kept log; both recordings; seconds since the trial was given.

    `unheard`: not all of both sides was rendered. `hasty`: answered in less time than the longer recording lasts.
    `impossible`: more was heard, or longer, than there was time for, or than was rendered.
    """
    if any(log["share"][side] < HEARD_SHARE or not log["tail"][side] for side in SIDES):
        return "unheard"
    seconds = log["seconds"]
    if seconds is None or seconds < max(lengths_s):
        return "hasty"
    rendered = [log["frames"][side] / log["rate"] for side in SIDES]
    if seconds > since_s + SLACK_S or sum(rendered) > seconds + SLACK_S or min(rendered) < PROVEN_SHARE * min(lengths_s):
        return "impossible"
    return ""


def tags(given: Any, length: int) -> list[dict[str, Any]] | None:
    """Tags as [{side, word, tag}]; word is [start, end) in the sentence's characters, None for all of it. None where it is no such list."""
    if not isinstance(given, list) or len(given) > MOST_TAGS:
        return None
    out = []
    for item in given:
        if not isinstance(item, dict) or item.get("side") not in SIDES or item.get("tag") not in TAGS:
            return None
        word = item.get("word")
        if word is not None and not _is_span(word, length):
            return None
        out.append({"side": item["side"], "word": word, "tag": item["tag"]})
    return out


def _is_span(word: Any, length: int) -> bool:
    whole = isinstance(word, list) and len(word) == 2 and all(isinstance(n, int) and not isinstance(n, bool) for n in word)
    return whole and 0 <= word[0] < word[1] <= length
