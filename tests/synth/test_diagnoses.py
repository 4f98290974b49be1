"""Closer looks, on a loaded model: batch sizes, cadence, teacher-forced comparison, components."""

import numpy as np
import pytest

from synth import desk, diagnoses
from synth.engine.distributions import Steps, compare, log_softmax, margins, penalised, support
from synth.worker import Bench

SENTENCES = [
    {"sentence": str(k), "text": text, "language": "en", "seed": k + 3}
    for k, text in enumerate(["The ferry leaves.", "Nobody waved.", "It rained all day.", "Rain."])
]


class NoDesk:
    """A host that is never asked: these looks are made on the bench itself."""

    def alive(self):
        pass


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.setattr("synth.worker.IDLE_CHILD_S", 1e9)  # its keeper ends what no unit has used for a while
    made = Bench(NoDesk(), tmp_path, [], tmp_path / "scratch", idle_wait_s=0)
    yield made
    made.close()


def unit(*configurations, sentences=SENTENCES, **asked):
    return {"configurations": list(configurations), "made_of": [None] * len(configurations), "sentences": sentences, "asked": asked}


# -- the arithmetic -------------------------------------------------------------------------------------------------------------


def steps(logits, tokens=None, temperature=1.0, top_k=0, top_p=1.0, suppressed=(), eos=None):
    rows = [
        {
            "logits": np.array(row, np.float32), "token": (tokens or [0] * len(logits))[k], "suppressed": list(suppressed) if k == 0 else [],
            "history": [], "temperature": temperature, "top_k": top_k, "top_p": top_p, "repetition_penalty": 1.0,
        }
        for k, row in enumerate(logits)
    ]  # fmt: skip
    return Steps.of(rows, eos)


def test_distances_are_those_of_the_textbook():
    p, c = np.log([0.5, 0.25, 0.25]), np.log([0.25, 0.5, 0.25])
    (row,) = compare(steps([p], [1], suppressed=[2]), steps([c], [1], suppressed=[2]))
    kl = 2 / 3 * np.log(2) + 1 / 3 * np.log(1 / 2)
    assert row == pytest.approx({"codebook": 0, "n": 1, "kl": kl, "same": 0, "tv": 1 / 3, "dlogp": np.log(2), "inside": 1}, abs=1e-6)
    (same,) = compare(steps([p], suppressed=[2]), steps([p], suppressed=[2]))
    assert (same["kl"], same["tv"], same["dlogp"], same["same"]) == (0, 0, 0, 1)


def test_temperature_changes_the_distance_and_top_k_only_what_can_be_drawn():
    p, c = np.array([2.0, 1.0, 0.0]), np.array([1.0, 2.0, 0.0])
    (warm,), (cold,) = (compare(steps([p], temperature=t), steps([c], temperature=t)) for t in (2.0, 0.5))
    assert 0 < warm["kl"] < cold["kl"] and np.isfinite(cold["kl"])
    (cut,) = compare(steps([p], [0], top_k=1), steps([c], [0], top_k=1))
    assert cut["inside"] == 0 and np.isfinite(cut["kl"])  # token 0 is not the candidate's best


def test_support_penalty_and_margins():
    logits = np.array([3.0, 2.0, 1.0, -np.inf])
    assert support(logits, 1.0, 2, 1.0).tolist() == [True, True, False, False]
    assert support(logits, 1.0, 0, 0.6).tolist() == [True, False, False, False]
    assert support(logits, 1.0, 0, 1.0).tolist() == [True, True, True, False]
    assert support(logits, 0.0, 0, 1.0).tolist() == [True, False, False, False]
    assert np.isfinite(log_softmax(logits, 0.0)[:3]).all()
    assert penalised(np.array([2.0, -2.0, 1.0]), [0, 1, 9], 2.0).tolist() == [1.0, -4.0, 1.0]
    assert np.exp(log_softmax(logits, 0.7)).sum() == pytest.approx(1)
    found = margins(steps([[1.0, 5.0, 3.0]], suppressed=[1], eos=2))
    assert found == {"first": [-2.0], "last": [-2.0]}  # the end of speech is likelier than any content: it stops early


def test_steps_are_kept_and_found_again(tmp_path):
    made = steps([[1.0, 2.0], [0.5, 0.25]], [1, 0], suppressed=[0], eos=1)
    made.save(tmp_path / "steps.npz")
    again = Steps.load(tmp_path / "steps.npz")
    assert again.tokens.tolist() == [1, 0] and again.codebook.tolist() == [0, 1] and again.eos == 1 and again.suppressed == [0]
    assert np.array_equal(again.logits, made.logits) and again.penalised == made.penalised


# -- on a model -----------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_system_is_itself_and_quantised_weights_are_further_the_fewer_their_bits(tiny, bench):
    def apart(bits):
        changed = tiny | {"quantisation": [{"match": "talker", "bits": bits, "group_size": 32}], "compile": ["code-predictor"]}
        return diagnoses.forced(bench, unit(tiny, changed))

    eight, two = apart(8), apart(2)
    assert len(eight["codebooks"]) == 16 and eight["left_out"] == ["compile"] and eight["frames"] > 4
    for row in eight["itself"]:
        assert row["kl"] == pytest.approx(0, abs=1e-9) and row["same"] == row["n"] == row["inside"]
    kl = [sum(r["kl"] for r in found["codebooks"]) / sum(r["n"] for r in found["codebooks"]) for found in (eight, two)]
    assert 0 < kl[0] < kl[1]
    assert len(eight["margins"]["parent"]["first"]) == len(eight["margins"]["candidate"]["first"]) > 0


@pytest.mark.slow
def test_batch_sizes_are_swept_and_one_that_fails_does_not_end_the_others(tiny, bench, monkeypatch):
    run = diagnoses.timed.run

    def crowded(child, configuration, sentences, scratch):
        if configuration["batching"]["size"] == 4:
            raise diagnoses.ChildFailed("the synthesis process ended by SIGKILL")
        return run(child, configuration, sentences, scratch)

    monkeypatch.setattr(diagnoses.timed, "run", crowded)
    rows = diagnoses.sweep(bench, unit(tiny, sizes=[1, 2, 4]))["rows"]
    assert [r["size"] for r in rows] == [1, 2, 4] and rows[2]["error"].endswith("SIGKILL")
    for row in rows[:2]:
        assert row["audio_per_s"] > 0 and row["step_ms"] > 0 and row["latency_s"] <= row["latest_s"] and 0 < row["useful_share"] <= 1
    assert rows[0]["useful_share"] > 0.8 and rows[0]["peak_memory_bytes"] > 0


def test_a_lost_lease_ends_a_sweep(tiny, bench):
    """Another worker may be timing by now: nothing is begun any more."""

    class Heart:
        lost = True

    bench.heart = Heart()
    with pytest.raises(desk.Lost):
        diagnoses.sweep(bench, unit(tiny, tiny, sizes=[1, 2]))
    assert bench.child is None


@pytest.mark.slow
def test_a_cadence_gives_every_streams_chunks_and_how_stable_they_are(tiny, bench):
    long = tiny | {"sampling": {"max_tokens": 16}}
    rows = diagnoses.cadence(bench, unit(long, sentences=SENTENCES[2:3], intervals=[0.4, 1.2]))["rows"]
    assert [r["interval_s"] for r in rows] == [0.4, 1.2]
    chunks = [len(r["streams"][0]["arrivals_s"]) for r in rows]
    assert chunks[0] > chunks[1] >= 1
    beside = rows[0]["beside_whole"][0]
    assert 0.9 < beside["stable_share"] <= 1 and beside["click"] is not None


@pytest.mark.slow
def test_components_are_timed_without_the_cost_of_timing_them(tiny, bench):
    rows = diagnoses.components(bench, unit(tiny))["rows"]
    parts = {p["name"]: p for p in rows[0]["parts"]}
    assert set(parts) == {"talker", "code predictor", "codec"} and parts["code predictor"]["calls"] >= 15
    assert sum(p["seconds"] for p in parts.values()) <= rows[0]["watched_s"] and rows[0]["sync_s"] < 0.01 and rows[0]["plain_s"] > 0
