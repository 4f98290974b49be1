"""`manage.py worker`: this machine renders for a host. Celery's options are hidden; one worker per machine."""

import contextlib
import fcntl
import os
import platform
from importlib.metadata import PackageNotFoundError, version

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from synth import desk, worker
from synth.engine import bundled


def environment() -> dict[str, str]:
    """What makes another machine of this one, read without importing an engine; the host compares it with what levers were measured on."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for package in ("mlx", "mlx-audio"):
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


class Command(BaseCommand):
    help = "Render for a host: claims work over HTTP with a token, speaks in a child process, uploads the clips."

    def add_arguments(self, parser):
        parser.add_argument("--host", default=settings.DESK_URL, help="address of the Earwitness site, such as https://ears.example.org")
        parser.add_argument("--token", default=settings.WORKER_TOKEN, help="made on the host by `manage.py add_token NAME`")
        parser.add_argument("--broker", default="", help="broker address, where the host's own is not reachable from here")

    def handle(self, *args, host, token, broker, **options):
        if not token:
            raise CommandError(
                "No token: make one on the host with `manage.py add_token NAME`, then give it as --token or EARWITNESS_TOKEN."
            )
        lock = self._only_one()
        try:
            bundled.make(settings.MODELS)
        except RuntimeError as error:
            self.stderr.write(f"The bundled voice could not be made ({error}); other models are not affected.")
        settings.DESK_URL, settings.WORKER_TOKEN = host.rstrip("/"), token
        facts = {"name": settings.WORKER_NAME, "device_class": worker.device_class(), "environment": environment()}
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

    def _only_one(self):
        path = settings.VAR / "run" / "worker.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = path.open("w")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise CommandError("A worker is already running on this machine; one renders at a time. Stop it first.") from error
        return handle
