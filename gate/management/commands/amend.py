"""`manage.py amend SLUG FILE --note ...`: a new, dated plan for a lever no look has read yet."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from gate import amend, specfile
from gate.models import Lever
from synth.configuration import Refused


class Command(BaseCommand):
    help = "Amend a locked plan with the plan keys of a YAML file. More than a later closing date caps the verdict at provisional."

    def add_arguments(self, parser):
        parser.add_argument("slug")
        parser.add_argument("file", type=Path)
        parser.add_argument("--note", required=True, help="why; it is kept in the plan and the ledger")

    def handle(self, *args, slug, file, note, **options):
        lever = Lever.objects.filter(slug=slug).first()
        if lever is None:
            raise CommandError(f"There is no lever {slug!r}: see the list on the dashboard.")
        try:
            plan = amend.amend(lever, specfile.mapping(file.read_text(encoding="utf-8")), note)
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{file} can't be read: {error}.") from error
        except Refused as error:
            raise CommandError(error.message) from error
        self.stdout.write(f"Plan {plan.number} of {slug} is locked: {plan.digest}.")
