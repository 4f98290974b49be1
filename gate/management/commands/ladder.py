"""`manage.py ladder FILE`: a whole ladder of levers as one command; what was killed goes on where it was."""

import contextlib
import re
import signal
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
from gate.management.commands.up import WORKER as OWN_WORKER
from synth import bell
from synth.configuration import Refused
from synth.models import Worker

#: Somebody else's worker on a shared database, heard of as recently as this, renders for us; else this command brings up its own.
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
        with self._host() as host:
            ended = self._climb(ladder, host, time.monotonic() + timeout if timeout else None)
        self._table(ladder)
        if ended:
            raise CommandError(ended)

    def _make(self, makes):
        """Checkpoints of random weights, written once by modules of this checkout."""
        for folder, module in makes.items():
            place = settings.MODELS / folder
            if not re.fullmatch(r"[a-z0-9][\w.-]*", folder):
                raise Refused("bad_folder", f"makes has {folder!r}: give the bare name of a folder among the models.", "makes")
            if (place / "config.json").exists():
                continue
            # A file of this checkout, looked for without importing anything; what lies in its environment is not.
            if not re.fullmatch(r"[a-z]\w*(\.\w+)+", module) or not (settings.BASE_DIR / f"{module.replace('.', '/')}.py").is_file():
                raise Refused("unknown_module", f"makes has {module!r}: that is no module of this checkout.", "makes")
            self.say(f"Writing the model {folder} ...")
            part = settings.MODELS / f"{folder}.part"
            done = subprocess.run([sys.executable, "-m", module, str(part)], cwd=settings.BASE_DIR, capture_output=True, text=True)
            if done.returncode:
                raise Refused(
                    "not_made", f"{module} could not write {folder}: {(done.stderr.strip().splitlines() or ['it ended'])[-1]}", "makes"
                )
            if not (part / "config.json").exists():
                raise Refused("not_made", f"{module} wrote no model: there is no config.json in {part}.", "makes")
            part.replace(place)

    @contextlib.contextmanager
    def _host(self):
        """A running Earwitness: the one there is, else one of our own for as long as this takes."""
        call_command("migrate", verbosity=0, interactive=False)
        others = Worker.objects.exclude(name=OWN_WORKER).filter(last_seen__gte=timezone.now() - ALIVE)
        if supervisor.is_running(settings.VAR / "run") or (settings.SHARED_DATABASE and others.exists()):
            self.say("Earwitness is running; it does the work.")
            yield None
            return
        port, log = supervisor.free_port(), self._log()
        log.parent.mkdir(parents=True, exist_ok=True)
        self.say(f"Starting Earwitness for this ladder at http://127.0.0.1:{port}/ ; what it prints is in {log}.")
        with log.open("ab") as out:
            host = subprocess.Popen(
                [sys.executable, "manage.py", "up", "--no-demo", "--port", str(port)], cwd=settings.BASE_DIR, stdout=out, stderr=out
            )
        try:
            yield host
        finally:
            host.terminate()
            host.wait()

    def _log(self):
        return settings.VAR / "log" / "ladder-up.log"

    def _climb(self, ladder, host, deadline):
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
            if host is not None and host.poll() is not None:
                return f"Earwitness ended while the ladder was climbed: see {self._log()}. Run the command again to go on."
            if deadline and time.monotonic() > deadline:
                return "The time is up; run the command again to go on."
            time.sleep(1)

    def _table(self, ladder):
        rows = [("Rung", "Verdict", "Speed over its parent", "Ledger"), *(climb.row(step) for step in climb.steps(ladder))]
        widths = [max(len(row[k]) for row in rows) for k in range(4)]
        for row in rows:
            self.say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
