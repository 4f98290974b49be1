"""`manage.py accept_mac`: a dozen checks of what a Mac must do before anybody relies on what it renders."""

import sys
from pathlib import Path

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from synth import acceptance, configuration, desk, introduction
from synth.engine import bundled
from synth.management.commands.worker import from_keychain

MARKS = {"passed": "ok  ", "failed": "FAIL", "not run": "-   "}


class Command(BaseCommand):
    help = (
        "Try on this Mac what rendering takes for granted, and keep the report; its worker tells the host. Exits with 1 if a check failed."
    )

    def add_arguments(self, parser):
        parser.add_argument("--configuration", type=Path, help="YAML of the system to speak with (default: the bundled voice)")
        parser.add_argument("--host", default="", help="with the worker's token: whether the host answers, too")
        parser.add_argument("--token", default=settings.WORKER_TOKEN)

    def handle(self, *args, configuration, host, token, **options):
        body = self._configuration(configuration)
        connection = desk.Desk(host.rstrip("/"), token or from_keychain(), patience=10) if host else None
        facts = introduction.facts(settings.WORKER_NAME, settings.VAR)
        tried = acceptance.Acceptance(body, settings.MODELS, settings.WORKER_MODULES, connection, facts)
        report = tried.run(lambda check: self.say(f"{MARKS[check.result]} {check.name}: {check.said} ({check.seconds:.0f} s)"))
        file = acceptance.keep(report, introduction.folder(settings.VAR))
        counts = f"{report['passed']} passed, {report['failed']} failed, {report['not run']} not run"
        if not tried.mac:
            self.say(f"{counts}. This is no Mac, so nothing is accepted; the report is {file}.")
        else:
            self.say(
                f"{counts}. {'Accepted' if report['accepted'] else 'Not accepted'}; the report is {file}, start the worker to send it."
            )
        sys.exit(1 if report["failed"] else 0)

    def say(self, text):
        self.stdout.write(text)
        self.stdout.flush()

    def _configuration(self, file):
        if file is None:
            try:
                bundled.make(settings.MODELS)
            except RuntimeError as error:
                raise CommandError(
                    f"The bundled voice could not be made ({error}): give a system of yours with --configuration."
                ) from error
            return bundled.CONFIGURATION
        try:
            import yaml

            return configuration.parse(yaml.safe_load(file.read_text(encoding="utf-8"))).model_dump(
                mode="json", by_alias=True, exclude_defaults=True
            )
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise CommandError(f"{file} can't be read: {error}.") from error
        except configuration.Refused as error:
            raise CommandError(error.message) from error
