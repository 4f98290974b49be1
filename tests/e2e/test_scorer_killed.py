"""kill -9 of a scorer in the middle of a batch."""

import pytest

from tests import factories
from tests.e2e.stack import Stack


@pytest.mark.slow
def test_a_killed_scorers_batch_is_thrown_away_and_the_next_one_measures_all():
    made = factories.spec("louder", texts=["The ferry leaves at dawn.", "She kept every letter."], plan={"listening": {"required": False}})
    with Stack() as stack:
        stack.register(made)
        stack.wait(lambda: stack.ask("Measurement.objects.filter(state='done').count()") >= 1, 120, "the first measurement")
        stack.kill("scorer")
        assert stack.ask("Measurement.usable().count()") == 0
        stack.wait(lambda: stack.ask("ScoringBatch.objects.filter(state='void').count()") == 1, 120, "the batch to be given up")
        stack.wait(lambda: stack.ask("Measurement.usable().count()") == 4, 150, "all measurements")
        stack.wait(lambda: stack.state("louder")["state"] == "settled", 30, "a verdict")
        assert "measured" in stack.said()
