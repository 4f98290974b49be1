"""`manage.py verdict SLUG [--wait]`: the verdict as an exit code, for CI."""

import json
import sys
import time

from django.core.management.base import BaseCommand, CommandError

from gate import standing
from gate.api import summary
from gate.models import Lever
from gate.reasons import explain

CODES = {"accepted": 0, "rejected": 1, "inconclusive": 2, "no-benefit": 3, "provisional": 5}
NOT_READY = 4


class Command(BaseCommand):
    help = "Exit with 0 accepted, 1 rejected, 2 inconclusive or fallen since, 3 no-benefit, 4 not ready, 5 provisional."

    def add_arguments(self, parser):
        parser.add_argument("slug")
        parser.add_argument("--wait", action="store_true", help="until there is a verdict")
        parser.add_argument("--timeout", type=float, default=0, help="with --wait: seconds after which to exit 4 (default: none)")
        parser.add_argument("--allow-provisional", action="store_true", help="exit 0 for provisional, too")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args, slug, wait, timeout, allow_provisional, **options):
        deadline = time.monotonic() + timeout if timeout else None
        while True:
            lever = Lever.objects.filter(slug=slug).first()
            if lever is None:
                raise CommandError(f"There is no lever {slug!r}: see the list on the dashboard.", returncode=NOT_READY)
            verdict = lever.verdict
            stuck = lever.state == Lever.State.CHECKING and bool(lever.problem)  # nobody but a person can mend that
            if verdict or stuck or not wait or (deadline and time.monotonic() > deadline):
                break
            time.sleep(2)
        if options["json"]:
            self.stdout.write(json.dumps(summary(lever)))
        elif verdict is None:
            self.stdout.write(f"{slug}: not ready ({lever.state}){': ' + lever.problem if lever.problem else ''}")
        else:
            self.stdout.write(f"{slug}: {verdict.verdict}{' (' + verdict.evidence + ')' if verdict.evidence else ''}")
            for code in verdict.reasons:
                self.stdout.write(f"  {code}: {explain(code)[0]}")
        fallen = standing.why_not(lever)
        if fallen and not options["json"]:
            self.stdout.write(f"It does not stand any more ({', '.join(fallen)}): {explain(fallen[0])[0]} {explain(fallen[0])[1]}")
        code = CODES["inconclusive"] if fallen else CODES[verdict.verdict] if verdict else NOT_READY
        sys.exit(0 if code == 5 and allow_provisional else code)
