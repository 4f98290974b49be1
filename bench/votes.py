"""Votes by 8 clients in a closed loop, on an empty store and on one that holds many, each vote once.

Over HTTP to the web server as deployed, and inside: eight processes that call the application themselves, as eight workers would.

python -m bench.votes [--stored 1000000] [--seconds 10]      on SQLite in a folder of its own; DATABASE_URL for another database
"""

from __future__ import annotations

import argparse
import io
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import time
import uuid
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection

from config import supervisor

CLIENTS = 8
Request = tuple[dict[str, str], bytes]
Post = Callable[[dict[str, str], bytes], int]
#: Sent, sent twice, refused, and the slowest answer in seconds.
Found = tuple[int, int, int, float]
LOG = {
    "share": {"left": 1, "right": 1},
    "tail": {"left": True, "right": True},
    "seconds": 9,
    "frames": {"left": 60000, "right": 60000},
    "plays": {"left": 1, "right": 1},
}


def django() -> None:
    warnings.filterwarnings("ignore", message="No directory at")  # static files play no part here
    os.environ.setdefault("EARWITNESS_VAR", tempfile.mkdtemp(prefix="ew-bench-"))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()


def world(votes: int, trials: int) -> list[int]:
    """A study with `votes` votes stored by old raters, and so many trials for new ones to answer. Returns the new raters."""
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
    new = Rater.objects.bulk_create(Rater(panel=panel, invitation=invitation, sound_checked_at=now) for _ in range(trials // 400))
    Trial.objects.bulk_create(
        (
            Trial(pair=pairs[k], rater=rater, slot=5_000 + r, tested_side=k % 2, state="lapsed", lease_until=now)
            for r, rater in enumerate(new) for k in range(400)
        ),
        batch_size=5_000,
    )  # fmt: skip
    return [r.pk for r in new]


def prepared(raters: list[int]) -> list[list[Request]]:
    """For each of the clients: the requests it will send."""
    from django.core.signing import get_cookie_signer
    from django.middleware.csrf import _get_new_csrf_string

    from listening import blind, tongue
    from listening.models import Rater, Trial

    signer, token = get_cookie_signer(salt=f"{blind.COOKIE}listening"), _get_new_csrf_string()
    requests: list[list[Request]] = [[] for _ in range(CLIENTS)]
    for k, rater in enumerate(Rater.objects.filter(pk__in=raters)):
        headers = {
            "Content-Type": "application/json", "X-CSRFToken": token,
            "Cookie": f"{blind.COOKIE}={signer.sign(str(rater.key))}; {tongue.COOKIE}=en; csrftoken={token}",
        }  # fmt: skip
        for trial in Trial.objects.filter(rater=rater).values_list("key", flat=True):
            body = {"id": str(uuid.uuid4()), "trial": trial, "choice": "left", "log": LOG}
            requests[k % CLIENTS].append((headers, json.dumps(body).encode()))
    return requests


def over_http(port: int) -> Post:
    """Posts to the web server on a connection that stays open."""
    http = HTTPConnection("127.0.0.1", port)

    def post(headers: dict[str, str], body: bytes) -> int:
        http.request("POST", "/listen/vote", body, headers)
        answer = http.getresponse()
        answer.read()
        return answer.status

    return post


def inside() -> Post:
    """Calls the application as its web server would."""
    from config.wsgi import application

    fixed = {
        "REQUEST_METHOD": "POST", "PATH_INFO": "/listen/vote", "SCRIPT_NAME": "", "SERVER_NAME": "localhost", "SERVER_PORT": "80",
        "HTTP_HOST": "localhost", "wsgi.url_scheme": "http", "wsgi.version": (1, 0), "wsgi.errors": sys.stderr,
    }  # fmt: skip

    def post(headers: dict[str, str], body: bytes) -> int:
        told = {"HTTP_COOKIE": headers["Cookie"], "HTTP_X_CSRFTOKEN": headers["X-CSRFToken"], "CONTENT_TYPE": headers["Content-Type"]}
        statuses: list[str] = []
        answer = application(
            fixed | told | {"CONTENT_LENGTH": str(len(body)), "wsgi.input": io.BytesIO(body)}, lambda s, h: statuses.append(s)
        )
        b"".join(answer)
        answer.close()
        return int(statuses[0][:3])

    return post


def loop(post: Post, requests: list[Request], seconds: float) -> Found:
    """Sends one vote after another, two in a hundred twice, until the time is over."""
    again, failed, slowest = 0, 0, 0.0
    end = time.perf_counter() + seconds
    for sent, (headers, body) in enumerate(requests):
        begin = time.perf_counter()
        if begin > end:
            return sent, again, failed, slowest
        codes = [post(headers, body)]
        slowest = max(slowest, time.perf_counter() - begin)
        if sent % 50 == 0:
            codes.append(post(headers, body))
            again += 1
        failed += codes not in ([201], [201, 200])
    raise SystemExit("a client ran out of trials: raise --trials")


def process(requests: list[Request], seconds: float, start, counts) -> None:
    """A client with an application of its own."""
    django()
    post = inside()
    post(requests[0][0], b"{}")  # its code is read before the clock starts
    start.wait()
    counts.put(loop(post, requests, seconds))


def in_processes(requests: list[list[Request]], seconds: float) -> list[Found]:
    context = multiprocessing.get_context("spawn")
    start, counts = context.Barrier(CLIENTS), context.Queue()
    clients = [context.Process(target=process, args=(mine, seconds, start, counts)) for mine in requests]
    [c.start() for c in clients]
    found = [counts.get() for _ in clients]
    [c.join() for c in clients]
    return found


def on_threads(requests: list[list[Request]], seconds: float) -> list[Found]:
    server, port = served()
    try:
        with ThreadPoolExecutor(CLIENTS) as pool:
            return list(pool.map(lambda mine: loop(over_http(port), mine, seconds), requests))
    finally:
        server.terminate()
        server.wait()


def served() -> tuple[subprocess.Popen, int]:
    """The web server, as deployed: two processes of threads."""
    port = supervisor.free_port()
    command = [sys.executable, "-W", "ignore", "-m", "gunicorn", "config.wsgi", "--bind", f"127.0.0.1:{port}", "--worker-class", "gthread"]
    server = subprocess.Popen(  # noqa: S603
        [*command, "--workers", "2", "--threads", "16", "--keep-alive", "75", "--no-control-socket", "--log-level", "warning"]
    )
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                for _ in range(40):  # both processes have read their code before the clock starts
                    http = HTTPConnection("127.0.0.1", port)
                    http.request("POST", "/listen/vote", b"{}", {"Content-Type": "application/json"})
                    http.getresponse().read()
                return server, port
        time.sleep(0.1)
    raise SystemExit("the web server did not start")


def run(stored: int, seconds: float, trials: int, http: bool) -> float:
    from django.db import connections

    from listening.models import Vote

    begin = time.perf_counter()
    requests = prepared(world(stored, trials))
    before = Vote.objects.count()
    connections.close_all()
    print(f"  (a store of {before:,} votes took {time.perf_counter() - begin:.0f} s to make)", flush=True)
    found = (on_threads if http else in_processes)(requests, seconds)
    sent, again, failed = (sum(column) for column in list(zip(*found, strict=True))[:3])
    rate, stored_now = sent / seconds, Vote.objects.count() - before
    print(
        f"{'over HTTP' if http else 'inside':>9} {before:>10,} stored: {rate:7.0f} votes/s, slowest {1000 * max(f[3] for f in found):.0f} ms, {again} sent twice, {failed} refused, "
        f"{stored_now - sent:+d} lost or doubled",
        flush=True,
    )
    return rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stored", type=int, default=1_000_000)
    parser.add_argument("--trials", type=int, default=20_000, help="prepared for each run; raise it for a longer one")
    parser.add_argument("--seconds", type=float, default=10)
    given = parser.parse_args()
    django()
    from django.conf import settings
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    print(settings.DATABASES["default"]["ENGINE"])
    rates = [run(n, given.seconds, given.trials, http) for n, http in ((0, True), (0, False), (given.stored, True), (0, False))]
    print(f"full : empty {rates[2] / rates[0]:.2f} over HTTP, {rates[3] / rates[1]:.2f} inside")


if __name__ == "__main__":
    main()
