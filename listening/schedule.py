"""Where in a rater's sittings the pairs with a known answer come. Pure, and foretold by nobody who has not the secret."""

from __future__ import annotations

import random
from functools import lru_cache

#: Trials of one sitting: about a quarter of an hour. A break card follows.
SITTING = 40
#: Sittings of one day: past fifty minutes nobody listens well.
SITTINGS_A_DAY = 3
#: Fewer control sentences than these make no proof that a panel hears a damage.
FOR_ASSAY = 4
#: What is mixed into the tests of one sitting.
MIXED_IN = ("obvious", "obvious", "obvious", "identical", "identical", "instruction", "assay", "assay", "assay")


@lru_cache(maxsize=2048)
def _plan(seed: str) -> tuple[str, ...]:
    rng = random.Random(seed)  # noqa: S311 - seeded with a secret
    kinds = list(MIXED_IN)
    rng.shuffle(kinds)
    plan = ["test"] * SITTING
    edges = [round(k * SITTING / len(kinds)) for k in range(len(kinds) + 1)]
    for kind, start, end in zip(kinds, edges, edges[1:], strict=False):
        plan[rng.randrange(start, end)] = kind  # spread over the sitting, so that a short one has its share
    return tuple(plan)


def kind_at(secret: str, place: int) -> str:
    """What belongs at this place (from 0) of all the trials of the rater with this secret: `test`, or a kind of control."""
    return _plan(f"{secret}:{place // SITTING}")[place % SITTING]


def places_for(secret: str, place: int, tests: int, kinds: set[str]) -> int:
    """Trials from `place` on until so many tests are answered, where controls of these kinds are there."""
    trials = 0
    while tests > 0:
        tests -= kind_at(secret, place + trials) not in kinds
        trials += 1
    return trials
