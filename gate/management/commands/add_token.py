"""`manage.py add_token NAME`: a key for a worker or for CI, shown once."""

from django.core.management.base import BaseCommand

from gate.models import Token


class Command(BaseCommand):
    help = "Make (or renew) the token of a worker, or of a reader such as CI. It is shown once; only its hash is kept."

    def add_arguments(self, parser):
        parser.add_argument("name", help="how the machine is shown, such as studio-mac")
        parser.add_argument("--kind", choices=Token.Kind.values, default=Token.Kind.WORKER)

    def handle(self, *args, name, kind, **options):
        self.stdout.write(Token.issue(name, kind))
