"""`manage.py tend`: the loop that keeps work moving whatever was lost on the way. One instance by lease."""

import logging
import signal
import time
import uuid
from datetime import timedelta

from django.core.management.base import BaseCommand
from django.db import IntegrityError, InterfaceError, OperationalError, connections
from django.db.models import Q
from django.utils import timezone

from gate import advance, annotations, cumulative, scoring
from gate.models import Comparison, Judgement, Measurement, Tending
from gate.tasks import score_batch
from listening import pairs
from synth import bell, queue
from synth.models import Preflight, RenderGroup, TimedBlock

log = logging.getLogger("earwitness.tend")
EVERY_S = 5
LEASE = timedelta(seconds=20)


class Command(BaseCommand):
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

    def round(self) -> None:
        now = timezone.now()
        for model in (Preflight, RenderGroup, TimedBlock, Measurement, Comparison, Judgement):
            queue.give_up_lapsed(model, now)
        scoring.give_up_lapsed(now)
        pairs.free_lapsed(now)
        advance.advance_open()
        cumulative.tend()
        bell.ring_all()
        bell.ring(Measurement.objects.all(), score_batch)
        annotations.ring()
