"""What leases, the child process, uploads and the web cost a clip, beside the same clips in a bare loop over mlx-audio in one process.

Half of the sentences are spoken bare before and half after the product spoke all of them, so that a machine that gets slower favours
neither. Loading and warming up are outside of both. The bundled voice speaks; clips are 3 s long or more.

python -m bench.pipeline [--clips 100]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from config import supervisor
from synth.engine import bundled
from synth.engine.supervise import environment

BASE = Path(__file__).resolve().parent.parent
#: Characters that take this voice three seconds at least.
LONG = 60
LIMITS = {"ratio": 1.15, "outside": 0.03}
#: Nothing of this project's but the settings for a Linux processor, which both have.
BARE = """
import json, platform, sys, time
from pathlib import Path
import mlx.core as mx
from mlx_audio.tts import load
from synth.engine import kokoro
if platform.system() == "Linux":
    from synth.engine import cpu
    cpu.install()
model = load(sys.argv[1])
kokoro.use_offline_front_end(model)
def said(text):
    begin, seconds = time.perf_counter(), 0.0
    mx.random.seed(7)
    for result in model.generate(text=text, voice="jm_kumo", lang_code="a"):
        mx.eval(result.audio)
        seconds += result.audio.size / result.sample_rate
    mx.synchronize()
    return time.perf_counter() - begin, seconds
texts = json.loads(sys.stdin.read())
said(texts[0])
begin = time.perf_counter()
clips = [said(text) for text in texts]
print("=>" + json.dumps({"wall": time.perf_counter() - begin, "clips": clips}))
"""


def sentences(count: int) -> list[str]:
    from django.core.management import call_command

    from gate import corpora
    from synth.models import Sentence

    call_command("migrate", verbosity=0)
    corpora.bundled()
    texts = [row.text for row in Sentence.objects.filter(language="en").order_by("digest") if len(row.text) >= LONG]
    if len(texts) < count:
        raise SystemExit(f"The bundled corpus has {len(texts)} sentences of {LONG} characters or more: ask for as many at most.")
    return texts[:count]


def bare(texts: list[str], models: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", BARE, str(models / "kokoro-82m")], input=json.dumps(texts), text=True, capture_output=True, cwd=BASE,
        env=environment({}),
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return json.loads(done.stdout.split("=>", 1)[1])


def product(texts: list[str]) -> dict[str, Any]:
    """Everything up, and so many renders asked for: from the end of the first clip to the end of the last."""
    from gate.sentences import sentence_digest
    from synth import configuration, groups
    from synth.models import Configuration, Render, Sentence

    system = Configuration.of(configuration.parse(bundled.CONFIGURATION))
    rows = [
        Sentence.objects.get_or_create(digest=sentence_digest(text, "en"), defaults={"language": "en", "text": text})[0]
        for text in (texts[0], *texts)
    ]
    # The first is spoken twice: once to load and to warm up.
    groups.ask(system, "warm", [groups.Wanted(rows[0], 0, 7)], "")
    port = supervisor.free_port()
    host = subprocess.Popen(
        [sys.executable, "manage.py", "up", "--no-demo", "--port", str(port)],
        cwd=BASE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait(host, lambda: Render.objects.filter(draw_key="warm", outcome="made").exists())
        groups.ask(system, "bench", [groups.Wanted(row, k, 7) for k, row in enumerate(rows[1:])], "")
        mine = Render.objects.filter(draw_key="bench")
        _wait(host, lambda: not mine.filter(outcome="").exists())
    finally:
        host.send_signal(signal.SIGTERM)
        host.wait()
    if mine.exclude(outcome="made").exists():
        raise SystemExit(f"A clip failed: {mine.exclude(outcome='made').first().error}")
    ends = sorted((r.group.settled_at, r.figures["wall_s"]) for r in mine.select_related("group"))
    span = (ends[-1][0] - ends[0][0]).total_seconds()
    return {
        "span": span,
        "inside": sum(wall for _, wall in ends[1:]),
        "clips": len(ends) - 1,
        "audio": [r.figures["audio_s"] for r in mine],
    }


def _wait(host: subprocess.Popen, there: Any) -> None:
    while not there():
        if host.poll() is not None:
            raise SystemExit("`manage.py up` ended; run it by itself to see why.")
        time.sleep(0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clips", type=int, default=100)
    clips = parser.parse_args().clips
    os.environ.setdefault("EARWITNESS_MODELS", str(BASE / "var" / "models"))
    os.environ |= {"EARWITNESS_VAR": tempfile.mkdtemp(prefix="ew-bench-"), "DJANGO_SETTINGS_MODULE": "config.settings"}
    import django

    django.setup()
    from django.conf import settings

    bundled.make(settings.MODELS)
    texts = sentences(clips)
    before, found, after = bare(texts[: clips // 2], settings.MODELS), product(texts), bare(texts[clips // 2 :], settings.MODELS)
    alone = (before["wall"] + after["wall"]) / clips
    here = found["span"] / found["clips"]
    outside = 1 - found["inside"] / found["span"]
    print(f"{clips} clips of {min(found['audio']):.1f} to {max(found['audio']):.1f} s, {os.cpu_count()} processors")
    print(f"bare loop      {alone:8.3f} s a clip")
    print(f"through all    {here:8.3f} s a clip   {here / alone:.3f} times; {LIMITS['ratio']} at most")
    print(f"outside of generate {100 * outside:.2f} %; {100 * LIMITS['outside']:.0f} % at most")
    if here / alone > LIMITS["ratio"] or outside > LIMITS["outside"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
