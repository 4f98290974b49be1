"""`manage.py ladder FILE`: a whole ladder of levers as one command; what was killed goes on where it was."""

import contextlib
import importlib.util
import signal
import socket
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from config import supervisor
from gate import climb
from synth import bell
from synth.configuration import Refused
from synth.models import Worker

#: A worker heard of as recently as this renders for us; without one this command brings up its own.
ALIVE = timedelta(minutes=2)


class Command(BaseCommand):
    help = "Climb the ladder of a YAML file: each rung is registered on the one below as soon as that is judged. Starts what it needs."

    def add_arguments(self, parser):
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--timeout", type=float, default=0, help="seconds after which to stop waiting (default: none); run it again to go on"
        )

    def say(self, text):
        self.stdout.write(text)
        self.stdout.flush()

    def handle(self, *args, file, timeout, **options):
        try:
            ladder = climb.read(file.read_text(encoding="utf-8"))
            self._make(ladder.makes)
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{file} can't be read: {getattr(error, 'strerror', None) or error}.") from error
        except Refused as error:
            raise CommandError(error.message) from error
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda n, frame: sys.exit(128 + n))
        with self._host():
            ended = self._climb(ladder, time.monotonic() + timeout if timeout else None)
        self._table(ladder)
        if ended:
            raise CommandError(ended)

    def _make(self, makes):
        """Checkpoints of random weights, written once by modules of this checkout."""
        for folder, module in makes.items():
            place = settings.MODELS / folder
            if place.parent != settings.MODELS:
                raise Refused("bad_folder", f"makes has {folder!r}: give the bare name of a folder among the models.", "makes")
            if (place / "config.json").exists():
                continue
            found = importlib.util.find_spec(module) if "." in module else None
            if found is None or not found.origin or not Path(found.origin).is_relative_to(settings.BASE_DIR):
                raise Refused("unknown_module", f"makes has {module!r}: that is no module of this checkout.", "makes")
            self.say(f"Writing the model {folder} ...")
            part = settings.MODELS / f"{folder}.part"
            done = subprocess.run([sys.executable, "-m", module, str(part)], cwd=settings.BASE_DIR, capture_output=True, text=True)
            if done.returncode:
                raise Refused(
                    "not_made", f"{module} could not write {folder}: {(done.stderr.strip().splitlines() or ['it ended'])[-1]}", "makes"
                )
            part.replace(place)

    @contextlib.contextmanager
    def _host(self):
        """A running Earwitness: the one there is, else one of our own for as long as this takes."""
        call_command("migrate", verbosity=0, interactive=False)
        if Worker.objects.filter(last_seen__gte=timezone.now() - ALIVE).exists() or supervisor.is_running(settings.VAR / "run"):
            self.say("Earwitness is running; it does the work.")
            yield
            return
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        log = settings.VAR / "log" / "ladder-up.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        self.say(f"Starting Earwitness for this ladder at http://127.0.0.1:{port}/ ; what it prints is in {log}.")
        with log.open("ab") as out:
            host = subprocess.Popen(
                [sys.executable, "manage.py", "up", "--no-demo", "--port", str(port)], cwd=settings.BASE_DIR, stdout=out, stderr=out
            )
        try:
            yield
        finally:
            host.terminate()
            host.wait()

    def _climb(self, ladder, deadline):
        """Until every rung is judged, or one ends the climb; why, or ''."""
        told: dict[str, str] = {}
        while True:
            try:
                ended = climb.climb(ladder)
            except Refused as error:
                return error.message
            bell.flush(3)
            rungs = climb.steps(ladder)
            for step in rungs:
                state = step.lever.verdict.verdict if step.settled else step.lever.state if step.lever else ""
                if state and told.get(step.slug) != state:
                    told[step.slug] = state
                    self.say(f"{timezone.now():%H:%M:%S} {step.slug}: {state}")
            if ended or all(step.settled for step in rungs):
                return ended
            if deadline and time.monotonic() > deadline:
                return "The time is up; run the command again to go on."
            time.sleep(1)

    def _table(self, ladder):
        rows = [("Rung", "Verdict", "Speed over its parent", "Ledger"), *(climb.row(step) for step in climb.steps(ladder))]
        widths = [max(len(row[k]) for row in rows) for k in range(4)]
        for row in rows:
            self.say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
