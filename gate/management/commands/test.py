"""`manage.py test`: the whole suite, on SQLite and, where one answers, on Postgres; everything it needs is made first."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time

from django.conf import settings
from django.core.management.base import BaseCommand

CHROMIUM = "/usr/bin/chromium"
#: Minutes long, and enough to run once: the Postgres half takes these when there is one, the SQLite half the main job.
ONCE = [
    "tests/e2e/test_compose.py",
    "tests/e2e/test_ladder.py",
    "tests/e2e/test_scorer_killed.py",
    "tests/e2e/test_sitting.py",
    "tests/e2e/test_firefox.py",
    "tests/listening/test_leaks.py",
]
MAIN_JOB = "tests/e2e/test_main_job.py"
#: No database is touched here: the SQLite half is enough. The services of docker-compose.yml are for the Postgres half.
PURE = [
    "tests/statistics",
    "tests/metrics",
    "tests/test_code.py",
    "tests/test_imports.py",
    "tests/test_bootstrap.py",
    "tests/synth/test_mlx.py",
    "tests/synth/test_levers.py",
    "tests/synth/test_batching.py",
    "tests/synth/test_streaming_engine.py",
    "tests/synth/test_telemetry.py",
    "tests/synth/test_contention.py",
    "tests/synth/test_roofline.py",
    "tests/synth/test_diagnoses.py",
    "tests/synth/test_other_models.py",
    "tests/synth/test_acceptance.py",
    "tests/synth/test_supervise.py",
    "tests/synth/test_pcm.py",
    "tests/synth/test_configuration.py",
    "tests/gate/test_decide.py",
    "tests/listening/test_audio.py",
]


class Command(BaseCommand):
    help = "Run the tests. Unknown arguments go to pytest, as in `manage.py test --quick tests/gate -k sealed`."
    requires_system_checks: list[str] = []

    def run_from_argv(self, argv):
        """pytest's own options must not be argued with."""
        sys.exit(self.run(argv[2:]))

    def say(self, text):
        self.stdout.write(text)
        self.stdout.flush()

    def run(self, arguments: list[str]) -> int:
        quick = "--quick" in arguments
        arguments = [a for a in arguments if a != "--quick"] + (["-m", "not slow"] if quick else [])
        if not quick:
            self.prepare()
        redis_url = os.environ.get("TEST_REDIS_URL", "redis://127.0.0.1:6379/15")
        codes = []
        postgres = self.postgres()
        for name, url in (("SQLite", ""), ("Postgres", postgres)):
            if name == "Postgres" and not url:
                self.say("No Postgres answers at TEST_DATABASE_URL or on this machine: its half of the suite is not run.")
                codes.append(1 if os.environ.get("CI") == "true" else 0)
                continue
            begin = time.monotonic()
            self.say(f"== {name}")
            env = os.environ | {"TEST_DATABASE_URL": url, "TEST_REDIS_URL": redis_url, "EARWITNESS_ENV": "system"}
            env.pop("DJANGO_SETTINGS_MODULE", None)
            elsewhere = [*PURE, MAIN_JOB] if name == "Postgres" else ONCE if postgres else []
            skipped = [f"--ignore={path}" for path in elsewhere]
            run = subprocess.run([sys.executable, "-m", "pytest", *skipped, *arguments], cwd=settings.BASE_DIR, env=env)
            codes.append(run.returncode)
            self.say(f"== {name}: {time.monotonic() - begin:.0f} s")
        return int(any(codes))  # a half that died by a signal has a negative code

    def prepare(self) -> None:
        """The models once, and a browser: Debian's where we may install it, else Playwright's own."""
        from gate import speech

        self.say("Making sure the models are there ...")
        speech.make_models(settings.MODELS)
        if os.access(CHROMIUM, os.X_OK):
            return
        if shutil.which("apt-get") and os.geteuid() == 0:
            self.say("Installing Debian's Chromium for the browser tests ...")
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.STDOUT}
            subprocess.run(["apt-get", "update", "-qq"], **quiet)
            subprocess.run(["apt-get", "install", "-y", "-qq", "chromium"], env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"}, **quiet)
        else:
            self.say("Asking Playwright for its Chromium ...")
            subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"])

    def postgres(self) -> str:
        """TEST_DATABASE_URL, or the server on this machine when it lets us in; '' when there is none."""
        import psycopg

        for url in (os.environ.get("TEST_DATABASE_URL"), "postgres://postgres@127.0.0.1:5432/postgres"):
            if not url:
                continue
            try:
                psycopg.connect(url, connect_timeout=3).close()
                return url
            except psycopg.Error as error:
                self.say(f"Postgres at {url.rsplit('@', 1)[-1]} does not answer: {str(error).strip().splitlines()[0]}")
        return ""
