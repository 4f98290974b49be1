"""The trial page with a cold cache over a slow network: bytes, requests, and the time until both recordings can be played.

python -m bench.page [--round-trip 40] [--times 9]      needs Chromium
A bare page with one recording is loaded over the same network for comparison.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import statistics
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from bench import votes

#: Presses "Turn on the sound" as soon as it can be pressed, and notes when the first recording could be started.
WATCH = """
new MutationObserver(() => {
  const begin = document.querySelector('#begin');
  const play = document.querySelector('[data-role=play-left]');
  if (begin && !begin.disabled && !window.pressed) { window.pressed = performance.now(); begin.click(); }
  if (play && !play.disabled && !window.playable) window.playable = performance.now();
}).observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: ['disabled'] });
"""
BARE = b"""<!doctype html><title>bare</title><script>
const context = new AudioContext();
fetch('sound').then((r) => r.arrayBuffer()).then((b) => context.decodeAudioData(b)).then(() => { window.playable = performance.now(); });
</script>"""
MOST_BYTES, MOST_REQUESTS, MOST_MS = 30_000, 8, 250


class Distance:
    """A port that stands before another one, half a round trip away in each direction. A new connection costs a whole one first."""

    def __init__(self, port: int, round_trip_s: float) -> None:
        self.to, self.half, self.port = port, round_trip_s / 2, 0
        self.ready = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True).start()
        self.ready.wait()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self.ready.set()
        async with server:
            await server.serve_forever()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened = time.monotonic()
        there, back = await asyncio.open_connection("127.0.0.1", self.to)
        await asyncio.gather(self._carry(reader, back, opened + 2 * self.half), self._carry(there, writer, 0.0), return_exceptions=True)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, not_before: float) -> None:
        """Every piece arrives half a round trip after it was sent; pieces do not wait for one another."""
        line: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def deliver() -> None:
            while True:
                due, data = await line.get()
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                if not data:
                    writer.close()
                    return
                writer.write(data)

        delivery = asyncio.create_task(deliver())
        while True:
            data = await reader.read(65536)
            line.put_nowait((max(time.monotonic(), not_before) + self.half, data))
            if not data:
                await delivery
                return


def world() -> tuple[str, bytes]:
    """A study of five pairs of three seconds, and a rater who is through the way to it: their cookie. And one recording as it is sent."""
    from datetime import timedelta

    import numpy as np
    from django.core.signing import get_cookie_signer
    from django.utils import timezone

    from listening import blind, pairs
    from listening.models import Invitation, Qualification, Rater, Trial
    from synth import clips
    from synth.models import Sentence

    rng, found = np.random.default_rng(1), []
    for k in range(5):
        text = f"A sentence of quite the usual length, and this is number {k} of them."
        sentence = Sentence.objects.create(digest=f"page-{k}", language="en", text=text)
        voice = np.cumsum(rng.normal(0, 1, (2, 72_000)), axis=1)
        spoken = [clips.keep((0.2 * v / np.abs(v).max()).astype(np.float32), 24_000) for v in voice]
        found.append(pairs.prepared(sentence.pk, *spoken))
    study = pairs.open_study("en", 9, found, None)
    invitation = Invitation.objects.create(panel=study.panel, expires_at=timezone.now() + timedelta(days=1))
    rater = Rater.objects.create(panel=study.panel, invitation=invitation, sound_checked_at=timezone.now(), interface="en")
    Qualification.objects.create(rater=rater, method=Qualification.Method.DECLARED, passed=True)
    from listening import allocate

    trial = allocate.next_trial(rater)
    assert trial is not None
    held = Trial.objects.select_related("pair__reference", "pair__tested", "pair__sentence", "pair__study").get(pk=trial.pk)
    return get_cookie_signer(salt=f"{blind.COOKIE}listening").sign(str(rater.key)), blind.sound(held, held.left_key)


def bare(sound: bytes) -> int:
    """A server of the bare page; its port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = sound if self.path == "/sound" else BARE
            self.send_response(200)
            self.send_header("Content-Type", "audio/wav" if self.path == "/sound" else "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def visit(browser: Any, address: str, cookies: list[dict[str, str]]) -> tuple[float, float, list[tuple[str, int]]]:
    """Opens the page in a browser that has never seen it: ms until all is decoded and can be pressed, until the press was answered, and (address, bytes) of each request."""
    context = browser.new_context(viewport={"width": 360, "height": 740})
    context.add_cookies(cookies)
    page = context.new_page()
    page.add_init_script(WATCH)
    page.goto(address)
    page.wait_for_function("() => window.playable")
    page.wait_for_timeout(300)  # what belongs to this page and came after
    spent = page.evaluate(
        """() => [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
        .map((e) => [e.name, e.transferSize])"""
    )
    ready, playable = page.evaluate(
        "() => [Math.max(window.pressed || 0, ...performance.getEntriesByName('decoded').map((m) => m.startTime)), window.playable]"
    )
    context.close()
    return ready, playable, [(name, size) for name, size in spent]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--round-trip", type=float, default=40, help="milliseconds")
    parser.add_argument("--times", type=int, default=9)
    given = parser.parse_args()
    votes.django()
    from django.core.management import call_command
    from playwright.sync_api import sync_playwright

    call_command("migrate", verbosity=0)
    call_command("collectstatic", verbosity=0, interactive=False)
    cookie, sound = world()
    server, port = votes.served()
    far, far_bare = (Distance(p, given.round_trip / 1000) for p in (port, bare(sound)))
    options = {"executable_path": found} if (found := shutil.which("chromium")) else {}
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(args=["--no-sandbox", "--autoplay-policy=no-user-gesture-required"], **options)
            cookies = [
                {"name": n, "value": v, "domain": "127.0.0.1", "path": "/"} for n, v in (("listener", cookie), ("listener_language", "en"))
            ]
            ours = [visit(browser, f"http://127.0.0.1:{far.port}/listen/test/", cookies) for _ in range(given.times)]
            theirs = [visit(browser, f"http://127.0.0.1:{far_bare.port}/", []) for _ in range(given.times)]
            browser.close()
    finally:
        server.terminate()
        server.wait()
    of_page = [(name, size) for name, size in ours[0][2] if "/listen/sound/" not in name]
    for name, size in of_page:
        print(f"{size:>9,} bytes   {name.split('/', 3)[3]}")
    total = sum(size for _, size in of_page)
    ready, playable, simple = (statistics.median(v[k] for v in runs) for runs, k in ((ours, 0), (ours, 1), (theirs, 1)))
    print(f"{total:>9,} bytes in {len(of_page)} requests besides sound (at most {MOST_BYTES:,} in {MOST_REQUESTS})")
    print(
        f"can play after {ready:.0f} ms at {given.round_trip:.0f} ms round trip (at most {MOST_MS}); pressed at once, after {playable:.0f} ms"
    )
    print(f"a bare page with one recording can play after {simple:.0f} ms; ours : bare {ready / simple:.2f}")
    if total > MOST_BYTES or len(of_page) > MOST_REQUESTS or ready > MOST_MS:
        raise SystemExit("over the limit")


if __name__ == "__main__":
    main()
