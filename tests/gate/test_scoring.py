"""Batches of measurements: what counts, what is thrown away, and what people are told."""

import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from gate import advance, measured, scoring
from gate.metrics import dnsmos
from gate.metrics.asr import Transcript
from gate.models import AuditEntry, Battery, Canary, Lever, Measurement, Scorer, ScoringBatch
from synth import queue
from synth.models import Leased, TimedBlock, Worker
from tests import factories
from tests.gate import flow


class Ear:
    """Writes down how long the clip is: the same sound, the same words. `drift` changes them from the nth call on."""

    identity = "ear"

    def __init__(self):
        self.calls, self.drift, self.broken = 0, None, None

    def transcribe(self, samples, sample_rate, language):
        self.calls += 1
        if self.broken is not None and self.calls > self.broken:
            raise RuntimeError("no memory")
        changed = self.drift is not None and self.calls > self.drift
        return Transcript(f"{'drifted ' if changed else ''}{len(samples)} samples")


@pytest.fixture
def ear(monkeypatch, settings):
    made = Ear()
    monkeypatch.setattr("gate.recognisers.identity", lambda name, models: name)
    monkeypatch.setattr("gate.recognisers.load", lambda name, models: made)
    quality = dnsmos.Score(3.0, 3.0, 3.0, 1)
    monkeypatch.setattr(dnsmos, "score", lambda samples, rate: dnsmos.Dnsmos(quality, quality, False, False, 0.0))
    monkeypatch.setattr(dnsmos, "identity", lambda: "dnsmos")
    scoring._fresh.clear()
    return made


@pytest.fixture
def lever(db, tmp_path, ear):
    """A lever whose eight clips wait to be measured."""
    bench = flow.bench(tmp_path)
    made = factories.registered(plan={"listening": {"required": False}})
    flow.work(bench)
    advance.advance_open()
    flow.work(bench)
    bench.close()
    advance.advance_open()
    return Lever.objects.get(pk=made.pk)


def states():
    return sorted(Measurement.objects.values_list("state", flat=True))


def test_a_batch_measures_everything_and_counts_when_the_canaries_are_the_same(lever, ear):
    batch = scoring.run()
    assert (batch.state, batch.clips) == ("sound", 8) and Measurement.usable().count() == 8
    assert Canary.objects.count() == 8 and batch.audio_s > 5
    assert Scorer.objects.get().trouble == "" and {
        v for k, v in Scorer.objects.get().spreads[lever.plan.body["metrics"]].items() if k != "at"
    } == {0.0}
    assert "measured 8 clips" in AuditEntry.objects.latest("pk").text
    assert scoring.run() is None
    advance.advance_open()
    assert Lever.objects.get(pk=lever.pk).state == "settled"


def test_nothing_counts_before_its_batch_is_closed(lever, ear, monkeypatch):
    seen = []
    listen = scoring.listen_to_canaries

    def look(*args):
        seen.append((states().count("done"), Measurement.usable().count(), len(measured.waiting(lever))))
        advance.advance_open()
        assert Lever.objects.get(pk=lever.pk).state == "scoring"
        listen(*args)

    monkeypatch.setattr(scoring, "listen_to_canaries", look)
    scoring.run()
    assert seen == [(0, 0, 8), (8, 0, 8)]


def test_a_canary_that_changes_voids_the_batch_and_everything_is_measured_again(lever, ear):
    ear.drift = 8 + 5 + 8 + 2  # canaries made, five calls for steadiness, eight clips, two canaries read again
    batch = scoring.run()
    assert batch.state == "void" and "is not transcribed as it always was" in batch.error
    assert states() == ["queued"] * 8 and Measurement.objects.exclude(scores={}).count() == 0
    assert batch.error == Scorer.objects.get().trouble
    advance.advance_open()
    assert "is not transcribed as it always was" in Lever.objects.get(pk=lever.pk).problem

    ear.drift = None
    Measurement.objects.update(due_at=timezone.now())
    assert scoring.run().state == "sound" and Measurement.usable().count() == 8


def test_a_recogniser_that_stays_changed_measures_nothing_and_no_clip_pays_for_it(lever, ear):
    scoring.run()
    ScoringBatch.objects.update(state="void")
    Measurement.objects.update(state="queued", attempts=0, due_at=timezone.now(), batch=None)
    ear.drift = 0
    for _ in range(queue.ATTEMPTS + 1):
        scoring._fresh.clear()
        assert scoring.run().clips == 0  # the reading before the batch tells already: nothing is claimed
    scoring._fresh[Battery.objects.get().pk, "en"] = 1e12  # as if they had just been read: only the reading after it tells
    assert scoring.run().clips == 8
    assert states() == ["queued"] * 8 and set(Measurement.objects.values_list("attempts", flat=True)) == {0}
    advance.advance_open()
    lever.refresh_from_db()
    assert lever.state == "scoring" and "is not transcribed as it always was" in lever.problem and "samples" not in lever.problem


def test_a_clip_that_kills_every_scorer_fails_and_takes_no_other_with_it(lever, ear, monkeypatch):
    real = scoring._measure

    def deadly(batch, ears, unit):
        if unit.pk == Measurement.objects.order_by("pk")[3].pk:
            raise KeyboardInterrupt
        real(batch, ears, unit)

    monkeypatch.setattr(scoring, "_measure", deadly)
    now = timezone.now()
    for k in range(queue.ATTEMPTS):
        with pytest.raises(KeyboardInterrupt):
            scoring.run()
        scoring.give_up_lapsed(now + timedelta(minutes=1 + k))
        Measurement.objects.filter(state="queued").update(due_at=now)
    assert states().count("failed") == 1 and scoring.run().state == "sound" and states().count("done") == 7
    advance.advance_open()
    assert Lever.objects.get(pk=lever.pk).verdict.reasons[:2] == ["evidence_incomplete", "clips_not_measured:1"]


def test_what_failed_for_one_lever_is_tried_again_for_the_next(lever, ear):
    Measurement.objects.update(state="failed", attempts=5)
    Lever.objects.filter(pk=lever.pk).update(state="rendering")
    advance._to_scoring(Lever.objects.get(pk=lever.pk))
    assert states() == ["queued"] * 8 and scoring.run().clips == 8


def test_a_canary_whose_file_is_gone_is_retired_and_replaced(lever, ear):
    from synth import clips

    scoring.run()
    lost = Canary.objects.first()
    clips.storage().delete(clips.path(lost.clip.file_sha256))
    Measurement.objects.exclude(clip=lost.clip).update(state="queued", attempts=0, batch=None)
    scoring._fresh.clear()
    assert scoring.run().state == "sound"
    lost.refresh_from_db()
    assert lost.retired_at and AuditEntry.objects.filter(text__contains=f"canary {lost.pk} can't be read").exists()


def test_canaries_are_listed_and_retired_by_hand(lever, ear, capsys):
    from django.core.management import CommandError, call_command

    call_command("canaries")
    assert "There are no canaries yet" in capsys.readouterr().out
    scoring.run()
    first = Canary.objects.first().pk
    call_command("canaries", "--retire", str(first))
    assert Canary.objects.filter(retired_at=None).count() == 7 and f"\n{first:>5} " not in capsys.readouterr().out
    with pytest.raises(CommandError, match="no canary"):
        call_command("canaries", "--retire", str(first))


def test_scores_that_cant_be_stored_are_one_clips_trouble(lever, ear, monkeypatch):
    """A NaN is refused by the database's JSON; no metric should give one."""
    real, bad = scoring.Ears.score, max(Measurement.objects.select_related("clip"), key=lambda m: m.clip.samples).clip_id

    def score(self, clip, sentence):
        found = real(self, clip, sentence)
        return replace(found, dnsmos=float("nan")) if clip.pk == bad else found

    monkeypatch.setattr(scoring.Ears, "score", score)
    batch = scoring.run()
    assert (batch.state, batch.clips) == ("sound", 7) and states().count("done") == 7
    assert "can't be stored" in Measurement.objects.get(clip=bad).error


def test_a_scorer_that_dies_in_a_batch_leaves_nothing_that_counts(lever, ear, monkeypatch):
    taken = []
    real = scoring._measure

    def three(batch, ears, unit):
        if len(taken) == 3:
            raise KeyboardInterrupt
        taken.append(unit)
        real(batch, ears, unit)

    monkeypatch.setattr(scoring, "_measure", three)
    with pytest.raises(KeyboardInterrupt):
        scoring.run()
    assert states().count("done") == 3 and Measurement.usable().count() == 0
    later = timezone.now() + timedelta(minutes=1)
    scoring.give_up_lapsed(later)
    assert ScoringBatch.objects.get().state == "void" and "fell silent" in ScoringBatch.objects.get().error
    assert states() == ["queued"] * 8


def test_a_late_result_of_a_batch_that_was_given_up_is_not_stored(lever, ear, monkeypatch):
    real = scoring._measure

    def slow(batch, ears, unit):
        if states().count("done") == 2:
            scoring.give_up_lapsed(timezone.now() + timedelta(minutes=1))
        real(batch, ears, unit)

    monkeypatch.setattr(scoring, "_measure", slow)
    batch = scoring.run()
    assert batch.state == "void" and Measurement.usable().count() == 0
    assert not Measurement.objects.filter(batch=batch, state="done").exists() and states() == ["queued"] * 8
    assert set(Measurement.objects.values_list("attempts", flat=True)) <= {0, 1}  # only the clip that was being measured paid


def test_a_recogniser_that_breaks_is_not_a_bad_clip(lever, ear):
    ear.broken = 8 + 5 + 3
    batch = scoring.run()
    assert batch.state == "void" and Measurement.usable().count() == 0
    assert {m.error for m in Measurement.objects.exclude(error="")} and states().count("failed") == 0


def test_a_host_with_other_metrics_measures_nothing_and_says_so(lever, ear, monkeypatch):
    monkeypatch.setattr("gate.recognisers.identity", lambda name, models: "another")
    assert scoring.run() is None and states() == ["queued"] * 8
    assert "Clips wait for other metrics than this host has" in Scorer.objects.get().trouble
    advance.advance_open()
    assert "Clips wait for other metrics" in Lever.objects.get(pk=lever.pk).problem


def test_a_metric_that_wanders_is_refused_on_this_host(lever, ear, monkeypatch):
    values = iter([3.0, 3.02] * 100)

    def wandering(samples, rate):
        quality = dnsmos.Score(3.0, 3.0, next(values), 1)
        return dnsmos.Dnsmos(quality, quality, False, False, 0.0)

    monkeypatch.setattr(dnsmos, "score", wandering)
    batch = scoring.run()
    assert batch.clips == 0 and states() == ["queued"] * 8
    assert "dnsmos by 0.02" in Scorer.objects.get().trouble
    assert scoring.run() is None  # and it does not try again and again
    advance.advance_open()
    assert "differ too much on this host" in Lever.objects.get(pk=lever.pk).problem


def test_no_scorer_for_three_minutes_is_told(lever):
    Measurement.objects.update(due_at=timezone.now() - timedelta(minutes=4))
    advance.advance_open()
    assert "no scorer was seen for 3 minutes" in Lever.objects.get(pk=lever.pk).problem


def test_a_timed_block_on_this_host_holds_scoring_back(lever, settings):
    one = Worker.objects.get()
    settings.WORKER_NAME = one.name
    TimedBlock.objects.create(
        first=lever.parent, second=lever.candidate, draw_key="x", number=0, sentences=[], state="leased",
        lease_until=timezone.now() + timedelta(minutes=1), worker=one,
    )  # fmt: skip
    assert scoring.run() is None and states() == ["queued"] * 8


def test_identical_sound_is_measured_once(lever):
    scoring.run()
    clip = Measurement.objects.first().clip
    assert Measurement.objects.filter(clip=clip).count() == 1
    Lever.objects.filter(pk=lever.pk).update(state="rendering")
    advance._to_scoring(Lever.objects.get(pk=lever.pk))
    assert Measurement.objects.count() == 8 and Measurement.usable().count() == 8


@pytest.mark.django_db(transaction=True)
def test_two_scorers_at_once_measure_every_clip_once(tmp_path, ear, monkeypatch):
    bench = flow.bench(tmp_path)
    factories.registered(plan={"listening": {"required": False}})
    flow.work(bench)
    advance.advance_open()
    flow.work(bench)
    bench.close()
    advance.advance_open()
    counted, real = [], scoring._measure

    def count(batch, ears, unit):
        counted.append(unit.pk)
        real(batch, ears, unit)

    monkeypatch.setattr(scoring, "_measure", count)
    errors = []

    def work():
        try:
            while scoring.run() is not None:
                pass
        except Exception as error:  # noqa: BLE001 - told by the test
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(2)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert errors == [] and sorted(counted) == sorted(set(counted)) and Measurement.usable().count() == 8
    assert sum(ScoringBatch.objects.values_list("clips", flat=True)) == 8
    assert set(Measurement.objects.values_list("state", flat=True)) == {Leased.State.DONE}


def test_a_second_recognisers_disagreement_is_shown_and_does_not_decide(db, tmp_path, ear, monkeypatch, signed_in):
    class Other(Ear):
        def transcribe(self, samples, sample_rate, language):
            return Transcript("something else altogether")

    other = Other()
    monkeypatch.setattr("gate.recognisers.load", lambda name, models: other if name.startswith("mlx-audio") else ear)
    bench = flow.bench(tmp_path)
    plan = {"listening": {"required": False}, "second_recogniser": "mlx-audio:whisper-base", "margins": {"cer": 0.02}}
    made = factories.registered(plan=plan)
    for _ in range(2):
        flow.work(bench)
        advance.advance_open()
    bench.close()
    assert Battery.objects.get().second_recogniser == "mlx-audio:whisper-base" and "second:" in Battery.objects.get().identity
    scoring.run()
    assert all(len(c.transcripts) == 2 for c in Canary.objects.all())
    advance.advance_open()
    lever = Lever.objects.get(pk=made.pk)
    facts = lever.verdict.look.evidence
    assert (facts["second"]["clips"], facts["second"]["differ"]) == (8, 8)
    page = signed_in.get(f"/levers/{lever.slug}/").content.decode()
    assert "It wrote something else than the first one on 8 of 8 clips" in page and "second recogniser: something else altogether" in page
    assert "The first one decides" in page


def test_a_bad_recogniser_in_a_plan_is_refused(db):
    from synth.configuration import Refused

    with pytest.raises(Refused, match="names no recogniser: write faster-whisper:whisper-base"):
        factories.registered(plan={"second_recogniser": "whisper"})
