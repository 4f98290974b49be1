"""Whether a candidate's clips are bit for bit its parent's, and whether that means anything on this machine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from gate import stages
from gate.models import Lever
from synth.models import Clip, Configuration, Render, Sentence


def _renders(lever: Lever, configurations: Iterable[int], repetition: int):
    return (
        Render.objects.filter(draw_key=lever.draw.key, configuration__in=configurations, repetition=repetition)
        .filter(sentence__in=[s.pk for s in stages.covered(lever)], replicate__lt=lever.plan.body["replicates"])
        .select_related("clip", "sentence", "group")
        .order_by("sentence_id", "replicate", "configuration_id")
    )


def renders(lever: Lever, repetition: int = 0):
    """Renders of parent and candidate, of the sentences that the current look covers."""
    return _renders(lever, [lever.parent_id, lever.candidate_id], repetition)


def all_renders(lever: Lever):
    """Renders of every arm, the anchor's included."""
    return _renders(lever, list(arms(lever)), 0)


def arms(lever: Lever) -> dict[int, str]:
    """Primary key of a configuration -> its part in the lever: parent, candidate and, from depth two, the anchor its plan names."""
    found = {lever.parent_id: "parent", lever.candidate_id: "candidate"}
    digest = lever.plan.body.get("anchor") if lever.plan else ""
    if digest:
        found[Configuration.objects.get(digest=digest).pk] = "anchor"
    return found


def clip_pairs(lever: Lever) -> list[tuple[Sentence, Clip, Clip]]:
    """(sentence, parent's clip, candidate's clip) of the first replicate, in the draw's order; where both were made."""
    made: dict[int, dict[int, Clip]] = defaultdict(dict)
    for render in renders(lever):
        if render.replicate == 0 and render.clip:
            made[render.sentence_id][render.configuration_id] = render.clip
    both = [(s, made.get(s.pk, {})) for s in stages.covered(lever)]
    return [
        (s, clips[lever.parent_id], clips[lever.candidate_id]) for s, clips in both if {lever.parent_id, lever.candidate_id} <= clips.keys()
    ]


@dataclass(frozen=True)
class Identity:
    """How many clips are bit for bit the parent's, and whether that means anything here."""

    clips: int
    same: int
    repeated: int
    repeated_same: int
    seeds_differ: bool

    @property
    def deterministic(self) -> bool:
        return self.repeated > 0 and self.repeated_same == self.repeated

    @property
    def settled(self) -> bool:
        return self.clips > 0 and self.same == self.clips and self.deterministic and self.seeds_differ


def _hash(render: Render | None) -> str | None:
    return render.clip.pcm_sha256 if render is not None and render.clip else None


def identical(lever: Lever) -> Identity:
    """Compares hashes; the parent must first have been shown deterministic (A = A') and sensitive to its seed or its text."""
    arms: dict[tuple[int, int], dict[int, Render]] = defaultdict(dict)
    for render in renders(lever):
        arms[render.sentence_id, render.replicate][render.configuration_id] = render
    same = sum(
        _hash(arm.get(lever.parent_id)) is not None and _hash(arm.get(lever.parent_id)) == _hash(arm.get(lever.candidate_id))
        for arm in arms.values()
    )
    again = [r for r in renders(lever, 1) if r.configuration_id == lever.parent_id]
    repeated_same = sum(_hash(r) is not None and _hash(r) == _hash(arms[r.sentence_id, r.replicate].get(lever.parent_id)) for r in again)
    other_seed = [r for r in renders(lever, 2) if r.configuration_id == lever.parent_id]
    differ = any(_hash(r) and _hash(r) != _hash(arms[r.sentence_id, r.replicate].get(lever.parent_id)) for r in other_seed)
    if not differ:  # a greedy sampler ignores its seed; then another sentence must sound different
        differ = len({_hash(arm.get(lever.parent_id)) for arm in arms.values()} - {None}) > 1 and _greedy(lever)
    return Identity(len(arms), same, len(again), repeated_same, differ)


def _greedy(lever: Lever) -> bool:
    return lever.parent.body.get("sampling", {}).get("temperature") == 0
