"""`manage.py canaries`: the recordings that must always be transcribed alike; retire those that can't be, knowingly."""

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from gate import history
from gate.models import Canary


class Command(BaseCommand):
    help = "List the canaries, or retire some: others take their places, and what was measured before is not compared with them."

    def add_arguments(self, parser):
        parser.add_argument("--retire", type=int, nargs="+", metavar="NUMBER", default=[])

    def handle(self, *args, retire, **options):
        known = set(Canary.objects.filter(retired_at=None).values_list("pk", flat=True))
        if unknown := sorted(set(retire) - known):
            raise CommandError(f"There is no canary {unknown[0]} that is still read: `manage.py canaries` lists them.")
        for number in retire:
            Canary.objects.filter(pk=number).update(retired_at=timezone.now())
            history.note(None, f"canary {number} was retired by hand")
        for canary in Canary.objects.filter(retired_at=None).select_related("battery", "clip").order_by("battery_id", "language", "pk"):
            line = (
                f"{canary.pk:>5}  {canary.language}  {canary.clip.seconds:5.1f} s  since {canary.at:%Y-%m-%d}  {canary.battery.recogniser}"
            )
            self.stdout.write(line)
        if not known:
            self.stdout.write("There are no canaries yet: the first clips that are measured become them.")
