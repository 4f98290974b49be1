import json
import math
from pathlib import Path

import numpy as np
import pytest

from synth import streaming

CASES = json.loads((Path(__file__).parent.parent / "vectors" / "player.json").read_text())


@pytest.mark.parametrize("name", CASES)
def test_the_player_hears_what_was_published(name):
    case = CASES[name]
    played = streaming.play(case["arrivals"], case["durations"], case["preroll_s"], case.get("resume_s", 0.0))
    for key, expected in case["result"].items():
        assert np.allclose(getattr(played, key), expected, atol=2e-4), key


def streams(count=300):
    random = np.random.default_rng(7)
    for _ in range(count):
        n = random.integers(1, 12)
        yield np.cumsum(random.uniform(0, 2, n)).tolist(), random.uniform(0.05, 2, n).tolist()


def test_the_smallest_preroll_never_starves_and_a_smaller_one_does():
    decisive = 0
    for arrivals, durations in streams():
        least = streaming.smallest_preroll(arrivals, durations)
        assert streaming.play(arrivals, durations, least).stalls == 0
        if least:
            decisive += 1
            assert streaming.play(arrivals, durations, least - 0.002).stalls > 0
    assert decisive > 100


def test_all_sound_is_played_and_silence_is_accounted_for():
    for arrivals, durations in streams():
        for preroll, resume in ((0, 0), (0.7, 0), (0.7, 1.1), (99, 0)):
            played = streaming.play(arrivals, durations, preroll, resume)
            assert math.isclose(played.playback_end_s, played.start_s + sum(durations) + played.starved_s)
            assert played.start_s <= arrivals[-1]


def test_a_rebuffer_level_makes_fewer_and_longer_stalls():
    arrivals, durations = [0.0, 1.5, 3.0, 4.5, 6.0], [1.0] * 5
    often, seldom = streaming.play(arrivals, durations, 0), streaming.play(arrivals, durations, 0, 2.0)
    assert (often.stalls, seldom.stalls) == (4, 1) and seldom.longest_stall_s > often.longest_stall_s


@pytest.mark.parametrize(("arrivals", "durations"), [([], []), ([1.0], [1.0, 2.0]), ([2.0, 1.0], [1.0, 1.0]), ([1.0], [-1.0])])
def test_what_is_no_stream_is_refused(arrivals, durations):
    with pytest.raises(ValueError, match="arrival"):
        streaming.play(arrivals, durations, 0)
