"""`manage.py export SLUG clips|votes`: the CSV the dashboard offers, on standard output."""

from django.core.management.base import BaseCommand, CommandError

from gate import export
from gate.models import Lever


class Command(BaseCommand):
    help = "Print a lever's clips or votes as CSV, once they are unsealed."

    def add_arguments(self, parser):
        parser.add_argument("slug")
        parser.add_argument("what", choices=["clips", "votes"])

    def handle(self, *args, slug, what, **options):
        lever = Lever.objects.filter(slug=slug).first()
        if lever is None:
            raise CommandError(f"There is no lever {slug!r}: see the list on the dashboard.")
        try:
            self.stdout.write(export.clips_csv(lever) if what == "clips" else export.votes_csv(lever), ending="")
        except export.Sealed as error:
            raise CommandError(str(error)) from error
