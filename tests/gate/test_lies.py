"""Every way in which numbers have lied about a change, told again by a simulated machine: each is caught, and named.

What lies before any number (one seed for all, a candidate that is its parent, sound that is none) is refused elsewhere and tested there.
"""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from gate import evidence, policy
from gate.decide import Case, decide
from gate.measured import Row
from gate.models import AuditEntry
from gate.statistics.intervals import mean_interval
from synth import contention, timed
from synth.engine.supervise import ChildFailed
from synth.models import seed_of
from tests import factories
from tests.gate.clocks import Bench, Clock, Sound, speed_of
from tests.gate.test_decide import GOOD

pytestmark = pytest.mark.usefixtures("known_metrics")
DRIFTS = pytest.mark.parametrize("saturating", [True, False], ids=["saturating", "linear"])
NO_BENEFIT = ("no-benefit", ["speed_below_threshold_or_spread"])
INVALID = ("inconclusive", ["speed_invalid"])


@pytest.fixture
def bench(db):
    return Bench()


def word(lever):
    return lever.verdict.verdict, lever.verdict.reasons


def pace(lever):
    return lever.verdict.look.evidence["speed"]


def told(clock, studies=40):
    """Verdicts and first reasons of so many studies of one clock, all else being well."""
    found = [decide(Case(endpoints=GOOD, speed=speed_of(Clock(**clock, seed=k)))) for k in range(studies)]
    return [(d.verdict, d.reasons[0]) for d in found]


def accepted(clock, studies=40):
    return sum(verdict == "accepted" for verdict, _ in told(clock, studies))


# -- the truth ---------------------------------------------------------------------------------------------------------


@DRIFTS
def test_a_true_gain_is_accepted_from_its_clips_hashes_on_a_machine_that_warms_up(bench, saturating):
    lever = bench.judged(Clock(gain=1.06, drift=0.13, saturating=saturating))
    assert word(lever) == ("accepted", ["evidence:bit-identical"]) and pace(lever)["clean"] == 3


def test_a_true_gain_of_another_sound_is_accepted_by_the_whole_gate(bench):
    lever = bench.judged(Clock(gain=1.06, drift=0.13), Sound(), count=300)
    assert word(lever) == ("accepted", ["evidence:automatic-only"])


# -- time --------------------------------------------------------------------------------------------------------------


@DRIFTS
def test_drift_neither_hides_a_true_gain_nor_makes_one(db, saturating):
    """13 % over a block is twice what is to be found, and the yardstick's own drift voids no block."""
    drift = {"drift": 0.13, "saturating": saturating}
    assert accepted({"gain": 1.06} | drift) >= 36
    found = told(drift)
    assert found.count(("no-benefit", "speed_below_threshold_or_spread")) >= 38 and len(found) == 40


def test_a_candidate_compared_with_itself_brings_nothing(bench):
    """Every clip is the parent's, so quality is settled; the clock still has to show what it was made for."""
    assert word(bench.judged(Clock())) == NO_BENEFIT


def test_a_cold_first_run_makes_an_unchanged_copy_no_faster(bench):
    """The parent runs first, so what the first run of a day costs is the parent's loss."""
    cold = {"cold": 0.048}
    assert speed_of(Clock(**cold, sentence_sd=0, run_sd=0)).factor == pytest.approx(1.008, abs=0.001)
    assert accepted(cold, 20) <= 1
    assert word(bench.judged(Clock(**cold))) == NO_BENEFIT


def child(*walls, outcome="made"):
    """A child whose calls take so long, one after the other."""
    left = iter(walls)

    def clip(order):
        figures = {"wall_s": next(left), "audio_s": 1.0, "tokens": 9, "held_memory_bytes": None}
        return {"outcome": outcome, "error": "it ended at once", "figures": figures, "pcm_sha256": "x"}

    return SimpleNamespace(process=SimpleNamespace(pid=1), report={"notes": {}}, sentinels=dict, clip=clip)


SPOKEN = [{"sentence": str(k), "text": text, "language": "en", "seed": k} for k, text in enumerate(factories.SENTENCES[:3])]


def test_what_the_first_user_pays_for_compiling_is_told_apart_and_not_timed():
    done = timed.run(child(9.0, 1.0, 1.0, 1.0), {}, SPOKEN, Path())
    assert [c["wall_s"] for c in done["clips"]] == [1.0, 1.0, 1.0]
    assert (done["figures"]["first_s"], done["figures"]["warm_s"], done["figures"]["total_wall_s"]) == (9.0, 1.0, 3.0)


def test_a_timed_pass_sees_the_failure_it_would_profit_from():
    """Nothing is quicker than a clip that ends at once: a pass with one is no measurement."""
    with pytest.raises(ChildFailed, match="a timed clip failed: it ended at once"):
        timed.run(child(1.0, 0.1, 0.1, 0.1, outcome="empty"), {}, SPOKEN, Path())


def test_a_load_that_no_process_list_shows_is_found_by_the_yardstick(bench):
    """Another model on the same GPU takes hardly any processor time."""
    lever = bench.judged(Clock(gain=1.06, load=lambda block, place: 2.0 if place == 2 else 1.0))
    assert word(lever) == INVALID and pace(lever)["contended"][0] == {"2": {contention.SENTINEL: {"slower": 2.0}}}


def parents(block, place, slow=1.15):
    return slow if place in (0, 3) else 1.0


def test_a_contended_parent_lends_its_child_no_speed(bench):
    """A child that is really 0.98 times as fast looks like 1.11; the program beside it is named, and the number is no evidence."""
    assert speed_of(Clock(gain=0.98, load=parents, felt=False)).state == "shown"  # where nobody looks, the lie is believed
    busy = Clock(gain=0.98, load=parents, felt=False, shown=lambda block, place: "browser" if place in (0, 3) else "")
    lever = bench.judged(busy)
    assert word(lever) == INVALID and {name for seen in pace(lever)["contended"] for at in seen.values() for name in at} == {"browser"}


def test_a_contended_block_is_run_again_and_the_child_is_as_slow_as_it_is(bench):
    def load(block, place):
        return parents(block, place) if block == 0 else 1.0

    lever = bench.judged(Clock(gain=0.98, load=load, shown=lambda b, p: "browser" if load(b, p) > 1 else ""))
    assert word(lever) == NO_BENEFIT and (pace(lever)["blocks"], pace(lever)["clean"]) == (4, 3)
    assert pace(lever)["speedup"] == pytest.approx(0.98, abs=0.02)
    assert "a timed block is void (browser); it is run again" in AuditEntry.objects.values_list("text", flat=True)


def test_a_parent_that_nobody_saw_contended_in_one_block_disagrees_with_the_others(db):
    """Blocks that differ are spread, and spread is no gain."""
    found = told({"gain": 0.98, "felt": False, "load": lambda block, place: parents(block, place) if block == 1 else 1.0}, 20)
    assert {reason for _, reason in found} == {"speed_below_threshold_or_spread", "speed:not_established"}


def test_a_mean_against_a_median_is_spread_and_no_gain(db):
    """Most clips are a quarter faster and one in ten takes six times as long: which number to believe is luck."""
    assert accepted({"gain": 1.25, "stalls": 0.1}, 20) <= 1


def test_a_machine_that_is_slower_for_the_parent_only_lends_the_child_no_speed(bench):
    """Too little for a stamp, and no drift, for it comes and goes with the parent: the yardstick must be as quick for both."""
    lever = bench.judged(Clock(gain=0.98, load=parents))
    assert word(lever) == INVALID and pace(lever)["lent"] == pytest.approx(1.15, abs=0.01)


def test_a_machine_that_is_slower_for_the_candidate_hides_no_gain(bench):
    lever = bench.judged(Clock(gain=1.10, load=lambda block, place: 1.15 if place in (1, 2) else 1.0))
    assert word(lever) == INVALID and pace(lever)["lent"] == pytest.approx(1 / 1.15, abs=0.01)


def test_clips_that_always_stall_leave_it_open_by_which_average_it_is_faster(bench):
    """Two of twenty are compiled anew in every process: the spread between runs sees nothing of it."""
    lever = bench.judged(Clock(gain=1.3, stalling=lambda k: k % 10 == 4))
    assert word(lever) == ("inconclusive", ["speed:not_established", "collect_more", "averages_disagree"])


def test_a_call_that_speaks_several_is_timed_whole(db):
    """Each of four sentences is there when all are: their own times would say it is three times as slow, whatever it is."""
    assert speed_of(Clock(gain=1.3, together=4)).factor == pytest.approx(1.3, abs=0.03)
    assert speed_of(Clock(gain=0.9, together=4)).state == "absent"


def test_sooner_done_is_not_sooner_playable(bench):
    """A fifth quicker in all, in one late burst: the buffer a listener needs has grown."""

    def arrivals(arm, wall, audio):
        return ([0.1 * wall, wall], [0.05 * audio, 0.95 * audio]) if arm else ([wall * k / 4 for k in (1, 2, 3, 4)], [audio / 4] * 4)

    parent = factories.tone() | {"streaming": {"interval_s": 0.5}}
    lever = bench.judged(Clock(gain=1.2, arrivals=arrivals), parent=parent, plan={"benefit": "streaming"})
    found = lever.verdict.look.evidence["benefit"]
    assert word(lever) == ("no-benefit", ["streaming:absent"]) and pace(lever)["lower"] > 1.1
    assert found["parent_s"] < 0.1 < found["candidate_s"]


# -- length ------------------------------------------------------------------------------------------------------------


def test_talking_longer_is_no_speed_and_is_named(bench):
    """Time over audio says 1.08 where nobody has waited any less."""
    slow = speed_of(Clock(gain=1.01, talks=1.07))
    assert slow.rtf_speedup > 1.05 and told({"gain": 1.01, "talks": 1.07}, 10) == [("no-benefit", "speed_below_threshold_or_spread")] * 10
    lever = bench.judged(Clock(gain=1.06, talks=1.065), Sound(longer=1.065))
    assert (lever.verdict.verdict, lever.verdict.reasons[:2]) == ("rejected", ["length:beyond_margin", "length:longer"])
    assert pace(lever)["length_ratio"] == pytest.approx(1.065) and pace(lever)["speedup"] == pace(lever)["wall_speedup"]


def test_stopping_early_is_named_however_fast_it_is(bench):
    """Nearly half of the sound is missing. Where nobody looked at lengths, wall time alone would have said 6.7."""
    lever = bench.judged(Clock(gain=6.7, talks=0.57), Sound(longer=0.57))
    assert (lever.verdict.verdict, lever.verdict.reasons[:2]) == ("rejected", ["length:beyond_margin", "length:shorter"])
    assert pace(lever)["wall_speedup"] > 6 and pace(lever)["speedup"] < 4
    assert told({"gain": 1.7, "talks": 0.57}, 10) == [("no-benefit", "speed_below_threshold_or_spread")] * 10  # less said is no speed


# -- sound -------------------------------------------------------------------------------------------------------------


def clip(dnsmos):
    return Row(0.0, dnsmos, -20.0, 2.0, "")


def dnsmos_of(table, replicates=3):
    """(endpoint, interval) of the loss of DNSMOS in a table, as the gate reads it."""
    plan = policy.parse({"replicates": replicates})
    return next(found for found in evidence._endpoints(plan, evidence._differences(table), plan.tail) if found[0].name == "dnsmos")


def study(number, seed):
    """25 sentences with three clips an arm of systems that are equally good; what a seed does to a system has an SD of 0.12."""
    noise, table = np.random.default_rng(number), {}
    for sentence in range(25):
        seeds = [seed(f"draw {number}", str(sentence), k) for k in range(3)]
        table[sentence] = {
            arm: [clip(3.2 + np.random.default_rng([len(arm), s]).normal(0, 0.12) + noise.normal(0, 0.14)) for s in seeds]
            for arm in ("parent", "candidate")
        }
    return table


def test_seed_luck_averages_out_because_every_sentence_has_a_seed_of_its_own():
    """Three seeds for everything would call half of all equal systems different, beyond doubt."""

    def differ(seed):
        found = [dnsmos_of(study(k, seed))[0] for k in range(40)]
        assert all(e.why_open == "below_floor" and e.state != "pass" for e in found)  # and 25 sentences are never enough to pass
        return sum(e.lower > 0 or e.upper < 0 for e in found)

    assert differ(lambda key, sentence, k: seed_of(key, "all", k)) >= 15
    assert differ(seed_of) <= 5


def test_clips_of_one_sentence_are_one_piece_of_evidence():
    """By the clip the loss is beyond doubt, by the sentence it is not; and more clips of the same sentences change nothing."""
    raw = np.random.default_rng(3).normal(0, 1, 24)
    losses = 0.06 + 0.2 * (raw - raw.mean()) / raw.std()
    assert mean_interval(np.repeat(losses, 3)).lower > 0
    few, many = ({k: {"parent": [clip(3.2)] * n, "candidate": [clip(3.2 - d)] * n} for k, d in enumerate(losses)} for n in (3, 30))
    (endpoint, interval), (again, _) = dnsmos_of(few), dnsmos_of(many, 20)
    assert interval.n == 24 and endpoint.lower < 0 < endpoint.upper and not endpoint.significantly_worse
    assert (again.lower, again.upper) == pytest.approx((endpoint.lower, endpoint.upper))


ZEROS = {"cer": 1.0, "dnsmos": 1.0, "level_dbfs": None, "failed": "no_audible_speech"}


def lost(arm, place):
    return arm == "candidate" and place % 8 == 0


@pytest.mark.parametrize(
    ("sound", "name"),
    [(Sound(empty=lost), "empty"), (Sound(change=lambda arm, place: ZEROS if lost(arm, place) else {}), "no_audible_speech")],
    ids=["the end comes first", "zeros"],
)
def test_clips_with_nothing_in_them_are_counted_and_not_averaged_away(bench, sound, name):
    """One in eight ends at once, or is silent; the others are as good as the parent's, and the clock is glad."""
    lever = bench.judged(Clock(gain=1.2), sound, count=64)
    assert lever.verdict.verdict == "rejected" and "catastrophe:beyond_margin" in lever.verdict.reasons
    assert lever.verdict.look.evidence["arms"]["candidate"]["catastrophes"] == {name: 8}


def test_rare_empty_clips_keep_a_candidate_from_being_accepted(bench):
    """Eight of 300: an interval over the clips that were made would hold nothing against it."""
    lever = bench.judged(Clock(gain=1.2), Sound(empty=lambda arm, place: arm == "candidate" and place % 40 == 0), count=300)
    assert lever.verdict.verdict == "rejected" and {"catastrophe:not_established", "final_look"} <= set(lever.verdict.reasons)


def test_clarity_without_content_is_rejected(bench):
    """It says "hello" whatever it is given, and says it beautifully."""
    hello = Sound(change=lambda arm, place: {"cer": 0.9, "dnsmos": 4.2} if arm == "candidate" else {})
    lever = bench.judged(Clock(gain=1.2), hello)
    assert (lever.verdict.verdict, lever.verdict.reasons[0]) == ("rejected", "cer:beyond_margin")


def test_a_recogniser_that_is_too_weak_to_judge_judges_nothing(bench):
    """Where the parent is misheard half of the time, a candidate that is as bad as it gets is no worse."""
    deaf = Sound(change=lambda arm, place: {"cer": 0.485})
    assert word(bench.judged(Clock(gain=1.2), deaf)) == ("inconclusive", ["evidence_incomplete", "asr_too_weak"])
