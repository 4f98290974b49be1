"""`manage.py worker`: this machine renders for a host. Celery's options are hidden; one worker per machine."""

import fcntl
import os
import platform
import subprocess
from pathlib import Path

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from synth import desk, introduction, launchd, probe
from synth.engine import bundled


def from_keychain() -> str:
    """The secret of the keychain's item `earwitness`; '' when there is none, or no Mac."""
    if platform.system() != "Darwin":
        return ""
    done = subprocess.run(["security", "find-generic-password", "-s", "earwitness", "-w"], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


class Command(BaseCommand):
    help = "Render for a host: claims work over HTTP with a token, speaks in a child process, uploads the clips."

    def add_arguments(self, parser):
        parser.add_argument("--host", default=settings.DESK_URL, help="address of the Earwitness site, such as https://ears.example.org")
        parser.add_argument("--token", default=settings.WORKER_TOKEN, help="made on the host by `manage.py add_token NAME`")
        parser.add_argument("--token-file", type=Path, help="a file that holds the token, readable by you alone")
        parser.add_argument("--install", action="store_true", help="on a Mac: start at every login, and keep the machine awake")
        parser.add_argument("--uninstall", action="store_true", help="on a Mac: stop it, and start it no more")
        parser.add_argument("--broker", default="", help="broker address, where the host's own is not reachable from here")

    def handle(self, *args, host, token, broker, token_file, **options):
        if options["uninstall"]:
            self.stdout.write("The worker is taken out." if launchd.remove(Path.home()) else "No worker was installed.")
            return
        token = (self._kept(token_file) if token_file else token) or self._kept(None)
        if not token:
            raise CommandError(
                "No token: make one on the host with `manage.py add_token NAME`, then give it as --token, in a --token-file, as "
                "EARWITNESS_TOKEN, or on a Mac in the keychain (docs/mac-worker.md)."
            )
        if options["install"]:
            self._install(host.rstrip("/"), token, broker)
            return
        lock = self._only_one()
        found = probe.mlx()
        if found.trouble and not settings.WORKER_MODULES:
            raise CommandError(found.trouble)
        if found.trouble:
            self.stderr.write(f"{found.trouble} Only engines of {', '.join(settings.WORKER_MODULES)} can work here.")
        try:
            bundled.make(settings.MODELS)
        except RuntimeError as error:
            self.stderr.write(f"The bundled voice could not be made ({error}); other models are not affected.")
        settings.DESK_URL, settings.WORKER_TOKEN = host.rstrip("/"), token
        facts = introduction.facts(settings.WORKER_NAME, settings.VAR)
        try:
            answer = desk.Desk(settings.DESK_URL, token, patience=90).hello(facts)
        except (desk.Denied, desk.Unreachable) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Working for {settings.DESK_URL} as {answer['name']} ({facts['device_class']}).")
        self.stdout.flush()
        from config.celery import app

        app.conf.broker_url = broker or answer["broker"]
        app.worker_main(
            ["worker", "--pool", "threads", "--concurrency", "1", "--queues", "mlx", "--hostname", f"mlx.{os.getpid()}@%h",
             "--prefetch-multiplier", "1", "--loglevel", "WARNING", "--without-gossip", "--without-mingle"]
        )  # fmt: skip
        lock.close()

    def _kept(self, token_file):
        """The token from its file, or from a Mac's keychain."""
        if token_file is not None:
            try:
                if token_file.stat().st_mode & 0o077:
                    self.stderr.write(f"Others on this machine can read {token_file}: chmod 600 it.")
                return token_file.read_text(encoding="utf-8").strip()
            except OSError as error:
                raise CommandError(f"The token file {token_file} can't be read: {error.strerror}.") from error
        return from_keychain()

    def _install(self, host, token, broker):
        if platform.system() != "Darwin":
            raise CommandError("--install is for Macs, which have launchd; elsewhere let your service manager start `manage.py worker`.")
        kept = settings.VAR / "run" / "worker.token"
        kept.parent.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(".part")
        part.unlink(missing_ok=True)
        part.touch(mode=0o600)
        part.write_text(token, encoding="utf-8")
        part.replace(kept)
        try:
            made = launchd.agent(settings.BASE_DIR, host, kept, settings.VAR, broker, os.environ)
            place = launchd.install(made, Path.home())
        except launchd.NotInstalled as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Installed as {place}; it starts at every login. Its log is {settings.VAR / 'worker.log'}.")

    def _only_one(self):
        path = settings.VAR / "run" / "worker.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = path.open("w")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise CommandError("A worker is already running on this machine; one renders at a time. Stop it first.") from error
        return handle
