"""Which levers are of one kin: variants and re-tries of one change, and everything that grew from one root."""

from __future__ import annotations

from collections import defaultdict

from gate.models import Lever, Plan, Use
from synth.configuration import difference, sections
from synth.models import Configuration, Preflight

#: Configurations that agree in this share of their settings are proposed as variants of one another.
NEARLY_ALL = 0.9


_touched: dict[tuple[str, str], tuple[str, ...]] = {}


def touched(lever: Lever) -> tuple[str, ...]:
    """The top-level sections the lever changes. Remembered by digests: a configuration never changes."""
    key = lever.candidate.digest, lever.parent.digest
    if key not in _touched:
        _touched[key] = tuple(sections(difference(lever.candidate.parsed(), lever.parent.parsed())))
    return _touched[key]


def lineage(lever: Lever) -> set[int]:
    """Primary keys of the lever, its variants - declared, or a same section changed on the same parent - and theirs."""
    levers = list(Lever.objects.select_related("parent", "candidate"))
    links: dict[int, set[int]] = defaultdict(set)
    alike: dict[tuple[int, str], list[int]] = defaultdict(list)
    for other in levers:
        for section in touched(other):  # one that changes something besides is no less a further attempt
            alike[other.parent_id, section].append(other.pk)
        if other.variant_of_id:
            links[other.pk].add(other.variant_of_id)
            links[other.variant_of_id].add(other.pk)
    for group in alike.values():
        for pk in group:
            links[pk].update(group)
    found, todo = {lever.pk}, [lever.pk]
    while todo:
        new = links[todo.pop()] - found
        found |= new
        todo += new
    return found


def _root(configuration: int, made_from: dict[int, int]) -> int:
    """The configuration that the parents of this one lead back to; itself when no lever made it. All by primary keys."""
    seen: set[int] = set()
    while configuration in made_from and configuration not in seen:
        seen.add(configuration)
        configuration = made_from[configuration]
    return configuration


def root(lever: Lever) -> Configuration:
    """The configuration the lever's parents lead back to."""
    made_from = dict(Lever.objects.order_by("-pk").values_list("candidate_id", "parent_id"))
    return Configuration.objects.get(pk=_root(lever.parent_id, made_from))


def anchor(lever: Lever) -> Configuration | None:
    """The system small losses are counted from: the last ancestor accepted as heard, else the root; None where that is the parent."""
    configuration, seen = lever.parent, set()
    while configuration.pk not in seen:
        seen.add(configuration.pk)
        made_by = makers(configuration)
        heard = any(m.verdict and (m.verdict.verdict, m.verdict.evidence) == ("accepted", "heard") for m in made_by)
        if heard or not made_by:
            break
        configuration = made_by[0].parent
    return None if configuration.pk in (lever.parent_id, lever.candidate_id) else configuration


def makers(configuration: Configuration) -> list[Lever]:
    """Levers that made this configuration, the newest first; one that only goes back to it made nothing."""
    found = []
    for maker in Lever.objects.filter(candidate=configuration).select_related("parent").order_by("-pk"):
        grown = {configuration.pk}
        for candidate, parent in Lever.objects.filter(pk__lt=maker.pk).order_by("pk").values_list("candidate_id", "parent_id"):
            if parent in grown:
                grown.add(candidate)
        if maker.parent_id not in grown:
            found.append(maker)
    return found


def shared_sentences(lever: Lever) -> int:
    """Sentences of the lever's draw that its lineage had spent in another draw before: possible only for variants linked late."""
    first = Plan.objects.filter(lever=lever, number=1).first()
    if first is None or lever.draw is None or lever.draw.purpose == "tuning":
        return 0
    mine = Use.objects.filter(lever=lever).values("sentence")
    earlier = Use.objects.filter(lever__in=lineage(lever), at__lt=first.locked_at, sentence__in=mine).exclude(draw=lever.draw)
    return earlier.values("sentence").distinct().count()


def of_root(configuration: Configuration) -> set[int]:
    """Primary keys of all levers whose parents lead back to the same root."""
    levers = list(Lever.objects.order_by("-pk").values_list("pk", "candidate_id", "parent_id"))
    made_from = {candidate: parent for _, candidate, parent in levers}  # of several, the first lever that made it
    mine = _root(configuration.pk, made_from)
    return {pk for pk, _, parent in levers if _root(parent, made_from) == mine}


def _flat(configuration: Configuration) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()

    def walk(value: object, path: str) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                walk(inner, f"{path}.{key}")
        elif isinstance(value, list):
            for k, inner in enumerate(value):
                walk(inner, f"{path}.{k}")
        else:
            found.add((path, repr(value)))

    walk(configuration.parsed().canonical(), "")
    return found


def _reworked(lever: Lever) -> set[str]:
    """Names of the weights that stand otherwise in the candidate than in its parent, as their preflights found them."""
    flights = {
        f.configuration_id: f.report.get("tensors", {}) for f in Preflight.objects.filter(configuration__in=[lever.parent, lever.candidate])
    }
    parent, candidate = (flights.get(pk, {}) for pk in (lever.parent_id, lever.candidate_id))
    return {name for name in parent.keys() | candidate.keys() if parent.get(name) != candidate.get(name)} if parent and candidate else set()


def _nearly(mine: set, theirs: set) -> bool:
    return bool(mine and theirs) and len(mine & theirs) >= NEARLY_ALL * len(mine | theirs)


def proposed(lever: Lever) -> list[tuple[Lever, str]]:
    """(lever, what is nearly the same) outside of the lineage: variants, perhaps.

    Candidates that agree in nine tenths of their settings, or levers that rework nine tenths of the same weights.
    """
    kin, mine, weights = lineage(lever), _flat(lever.candidate), _reworked(lever)
    out = []
    for other in Lever.objects.exclude(pk__in=kin).select_related("candidate").order_by("pk"):
        if _nearly(mine, _flat(other.candidate)):
            out.append((other, "is nearly the same configuration"))
        elif weights and _nearly(weights, _reworked(other)):
            out.append((other, "changes nearly the same weights"))
    return out
