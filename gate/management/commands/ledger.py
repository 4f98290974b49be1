"""`manage.py ledger`: every locked plan and verdict; with --verify, whether any was changed."""

from django.core.management.base import BaseCommand, CommandError

from gate import ledger
from gate.models import LedgerEntry


class Command(BaseCommand):
    help = "Print the ledger, oldest first; --verify recomputes its chain of hashes and the digests of what it speaks of."

    def add_arguments(self, parser):
        parser.add_argument("--verify", action="store_true")

    def handle(self, *args, verify, **options):
        if verify:
            wrong = ledger.verify()
            for text in wrong:
                self.stderr.write(text)
            if wrong:
                raise CommandError(f"{len(wrong)} things in the ledger are not as they were written.")
            self.stdout.write(f"{LedgerEntry.objects.count()} entries, all as they were written.")
            return
        for entry in LedgerEntry.objects.select_related("lever").order_by("number"):
            body = entry.body
            what = f"{body['verdict']} ({', '.join(body['reasons'])})" if entry.kind == "verdict" else f"plan {body['plan'][:12]}"
            self.stdout.write(f"{entry.number:>5}  {entry.at:%Y-%m-%d %H:%M}  {entry.lever.slug:<32} {what}  {entry.sha256[:12]}")
