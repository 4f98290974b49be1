"""The lock: plan, draw, uses and renders of a lever, written together before any evidence exists."""

from __future__ import annotations

import secrets
from datetime import timedelta

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from gate import controls, draws, history, identity, ledger, lineage, policy, site_policy, stages
from gate.models import Battery, Corpus, Draw, Lever, Plan, Use
from gate.sentences import list_digest
from synth import bell, groups
from synth.canonical import digest_of
from synth.models import Configuration, Sentence, seed_of

#: More than any sound ever stutters.
NO_RULE = 10**6
DETERMINISM_CLIPS = 10


def _draw(lever: Lever, plan: policy.Plan) -> Draw:
    """The campaign's draw, made now: ordered by a salt nobody could know before the lever was frozen."""
    known = Draw.objects.filter(key=lever.campaign).first()
    if known:
        return known
    salt = secrets.token_hex(16)
    together = list(Lever.objects.filter(campaign=lever.campaign).select_related("parent", "candidate"))
    found = draws.stock(lever.corpus, together, lever.campaign, plan.purpose)
    digests = [s.digest for s in draws.draw(found.fresh, draws.check(found, plan), salt)]
    try:
        with transaction.atomic():
            made = Draw.objects.create(
                key=lever.campaign, corpus=lever.corpus, purpose=plan.purpose, salt=salt, order=digests,
                list_sha256=list_digest(digests),
            )  # fmt: skip
            for member in together:  # spent for all of the campaign at once: nobody else of their kin may draw them meanwhile
                for sentence in made.sentences():
                    Use.objects.create(draw=made, lever=member, sentence=sentence, purpose=made.purpose)
            return made
    except IntegrityError:
        return Draw.objects.get(key=lever.campaign)


def plan_of(lever: Lever) -> policy.Plan:
    """The locked plan, or before the lock the one asked for."""
    if lever.plan is None:
        return policy.of(lever.wanted)
    body = lever.plan.body
    # A rule that came after a plan was locked does not hold for it.
    screening = {"glitches": NO_RULE} | body.get("screening", {})
    return policy.of(body | {"screening": screening})


def _earlier(lever: Lever) -> list[Plan]:
    """Plans of the lineage that were locked before this one's, whatever their campaign but this one; the oldest first."""
    kin = Lever.objects.filter(pk__in=lineage.lineage(lever)).exclude(campaign=lever.campaign)
    plans = Plan.objects.filter(lever__in=kin, number=1).order_by("locked_at", "pk")
    mine = Plan.objects.filter(lever=lever, number=1).first()  # it is the order of locking that counts: before it nothing can be known
    return list(plans.filter(Q(locked_at__lt=mine.locked_at) | Q(locked_at=mine.locked_at, pk__lt=mine.pk)) if mine else plans)


def attempt_of(lever: Lever) -> tuple[int, int]:
    """(number of this attempt of the lineage, attempts that were reserved when the first one was locked)."""
    earlier = _earlier(lever)
    mine = plan_of(lever).attempts
    reserved = min([mine] + [p.body.get("attempts", 1) for p in earlier])
    return 1 + len(earlier), reserved


def lock(lever: Lever, device_class: str, battery: Battery, environment: dict) -> None:
    """Plan, draw, uses and renders; call it inside the transaction that moves the lever. The jobs go out after commit."""
    Corpus.objects.select_for_update().get(pk=lever.corpus_id)  # who draws from a corpus, and is whose further attempt, goes in turn
    plan = plan_of(lever)
    attempt, reserved = attempt_of(lever)
    in_force = site_policy.newest()
    # What claims to be its parent bit for bit is settled by hash: an anchor would be rendered for nothing.
    anchor = None if lever.wanted["claims_identical"] else lineage.anchor(lever)
    draw = _draw(lever, plan)
    now = timezone.now()
    body = {
        **plan.model_dump(mode="json"), "device_class": device_class,
        "policy": in_force.pk if in_force else None, "environment": environment,
        "draw": draw.key, "list_sha256": draw.list_sha256,
        "parent": lever.parent.digest, "candidate": lever.candidate.digest, "anchor": anchor.digest if anchor else "",
        "claims_identical": lever.wanted["claims_identical"],
        "recogniser": battery.recogniser, "second_recogniser": battery.second_recogniser, "metrics": battery.identity,
        "attempt": attempt, "reserved": reserved, "code_version": settings.VERSION,
        "closes_at": (now + timedelta(days=plan.closes_after_days)).isoformat(),
    }  # fmt: skip
    locked = Plan.objects.create(lever=lever, number=1, body=body, digest=digest_of(body), locked_at=now)
    Lever.objects.filter(pk=lever.pk).update(draw=draw)
    lever.draw = draw
    ledger.plan_locked(lever, locked)
    sentences = draw.sentences()
    ask_for_clips(lever, plan, 0)
    controls.ask_for_clips(lever, plan)
    if lever.wanted["claims_identical"]:
        again = [_wanted(draw, sentence, place, repetition=1) for place, sentence in enumerate(sentences[:DETERMINISM_CLIPS])]
        groups.ask(lever.parent, draw.key, [*again, _wanted(draw, sentences[0], 0, repetition=2)], device_class)
    history.note(lever, f"plan locked; {len(sentences)} sentences drawn, rendering begins on {device_class}")
    bell.ring_after_commit()


def ask_for_clips(lever: Lever, plan: policy.Plan, look: int) -> None:
    """Renders of every arm for the sentences that this look (from 0) judges and the one before it did not."""
    sentences, covered = lever.draw.sentences(), [0, *stages.counts(plan, len(lever.draw.order))]
    places = range(covered[look], covered[look + 1])
    wanted = [_wanted(lever.draw, sentences[place], place, replicate) for place in places for replicate in range(plan.replicates)]
    for configuration in Configuration.objects.filter(pk__in=identity.arms(lever)).order_by("pk"):
        groups.ask(configuration, lever.draw.key, wanted, lever.plan.body["device_class"])


def _wanted(draw: Draw, sentence: Sentence, place: int, replicate: int = 0, repetition: int = 0) -> groups.Wanted:
    seed = seed_of(draw.key, sentence.digest, replicate, ":another" if repetition == 2 else "")
    return groups.Wanted(sentence, place, seed, replicate, repetition)
