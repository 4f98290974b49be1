"""`manage.py tend`: the loop that keeps work moving whatever was lost on the way. One instance by lease."""

import logging
import signal
import time
import uuid
from datetime import UTC, datetime, timedelta

from django.core.management.base import BaseCommand
from django.db import IntegrityError, InterfaceError, OperationalError, connections
from django.db.models import Q
from django.utils import timezone

from gate import advance, annotations, cumulative, ears, history, scoring, site_policy
from gate.models import AuditEntry, Comparison, Judgement, Measurement, Tending
from gate.tasks import score_batch
from listening import pairs, screening
from listening.models import Panel
from synth import bell, queue
from synth.models import UNITS

log = logging.getLogger("earwitness.tend")
EVERY_S = 5
REVIEW = timedelta(minutes=1)
LEASE = timedelta(seconds=20)


class Command(BaseCommand):
    reviewed = datetime.min.replace(tzinfo=UTC)
    help = "Ring for due work, give up what fell silent, free lapsed trials, advance levers."

    def add_arguments(self, parser):
        parser.add_argument("--once", action="store_true", help="one round, then end")

    def handle(self, *args, once, **options):
        self.me, going = uuid.uuid4(), [True]
        if not once:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda n, frame: going.clear())
        while going:
            try:
                if self.mine():
                    self.round()
            except (OperationalError, InterfaceError):
                log.exception("the database did not answer; the next round tries again")
                connections.close_all()  # a connection the server has ended stays ended until it is closed here
            if once:
                return
            for _ in range(EVERY_S * 5):
                if going:
                    time.sleep(0.2)
        Tending.objects.filter(holder=self.me).delete()

    def mine(self) -> bool:
        """Takes or keeps the lease; another instance waits until it lapses."""
        now = timezone.now()
        if Tending.objects.filter(Q(holder=self.me) | Q(until__lt=now), name="tend").update(holder=self.me, until=now + LEASE):
            return True
        try:
            _, made = Tending.objects.get_or_create(name="tend", defaults={"holder": self.me, "until": now + LEASE})
        except IntegrityError:
            return False
        return made

    def review(self, now: datetime) -> None:
        """Once a minute: controls that good raters fail are taken out, and an excluded share that jumped is told, once a day."""
        if now - self.reviewed < REVIEW:
            return
        self.reviewed = now
        rules = ears.rules(site_policy.current())
        for panel in Panel.objects.filter(studies__open=True).distinct():
            for pair in screening.retire_faulty(panel, rules):
                history.note(None, f"panel {panel.language}: a control ({pair.damage}) was taken out, as good raters fail it")
            text = screening.alarm(panel, rules)
            if (
                text
                and not AuditEntry.objects.filter(
                    at__gt=now - timedelta(days=1), text__startswith=f"panel {panel.language}: alarm"
                ).exists()
            ):
                history.note(None, f"panel {panel.language}: alarm: {text}")

    def round(self) -> None:
        now = timezone.now()
        for model in (*UNITS.values(), Measurement, Comparison, Judgement):
            queue.give_up_lapsed(model, now)
        scoring.give_up_lapsed(now)
        pairs.free_lapsed(now)
        advance.advance_open()
        cumulative.tend()
        self.review(now)
        bell.ring_all()
        bell.ring(Measurement.objects.all(), score_batch)
        annotations.ring()
