"""`manage.py fetch_recogniser NAME`: bring a hub's speech recogniser onto this host; measuring itself never uses the network."""

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from gate import recognisers


class Command(BaseCommand):
    help = (
        "Fetch a recogniser such as mlx-audio:mlx-community/whisper-large-v3-turbo@<commit>; on every scoring host, and where `tend` runs."
    )

    def add_arguments(self, parser):
        parser.add_argument("name")

    def handle(self, *args, name, **options):
        try:
            if recognisers.split(name)[1] != recognisers.PACKAGED:
                recognisers.fetch(name)
            self.stdout.write(recognisers.identity(name, settings.MODELS))
        except (ValueError, OSError, recognisers.Unavailable) as error:
            raise CommandError(str(error)) from error
