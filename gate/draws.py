"""Sentences as something that is used up: which are fresh for a lever, and drawing from them."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from gate import corpora, policy
from gate.lineage import lineage, of_root
from gate.models import Corpus, Lever, Use
from synth.configuration import Refused
from synth.models import Sentence

#: A sentence is worn out for every lever of a root after this many draws.
MOST_USES = 5


@dataclass(frozen=True)
class Stock:
    """What a corpus still holds for a lever. Counts of sentences; `fresh` are those that may be drawn."""

    total: int
    spent: int
    near_spent: int
    worn: int
    fresh: tuple[Sentence, ...]

    @property
    def left(self) -> int:
        return len(self.fresh)


def stock(corpus: Corpus, levers: Sequence[Lever], campaign: str, purpose: str = "confirmation") -> Stock:
    """What is fresh for all of `levers`, which draw together. Uses of their own campaign's draw don't count against them.

    For tuning everything may be used again: its verdicts are provisional at best.
    """
    sentences = tuple(corpus.sentences.order_by("digest"))
    if purpose == "tuning":
        return Stock(len(sentences), 0, 0, 0, sentences)
    kin = set().union(*(lineage(lever) for lever in levers))
    uses = Use.objects.exclude(draw__key=campaign)
    spent = set(uses.filter(lever__in=kin).values_list("sentence_id", flat=True))
    cousins = set().union(*(of_root(lever.parent) for lever in levers))
    draws: dict[int, set[int]] = defaultdict(set)
    for sentence, draw in uses.filter(lever__in=cousins).values_list("sentence_id", "draw_id").distinct():
        draws[sentence].add(draw)
    worn = {sentence for sentence, found in draws.items() if len(found) >= MOST_USES} - spent
    left = [s for s in sentences if s.pk not in spent and s.pk not in worn]
    forms = [corpora.plain(s.text, s.language) for s in left]
    used = [corpora.plain(s.text, s.language) for s in Sentence.objects.filter(pk__in=spent)]
    near = {i for i, _ in corpora.near_duplicates(forms, used)} if used else set()
    fresh = tuple(s for k, s in enumerate(left) if k not in near)
    mine = {s.pk for s in sentences}
    return Stock(len(sentences), len(spent & mine), len(near), len(worn & mine), fresh)


def check(found: Stock, plan: policy.Plan) -> int:
    """How many sentences will be drawn. Raises Refused, naming the number left, when the plan asks for more."""
    wanted = plan.sentences or found.total
    if wanted > found.left:
        gone = [
            f"{n} {why}"
            for n, why in ((found.spent, "spent"), (found.near_spent, "nearly the same as spent ones"), (found.worn, "worn out"))
            if n
        ]
        raise Refused(
            "too_few_fresh_sentences",
            f"The plan asks for {wanted} fresh sentences and {found.left} of {found.total} are left for this lineage ({', '.join(gone)}): "
            "ask for fewer, add a corpus, or set plan.purpose to tuning, which is provisional at best.",
            "plan.sentences",
        )
    return wanted


def draw(fresh: Sequence[Sentence], count: int, salt: str) -> list[Sentence]:
    """`count` sentences in the order of sha256(salt, digest): as many of each stratum as is its share of what is fresh.

    Nobody can know the order before the salt is made, and what is added to the corpus later changes no two sentences' order.
    """
    order = sorted(fresh, key=lambda s: hashlib.sha256(f"{salt}{s.digest}".encode()).hexdigest())
    strata: dict[tuple[str, ...], list[Sentence]] = defaultdict(list)
    for sentence in order:
        strata[corpora.strata(sentence.text, sentence.language, sentence.spoken_refs)[:2]].append(sentence)
    exact = {name: count * len(rows) / len(order) for name, rows in strata.items()}
    share = {name: int(value) for name, value in exact.items()}
    for name in sorted(exact, key=lambda n: (share[n] - exact[n], n))[: count - sum(share.values())]:
        share[name] += 1
    chosen = {s.pk for name, rows in strata.items() for s in rows[: share[name]]}
    return [s for s in order if s.pk in chosen]
