"""Cost of every metric beside the naive way, on one core, and of a whole lever's clips through the queue.

    python -m bench.metrics                    metrics, then 300 clips through the queue with 1 and with 2 scorers
    python -m bench.metrics --clips 0          metrics only
    python -m bench.metrics --no-metrics --clips 60

Run it in the project's environment (`.venv/bin/python`). It needs the speech and the development parts, and for the queue a Redis
(TEST_REDIS_URL, default database 14 of 127.0.0.1:6379). CPU-seconds are of the process; everything is pinned to one core, so that both
sides have the same threads.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

BASE = Path(__file__).resolve().parent.parent
MODELS = Path(os.environ.get("EARWITNESS_MODELS", BASE / "var" / "models"))
TEXTS = [
    "Can you help me move this table?",
    "I left my umbrella on the bus and nobody has seen it since then.",
    "When the storm had passed, the fishermen walked down to the harbour, counted their boats, and found that only the smallest one "
    "was missing, which surprised everybody who had watched the waves from the hill.",
]


def voice(folder: Path) -> list[Path]:
    """The bundled voice saying TEXTS."""
    from synth.engine.supervise import Child

    child = Child({"name": "bench", "model": {"path": "kokoro-82m"}, "voice": {"preset": "jm_kumo"}}, "bench", MODELS, [])
    try:
        child.start()
        return [
            Path(child.clip({"id": k, "text": t, "language": "en", "seed": 1, "out": str(folder)})["file"]) for k, t in enumerate(TEXTS)
        ]
    finally:
        child.end()


def cpu(work: Callable[[], object], least_s: float = 2.0) -> float:
    """CPU-seconds of one call, after one that is not counted: the least of three runs."""
    work()
    best = float("inf")
    for _ in range(3):
        begin, calls = time.process_time(), 0
        while time.process_time() - begin < least_s / 3 or not calls:
            work()
            calls += 1
        best = min(best, (time.process_time() - begin) / calls)
    return best


def row(name: str, ours: float, naive: tuple[str, float] | None, unit: str) -> None:
    other = f"{naive[1]:>11.6f}  {naive[1] / ours:>5.2f} x   {naive[0]}" if naive else ""
    print(f"{name:<28}{ours:>11.6f}  {other:<48}{unit}", flush=True)


def metrics(folder: Path) -> None:
    """One line a metric: our CPU-seconds, the naive way's, and their ratio (above 1: ours is cheaper)."""
    import faster_whisper
    import jiwer
    import librosa
    import numpy as np
    from scipy.signal import correlate
    from speechmos import dnsmos as published

    from gate import recognisers
    from gate.metrics import cer, defects, dnsmos, level, parity, resample
    from synth import pauses, pcm

    sounds = [pcm.decode(f) for f in voice(folder)]
    seconds = sum(len(s.samples) / s.sample_rate for s in sounds)
    at_16k = [resample.to_16k(s.samples, s.sample_rate) for s in sounds]
    print(f"{len(sounds)} clips of a real voice, {seconds:.1f} s; CPU-seconds a second of sound unless said otherwise, one core")
    print(f"{'metric':<28}{'ours':>11}  {'naive':>11}  {'ratio':>7}   naive way")

    def per_second(work: Callable[[int], object]) -> float:
        return cpu(lambda: [work(k) for k in range(len(sounds))]) / seconds

    def naive_parity(x: np.ndarray) -> object:
        return [librosa.feature.melspectrogram(y=x * g, sr=24000, n_fft=1024, hop_length=256, n_mels=80) for g in (1, 0.9)], correlate(
            x, 0.9 * x
        )

    row(
        "resample 24 -> 16 kHz", per_second(lambda k: resample.to_16k(sounds[k].samples, sounds[k].sample_rate)),
        ("librosa.resample", per_second(lambda k: librosa.resample(sounds[k].samples, orig_sr=sounds[k].sample_rate, target_sr=16000))), "",
    )  # fmt: skip
    row(
        "pauses", per_second(lambda k: pauses.analyse(sounds[k].samples, sounds[k].sample_rate)),
        ("librosa.effects.split", per_second(lambda k: librosa.effects.split(sounds[k].samples, top_db=35))), "",
    )  # fmt: skip
    row("level", per_second(lambda k: level.active_level(sounds[k].samples, sounds[k].sample_rate)), None, "")
    row("failures and defects", per_second(lambda k: defects.failure(sounds[k].samples, sounds[k].sample_rate)), None, "")
    row(
        "parity", per_second(lambda k: parity.compare(sounds[k].samples, 24000, sounds[k].samples * 0.9, 24000)),
        ("librosa mels, scipy correlate", per_second(lambda k: naive_parity(sounds[k].samples))),
        "",
    )  # fmt: skip
    heard = [t.replace(",", "").replace("harbour", "harbor").replace("missing", "missed it") for t in TEXTS]
    hindi = ("वह कल सुबह बाज़ार से ताज़ी सब्ज़ियाँ लाया, पर घर पहुँचते ही सो गया।", "वह कल सुबह बाजार से ताजी सब्जियां लाया पर घर पहुंचते सो गया")
    row(
        "CER, three English texts", cpu(lambda: [cer.character_errors(a, b, "en") for a, b in zip(TEXTS, heard, strict=True)]),
        ("jiwer.process_characters", cpu(lambda: [jiwer.process_characters(a, b) for a, b in zip(TEXTS, heard, strict=True)])),
        "CPU-seconds; ours normalises, and counts four ways",
    )  # fmt: skip
    row("CER, a Hindi text", cpu(lambda: cer.character_errors(*hindi, "hi")), ("jiwer.process_characters", cpu(lambda: jiwer.process_characters(*hindi))), "CPU-seconds; likewise")  # fmt: skip

    def windows(published_only: bool) -> int:
        lengths = [len(dnsmos.tile(x)) for x in at_16k]
        return sum(len(dnsmos.starts(n, True)) + (0 if published_only else len(dnsmos.starts(n, False))) for n in lengths)

    ours = cpu(lambda: [dnsmos.score(s.samples, s.sample_rate) for s in sounds], 6)
    theirs = cpu(lambda: [published.run(x, 16000) for x in at_16k], 6)
    row(
        "DNSMOS, a window",
        ours / windows(False),
        ("speechmos", theirs / windows(True)),
        "CPU-seconds a window of 9.01 s; theirs with P.808",
    )
    batch = dnsmos._session()
    stacked = np.stack([dnsmos.tile(at_16k[-1])[k : k + dnsmos.WINDOW] for k in (0, 1000, 2000, 3000, 4000, 5000, 6000, 7000)])
    one = cpu(lambda: [batch.run(None, {"input_1": stacked[k : k + 1]}) for k in range(8)], 6) / 8
    eight = cpu(lambda: batch.run(None, {"input_1": stacked}), 6) / 8
    row("  of it, network alone", one, ("a batch of eight windows", eight), "CPU-seconds a window")
    ear = recognisers.load(recognisers.DEFAULT, MODELS)
    stock = faster_whisper.WhisperModel(
        str(recognisers.folder_of(recognisers.DEFAULT, MODELS)), device="cpu", compute_type="int8", cpu_threads=1
    )
    row(
        "recognition", per_second(lambda k: ear.transcribe(sounds[k].samples, sounds[k].sample_rate, "en")),
        ("faster-whisper as it comes", per_second(lambda k: list(stock.transcribe(at_16k[k], language="en")[0]))), "",
    )  # fmt: skip


def _environment(folder: Path) -> dict[str, str]:
    return os.environ | {
        "EARWITNESS_VAR": str(folder), "EARWITNESS_MODELS": str(MODELS), "EARWITNESS_ENV": "system", "DATABASE_URL": "",
        "REDIS_URL": os.environ.get("TEST_REDIS_URL", "redis://127.0.0.1:6379/14"), "OMP_NUM_THREADS": "1",
    }  # fmt: skip


PREPARE = """
import hashlib, sys
from pathlib import Path
import numpy as np
from gate import recognisers, scoring
from gate.models import Measurement
from synth import clips, pcm
from synth.models import Clip, Sentence
battery = scoring.battery_for(recognisers.DEFAULT, "")
files, texts = [pcm.decode(Path(f)) for f in sys.argv[2::2]], sys.argv[3::2]
for k in range(int(sys.argv[1])):
    sound, text = files[k % len(files)], texts[k % len(files)]
    samples = np.concatenate([sound.samples, np.zeros(k, np.float32)])  # another sound each, as near as can be
    data = pcm.encode_flac(samples, sound.sample_rate)
    digest = hashlib.sha256(data).hexdigest()
    clips.take(data, digest)
    clip = Clip.objects.create(pcm_sha256=pcm.pcm_sha256(samples, sound.sample_rate), file_sha256=digest, sample_rate=sound.sample_rate, samples=len(samples))
    sentence, _ = Sentence.objects.get_or_create(digest=f"bench{k % len(files)}", defaults={"language": "en", "text": text})
    Measurement.objects.create(clip=clip, sentence=sentence, identity=battery.identity)
"""


def through_the_queue(count: int, scorers: int, files: list[Path]) -> float:
    """Wall seconds from the first message to the last usable measurement, with real scorer processes and a real broker."""
    folder = Path(tempfile.mkdtemp(prefix="ew-bench-"))
    env = _environment(folder)
    processes: list[subprocess.Popen] = []
    try:
        manage = [sys.executable, "manage.py"]
        subprocess.run([*manage, "migrate", "-v0"], cwd=BASE, env=env, check=True)
        pairs = [part for file, text in zip(files, TEXTS, strict=True) for part in (str(file), text)]
        script = f"import sys; sys.argv = ['', {count!r}, *{pairs!r}]\n" + PREPARE
        subprocess.run([*manage, "shell", "-v0", "-c", script], cwd=BASE, env=env, check=True)
        for k in range(scorers):
            celery = [sys.executable, "-m", "celery", "-A", "config.celery", "worker", "--pool", "solo", "--queues", "score", "--hostname"]
            processes.append(
                subprocess.Popen(
                    [*celery, f"bench{k}@%h", "--prefetch-multiplier", "1", "--loglevel", "ERROR", "--without-gossip", "--without-mingle"],
                    cwd=BASE, env=env, stdout=subprocess.DEVNULL, stderr=(folder / "scorer.log").open("ab"),
                )
            )  # fmt: skip
        begin = time.monotonic()
        tend = subprocess.Popen([*manage, "tend"], cwd=BASE, env=env, stdout=subprocess.DEVNULL, stderr=(folder / "tend.log").open("ab"))
        processes.append(tend)
        done = f"SELECT count(*) FROM gate_measurement m JOIN gate_scoringbatch b ON m.batch_id = b.id WHERE m.state = 'done' AND b.state = 'sound'"  # noqa: S608, F541
        while True:
            time.sleep(0.5)
            with sqlite3.connect(f"file:{next(folder.glob('*.sqlite3'))}?mode=ro", uri=True) as database:
                if database.execute(done).fetchone()[0] >= count:
                    return time.monotonic() - begin
    finally:
        for process in processes:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=int, default=300, help="clips through the queue (default %(default)s; 0: none)")
    parser.add_argument("--no-metrics", action="store_true")
    given = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    folder = Path(tempfile.mkdtemp(prefix="ew-voice-"))
    try:
        if not given.no_metrics:
            cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
            if cores:
                os.sched_setaffinity(0, {min(cores)})
            metrics(folder)
            if cores:
                os.sched_setaffinity(0, cores)
        if given.clips:
            files = voice(folder)
            walls = {n: through_the_queue(given.clips, n, files) for n in (1, 2)}
            for n, wall in walls.items():
                print(
                    f"{given.clips} clips through the queue, {n} scorer{'s' if n > 1 else ''}: {wall:.0f} s, {given.clips / wall:.2f} clips/s"
                )
            print(f"two scorers against one: {walls[1] / walls[2]:.2f} x")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
