"""News from synthesis; listeners ring, they don't work."""

from django.dispatch import Signal

#: Sent after commit with `draw_key` when a render group or timed block is settled, with `configuration` for a preflight.
render_settled = Signal()
