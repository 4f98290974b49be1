"""News from synthesis and listening only ring `advance`, at most once a second from each process; `tend` hears the rest."""

from __future__ import annotations

import time

from django.dispatch import receiver

from listening.signals import vote_cast
from synth import bell
from synth.signals import render_settled

_last = [0.0]


@receiver([render_settled, vote_cast])
def ring_advance(sender, **news):
    from gate.tasks import advance_all

    if time.monotonic() - _last[0] > 1.0:
        _last[0] = time.monotonic()
        bell.publish(advance_all, 1)
