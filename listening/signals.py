"""News from listening; listeners ring, they don't work."""

from django.dispatch import Signal

#: Sent after commit when a vote was stored, with `study` (its primary key).
vote_cast = Signal()
