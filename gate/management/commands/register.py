"""`manage.py register lever.yaml`: register the levers of a file, all or none."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from gate import register, specfile
from synth import bell
from synth.configuration import Refused


class Command(BaseCommand):
    help = "Register the lever of a YAML file, or the levers of its list `levers`, with what they have in common under `shared`."

    def add_arguments(self, parser):
        parser.add_argument("file", type=Path)

    def handle(self, *args, file, **options):
        try:
            levers = register.register(specfile.read_yaml(file.read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{file} can't be read: {getattr(error, 'strerror', None) or error}.") from error
        except Refused as error:
            raise CommandError(error.message) from error
        for lever in levers:
            for warning in lever.warnings:
                self.stderr.write(f"Warning: {warning}")
            self.stdout.write(f"{lever.slug} is registered; wait for its verdict with `manage.py verdict {lever.slug} --wait`.")
        bell.flush(3)
