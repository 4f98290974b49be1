"""Votes through the real views: closed loop with 8 clients, on an empty store and on one that holds many, each vote once.

python -m bench.votes [--stored 100000] [--seconds 10]      on SQLite in a folder of its own; DATABASE_URL for another database
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
import time
import uuid

LOG = {"share": {"left": 1, "right": 1}, "tail": {"left": True, "right": True}, "seconds": 9, "plays": {"left": 1, "right": 1}}


def django() -> None:
    os.environ.setdefault("EARWITNESS_VAR", tempfile.mkdtemp(prefix="ew-bench-"))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()


def world(votes: int, trials_each: int) -> list[int]:
    """A study with `votes` votes stored by old raters, and open trials for new ones. Returns the new raters' keys."""
    from datetime import timedelta

    from django.utils import timezone

    from listening.models import Invitation, Pair, Panel, Rater, Study, Trial, Vote
    from synth.models import Clip, Sentence

    panel = Panel.objects.get_or_create(language="en")[0]
    invitation = Invitation.objects.create(panel=panel, max_raters=10**6, expires_at=timezone.now() + timedelta(days=9))
    study = Study.objects.create(panel=panel, votes_per_pair=10**4)
    clips = [Clip.objects.create(pcm_sha256=uuid.uuid4().hex, file_sha256="0", sample_rate=24000, samples=48000) for _ in range(2)]
    pairs = [
        Pair.objects.create(
            study=study, sentence=Sentence.objects.create(digest=uuid.uuid4().hex[:30], language="en", text=f"Sentence {k}."),
            reference=clips[0], tested=clips[1], first_side=k % 2,
        )
        for k in range(400)
    ]  # fmt: skip
    old = Rater.objects.bulk_create(Rater(panel=panel, invitation=invitation) for _ in range(max(1, votes // 400)))
    now = timezone.now()
    for start in range(0, votes, 20_000):
        made = Trial.objects.bulk_create(
            Trial(pair=pairs[k % 400], rater=old[k // 400 % len(old)], slot=k // 400, tested_side=k % 2, state="voted", lease_until=now)
            for k in range(start, min(votes, start + 20_000))
        )
        Vote.objects.bulk_create(Vote(id=uuid.uuid4(), trial=t, choice="same", log=LOG) for t in made)
    new = Rater.objects.bulk_create(
        Rater(panel=panel, invitation=invitation, sound_checked_at=now) for _ in range(8 * trials_each // 400 + 8)
    )
    Trial.objects.bulk_create(
        Trial(pair=pairs[k], rater=rater, slot=20_000 + r, tested_side=k % 2, state="lapsed", lease_until=now)
        for r, rater in enumerate(new) for k in range(400)
    )  # fmt: skip
    return [r.pk for r in new]


def client(raters: list[int], seconds: float, start, counts) -> None:
    """Sends one vote after another, each twice in a hundred, until the time is over."""
    django()
    from django.test import Client

    from listening import blind
    from listening.models import Rater, Trial

    sent, again, failed = 0, 0, 0
    start.wait()
    end = time.perf_counter() + seconds
    for pk in raters:
        from django.core.signing import get_cookie_signer

        browser = Client(SERVER_NAME="localhost")
        key = str(Rater.objects.get(pk=pk).key)
        browser.cookies[blind.COOKIE] = get_cookie_signer(salt=f"{blind.COOKIE}listening").sign(key)
        for trial in list(Trial.objects.filter(rater=pk).values_list("key", flat=True)):
            if time.perf_counter() > end:
                counts.put((sent, again, failed))
                return
            body = json.dumps({"id": str(uuid.uuid4()), "trial": trial, "choice": "left", "log": LOG})
            codes = [browser.post("/listen/vote", body, content_type="application/json").status_code]
            if sent % 50 == 0:
                codes.append(browser.post("/listen/vote", body, content_type="application/json").status_code)
                again += 1
            failed += codes not in ([201], [201, 200])
            sent += 1
    counts.put((sent, again, failed))


def run(stored: int, seconds: float, clients: int = 8) -> float:
    from django.db import connections

    from listening.models import Vote

    begin = time.perf_counter()
    raters = world(stored, 400 * 40)
    before = Vote.objects.count()
    connections.close_all()
    context = multiprocessing.get_context("spawn")
    start, counts = context.Barrier(clients), context.Queue()
    workers = [context.Process(target=client, args=(raters[k::clients], seconds, start, counts)) for k in range(clients)]
    print(f"  (a store of {before:,} votes took {time.perf_counter() - begin:.0f} s to make)")
    [w.start() for w in workers]
    found = [counts.get() for _ in workers]
    [w.join() for w in workers]
    sent, again, failed = (sum(column) for column in zip(*found, strict=True))
    stored_now = Vote.objects.count() - before
    rate = sent / seconds
    print(f"{before:>10,} stored: {rate:7.0f} votes/s, {again} sent twice, {failed} refused, {stored_now - sent:+d} lost or doubled")
    return rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stored", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=10)
    given = parser.parse_args()
    django()
    from django.conf import settings
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    print(settings.DATABASES["default"]["ENGINE"])
    empty = run(0, given.seconds)
    full = run(given.stored, given.seconds)
    print(f"full : empty {full / empty:.2f}")


if __name__ == "__main__":
    main()
