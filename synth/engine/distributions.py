"""How far two systems' next-token distributions are apart, given the same history (metrics.md 2.10). NumPy only."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
#: Frames at either end of a sentence whose margin over the end of speech is looked at: a model that stops early shows at both.
EDGE = 20
#: Natural logarithm of the smallest probability that is told from nothing.
LEAST = -100.0
#: What a step is drawn with, besides its logits.
SETTINGS = ("temperature", "top_k", "top_p", "repetition_penalty")


@dataclass(frozen=True)
class Steps:
    """The draws of one sentence in their order. `codebook` 0 begins a frame; `logits`: one row a step as the model gave it, -inf behind."""

    tokens: npt.NDArray[np.int64]
    codebook: npt.NDArray[np.int64]
    logits: npt.NDArray[np.float32]
    settings: Floats
    penalised: list[list[int]]
    suppressed: list[int]
    eos: int | None

    @classmethod
    def of(cls, steps: list[dict[str, Any]], eos: int | None) -> Steps:
        """From what the watch kept. Only the first codebook's draw suppresses tokens: it begins a frame."""
        width = max(len(s["logits"]) for s in steps)
        rows = np.full((len(steps), width), -np.inf, np.float32)
        books, book = [], 0
        for row, step in zip(rows, steps, strict=True):
            row[: len(step["logits"])] = step["logits"]
            book = 0 if step["suppressed"] else book + 1
            books.append(book)
        settings = np.array([[s[name] for name in SETTINGS] for s in steps])
        suppressed = next((s["suppressed"] for s in steps if s["suppressed"]), [])
        tokens = np.array([s["token"] for s in steps])
        return cls(tokens, np.array(books), rows, settings, [sorted(set(s["history"])) for s in steps], suppressed, eos)

    @property
    def frames(self) -> int:
        return int((self.codebook == 0).sum())

    def save(self, file: Path) -> None:
        lengths = np.array([len(p) for p in self.penalised])
        flat = np.array([t for p in self.penalised for t in p], np.int64)
        np.savez(
            file, tokens=self.tokens, codebook=self.codebook, logits=self.logits, settings=self.settings, lengths=lengths, flat=flat,
            suppressed=np.array(self.suppressed, np.int64), eos=np.array([] if self.eos is None else [self.eos], np.int64),
        )  # fmt: skip

    @classmethod
    def load(cls, file: Path) -> Steps:
        with np.load(file) as kept:
            ends = np.cumsum(kept["lengths"])
            penalised = [kept["flat"][end - n : end].tolist() for end, n in zip(ends, kept["lengths"], strict=True)]
            eos = int(kept["eos"][0]) if len(kept["eos"]) else None
            return cls(kept["tokens"], kept["codebook"], kept["logits"], kept["settings"], penalised, kept["suppressed"].tolist(), eos)

    def allowed(self, k: int) -> Floats:
        """The logits of step k, what may not be drawn taken out."""
        row = self.logits[k].astype(np.float64)
        if self.codebook[k] == 0:
            row[self.suppressed] = -np.inf
        return row


def log_softmax(logits: Floats, temperature: float) -> Floats:
    """At temperature 0, where the best token is taken, the distribution at temperature 1: it still tells how near two systems are."""
    scaled = logits / (temperature if temperature > 0 else 1.0)
    scaled = scaled - scaled.max()
    found: Floats = np.maximum(scaled - np.log(np.exp(scaled).sum()), LEAST)  # what can't be said at all stays a number
    return found


def support(logits: Floats, temperature: float, top_k: float, top_p: float) -> npt.NDArray[np.bool_]:
    """Which tokens can be drawn: the top_k largest, of them the fewest whose probabilities reach top_p; without warmth, the best."""
    kept = np.isfinite(logits)
    if temperature <= 0:
        return logits == logits.max()
    if 0 < top_k < kept.sum():
        kept &= logits >= np.sort(logits)[-int(top_k)]
    if top_p < 1:
        p = np.where(kept, np.exp(log_softmax(np.where(kept, logits, -np.inf), temperature)), 0.0)
        order = np.argsort(-p)
        before = np.cumsum(p[order]) - p[order]
        inside = np.zeros_like(kept)
        inside[order[before < top_p]] = True
        kept &= inside
    return kept


def penalised(logits: Floats, tokens: list[int], penalty: float) -> Floats:
    """Logits after the repetition penalty, as the model's sampler applies it."""
    found = logits.copy()
    known = [t for t in tokens if t < len(found)]
    found[known] = np.where(found[known] < 0, found[known] * penalty, found[known] / penalty)
    return found


def compare(recorded: Steps, replayed: Steps) -> list[dict[str, float]]:
    """Per codebook, sums over its steps: n, kl (nats, on the temperature's softmax alone), same (top token), tv, dlogp, inside.

    `inside`: recorded tokens that the replayed system could have drawn, with its own top-k, top-p and penalty.
    """
    sums: dict[int, dict[str, float]] = {}
    for k in range(len(recorded.tokens)):
        ours, theirs = recorded.allowed(k), replayed.allowed(k)
        temperature = recorded.settings[k][0]
        log_p, log_c = log_softmax(ours, temperature), log_softmax(theirs, temperature)
        p, c = np.exp(log_p), np.exp(log_c)
        token, both = int(recorded.tokens[k]), p > 0
        warmth, top_k, top_p, penalty = replayed.settings[k]
        possible = support(penalised(theirs, replayed.penalised[k], penalty), warmth, top_k, top_p)
        book = int(recorded.codebook[k])
        row = sums.setdefault(book, dict.fromkeys(("codebook", "n", "kl", "same", "tv", "dlogp", "inside"), 0.0) | {"codebook": book})
        for name, value in (
            ("n", 1.0), ("kl", float((p[both] * (log_p[both] - log_c[both])).sum())), ("same", float(ours.argmax() == theirs.argmax())),
            ("tv", 0.5 * float(np.abs(p - c).sum())), ("dlogp", float(log_c[token] - log_p[token])), ("inside", float(possible[token])),
        ):  # fmt: skip
            row[name] += value
    return [sums[book] for book in sorted(sums)]


def margins(steps: Steps) -> dict[str, list[float]]:
    """Best content's logit less the logit of the end of speech, at the first and the last frames; empty without such a token."""
    if steps.eos is None:
        return {"first": [], "last": []}
    found = []
    for k in np.flatnonzero(steps.codebook == 0):
        row = steps.allowed(int(k))
        end, row[steps.eos] = row[steps.eos], -np.inf
        found.append(round(float(np.clip(row.max() - end, LEAST, -LEAST)), 4))
    return {"first": found[:EDGE], "last": found[-EDGE:]}
