"""Levers through the flow with an engine of tones in a real child; nothing is inserted."""

import pytest
from django.utils import timezone

from gate import advance, evidence, export, hearing, identity, lineage, lock, measured, register
from gate.models import AppendOnly, AuditEntry, Draw, Lever, Look, Measurement, Plan, Use
from synth import queue
from synth.canonical import canonical
from synth.models import Leased, Preflight, Render, RenderGroup, TimedBlock
from tests import factories
from tests.gate import flow

IDENTICAL = {"runtime": {"cache_limit_mb": 512}, "expect_bit_exact": True}

pytestmark = pytest.mark.usefixtures("known_metrics")


def settled(lever):
    return Lever.objects.get(pk=lever.pk)


def test_an_identical_change_is_settled_by_hash(mac):
    lever = factories.registered(lever="same", change=IDENTICAL)
    flow.work(mac)
    advance.advance_open()
    flow.work(mac)
    advance.advance_open()
    lever = settled(lever)
    assert (lever.state, lever.verdict.verdict, lever.verdict.evidence) == ("settled", "provisional", "bit-identical")
    assert set(lever.verdict.reasons) == {"floor_lowered", "speed_unmeasured"}
    assert Measurement.objects.count() == 0
    found = identity.identical(lever)
    assert (found.clips, found.same, found.repeated, found.repeated_same, found.seeds_differ) == (4, 4, 4, 4, True)


def test_a_parent_that_is_not_deterministic_settles_nothing_by_hash(mac):
    lever = factories.registered(lever="same", parent=factories.tone(noise=True), change=IDENTICAL)
    flow.work(mac)
    advance.advance_open()
    flow.work(mac)
    assert identity.identical(settled(lever)).settled is False


def test_a_change_that_claims_identity_and_is_not_goes_through_the_whole_gate(mac):
    lever = factories.registered(lever="liar", change={"sampling": {"extra": {"detune": 1.01}}, "expect_bit_exact": True})
    flow.work(mac)
    advance.advance_open()
    flow.work(mac)
    advance.advance_open()
    assert settled(lever).state == "scoring"
    assert Measurement.objects.count() == 8


def test_a_timed_block_gives_a_speedup(mac):
    slow = factories.tone(slow_s=0.12)
    lever = factories.registered(
        lever="faster", parent=slow, change={"sampling": {"extra": {"slow_s": 0.02}}, "expect_bit_exact": True},
        plan={"benefit": "speed", "timing": {"blocks": 2, "sentences": 2}},
    )  # fmt: skip
    flow.work(mac)
    advance.advance_open()
    flow.work(mac)
    advance.advance_open()
    assert settled(lever).state == "timing"
    flow.work(mac, "block")
    TimedBlock.objects.update(contended={})  # whatever else ran on this machine is not this test's matter
    advance.advance_open()
    lever = settled(lever)
    assert (lever.verdict.verdict, lever.verdict.evidence) == ("provisional", "bit-identical")
    pace = Look.objects.get(plan__lever=lever).evidence["speed"]
    assert pace["speedup"] > 2 and pace["runs"] == 8 and pace["lower"] > 1
    assert [p.place for p in TimedBlock.objects.first().passes.order_by("place")] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("megabytes", "expected"), [(90, ("provisional", "bit-identical")), (97, ("no-benefit", "")), (110, ("no-benefit", ""))]
)
def test_timed_blocks_show_less_memory(mac, signed_in, megabytes, expected):
    change = {"sampling": {"extra": {"memory_mb": megabytes, "slow_s": 0.1}}, "expect_bit_exact": True}
    parent = factories.tone(slow_s=0.1)
    lever = factories.registered(
        lever="leaner", parent=parent, change=change, plan={"benefit": "memory", "timing": {"blocks": 2, "sentences": 2}}
    )
    for _ in range(2):
        flow.work(mac)
        advance.advance_open()
    flow.work(mac, "block")
    TimedBlock.objects.update(contended={})
    advance.advance_open()
    lever = settled(lever)
    assert (lever.verdict.verdict, lever.verdict.evidence) == expected
    facts = Look.objects.get(plan__lever=lever).evidence
    assert facts["benefit"]["ratio"] == pytest.approx(megabytes / 100) and facts["gain"] == ("shown" if megabytes == 90 else "absent")
    assert "peak memory is" in signed_in.get("/levers/leaner/").content.decode()


def test_contended_blocks_are_void_and_run_again_three_times(mac):
    lever = factories.registered(lever="busy", change=IDENTICAL, plan={"benefit": "speed", "timing": {"blocks": 2, "sentences": 2}})
    for _ in range(2):
        flow.work(mac)
        advance.advance_open()
    for _ in range(6):
        flow.work(mac, "block")
        TimedBlock.objects.update(contended={"0": {"browser": {"samples": 9, "max_percent": 90}}})
        advance.advance_open()
    lever = settled(lever)
    assert (lever.verdict.verdict, lever.verdict.reasons[0]) == ("inconclusive", "speed_invalid")
    assert 2 < TimedBlock.objects.count() <= 4
    assert "void (browser)" in " ".join(AuditEntry.objects.values_list("text", flat=True))


def locked(mac, **kwargs):
    lever = factories.registered(**kwargs)
    flow.work(mac, "preflight")
    advance.advance_open()
    return settled(lever)


def test_the_lock_writes_plan_draw_uses_and_renders_together(mac):
    lever = locked(mac)
    assert (lever.state, lever.plan.body["device_class"], lever.plan.body["metrics"]) == ("rendering", "test", "test-metrics")
    assert Use.objects.count() == 4 and RenderGroup.objects.count() == 8
    seeds = {(r.sentence_id, r.seed) for r in Render.objects.all()}
    assert len(seeds) == 4 and len({s for _, s in seeds}) == 4
    import hashlib

    assert lever.plan.digest == hashlib.sha256(canonical(lever.plan.body).encode()).hexdigest()


def test_advancing_twice_changes_nothing(mac):
    lever = locked(mac)
    before = [m.objects.count() for m in (Plan, Use, Draw, Render, AuditEntry)]
    for _ in range(3):
        advance.advance(lever.pk)
    assert [m.objects.count() for m in (Plan, Use, Draw, Render, AuditEntry)] == before


@pytest.mark.django_db(transaction=True)
def test_two_processes_advancing_at_once_lock_one_plan(tmp_path):
    from tests.listening.test_ballot import at_once

    mac = flow.bench(tmp_path)
    lever = factories.registered()
    flow.work(mac, "preflight")
    mac.close()
    results = at_once([lambda: advance.advance(lever.pk)] * 3)
    assert results == [None] * 3
    assert (Plan.objects.count(), Use.objects.count(), RenderGroup.objects.count()) == (1, 4, 8)


def test_what_is_locked_can_not_be_changed_or_deleted(mac):
    plan = locked(mac).plan
    plan.body["tail"] = 0.4
    for act in (
        plan.save,
        plan.delete,
        Plan.objects.all().delete,
        lambda: Plan.objects.update(body={}),
        Use.objects.all().delete,
        Use.objects.first().delete,
    ):
        with pytest.raises(AppendOnly.WrittenOnce):
            act()
    assert Plan.objects.get().body["tail"] == 0.025


def test_levers_of_a_campaign_share_one_draw_and_the_parents_clips(mac):
    register.register([factories.spec("one"), factories.spec("two", change={"voice": {"speed": 1.1}})])
    flow.work(mac, "preflight")
    advance.advance_open()
    assert Draw.objects.count() == 1 and Render.objects.count() == 12


def test_a_lost_clip_makes_the_evidence_incomplete(mac):
    lever = locked(mac)
    flow.work(mac, "render")
    group = RenderGroup.objects.first()
    RenderGroup.objects.filter(pk=group.pk).update(state="leased", attempts=5, lease_until=timezone.now() - timezone.timedelta(minutes=1))
    group.renders.update(outcome="", clip=None)
    queue.give_up_lapsed(RenderGroup, timezone.now())
    advance.advance_open()
    Measurement.objects.update(
        state=Leased.State.DONE, scores={"cer": 0.0, "dnsmos": 3.0, "level_dbfs": -20, "duration_s": 1.0, "failed": ""}
    )
    advance.advance_open()
    assert (settled(lever).verdict.verdict, settled(lever).verdict.reasons) == ("inconclusive", ["evidence_incomplete", "clips_lost:1"])


def test_arms_that_differ_by_one_sentence_are_no_evidence(mac):
    lever = locked(mac)
    flow.work(mac, "render")
    Render.objects.filter(configuration=lever.candidate).first().delete()
    advance.advance_open()
    Measurement.objects.update(state=Leased.State.DONE, scores=SCORES)
    advance.advance_open()
    assert settled(lever).verdict.reasons == ["evidence_incomplete", "clips_lost:1"]


def test_a_plan_is_amended_by_a_new_dated_one_until_a_look_has_read_anything(mac, tmp_path, capsys):
    from django.core.management import CommandError, call_command

    from gate.models import LedgerEntry

    lever = locked(mac)
    file = tmp_path / "amendment.yaml"

    def amend(text, note="the panel is smaller"):
        file.write_text(text)
        call_command("amend", lever.slug, str(file), "--note", note)

    for text, told in (
        ("margins: {cer: 0}", "plan.margins.cer is 0"),
        ("replicates: 3", "was fixed when the sentences were drawn"),
        ("purpose: tuning", "register another lever"),
        ("closes_after_days: 60", "changes nothing"),
        ("colour: red", "not a known key"),
        ("panel: {votes: 900}", "can't reach plan.panel"),
    ):
        with pytest.raises(CommandError, match=told):
            amend(text)
    with pytest.raises(CommandError, match="with a note that says why"):
        amend("closes_after_days: 90", " ")
    first = settled(lever).plan
    amend("closes_after_days: 90")
    second = settled(lever).plan
    assert (second.number, second.body["amends"], second.body["amended"]) == (2, first.digest, False)
    assert second.body["closes_at"] > first.body["closes_at"] and Plan.objects.get(pk=first.pk).body == first.body
    amend("margins: {cer: 0.01}")
    assert "plan_amended" in evidence.caps(lever, lock.plan_of(lever), identity.identical(lever))
    assert LedgerEntry.objects.filter(kind="plan").count() == 3 and "Plan 3 of louder is locked" in capsys.readouterr().out
    flow.work(mac, "render")
    advance.advance_open()
    Measurement.objects.update(state=Leased.State.DONE, scores=SCORES)
    advance.advance_open()
    with pytest.raises(CommandError, match="can't be amended any more"):
        amend("closes_after_days: 120")


def test_a_scorer_that_is_down_judges_nothing_and_says_so(mac):
    lever = locked(mac)
    flow.work(mac, "render")
    advance.advance_open()
    unit = queue.claim(Measurement.objects.order_by("pk"), timezone.now())
    queue.fail(Measurement, unit.lease, timezone.now(), "the scorer failed: no model")
    advance.advance_open()
    lever = settled(lever)
    assert lever.verdict is None and lever.problem == "Measuring is held up: the scorer failed: no model"


def test_what_is_undecided_on_the_closing_date_ends_there(mac, monkeypatch):
    lever = locked(mac)
    monkeypatch.setattr(advance.timezone, "now", lambda: timezone.datetime(2099, 1, 1, tzinfo=timezone.get_fixed_timezone(0)))
    advance.advance(lever.pk)
    assert settled(lever).verdict.reasons == ["evidence_incomplete", "closed"]


def test_a_candidate_that_is_its_parent_from_another_folder_has_no_effect(mac):
    lever = factories.registered(change={"model": {"path": "elsewhere"}})
    flow.work(mac, "preflight")
    advance.advance_open()
    assert settled(lever).state == "checking" and "no_effect" in settled(lever).problem


def test_a_preflight_that_failed_is_told_and_can_be_asked_again(mac, signed_in):
    lever = factories.registered(parent=factories.tone() | {"model": {"id": "missing/model"}})
    flow.work(mac, "preflight")
    advance.advance_open()
    assert "missing/model can't be loaded" in settled(lever).problem
    signed_in.post(f"/levers/{lever.slug}/check-again")
    assert settled(lever).problem == "" and Preflight.objects.filter(state="queued").count() == 2


def test_nothing_of_the_flow_made_a_verdict_by_hand():
    """The flow's tests may read verdicts; they must never write one."""
    from pathlib import Path

    made = "Verdict.objects." + "create"
    assert [f.name for f in Path(__file__).parent.parent.rglob("*.py") if made in f.read_text()] == []


def test_missing_speech_parts_are_told_and_not_swallowed(mac, monkeypatch):
    def missing(*recognisers):
        raise ModuleNotFoundError("No module named 'speechmos'", name="speechmos")

    monkeypatch.setattr("gate.metrics.battery.identity", missing)
    lever = locked(mac)
    assert lever.state == "checking" and "speechmos is not installed on this host" in lever.problem


def test_a_further_attempt_and_a_change_on_a_change_are_capped(mac):
    one = locked(mac, lever="one")
    two = locked(mac, lever="two", change={"sampling": {"extra": {"detune": 1.02}}}, plan={"purpose": "tuning"})
    stacked = locked(mac, lever="stacked", parent="one", change={"voice": {"speed": 1.1}})
    assert [x.plan.body["attempt"] for x in (one, two, stacked)] == [1, 2, 1]
    found = [evidence.caps(x, lock.plan_of(x), identity.identical(x)) for x in (one, two, stacked)]
    assert "unreserved_attempt" not in found[0] and "unreserved_attempt" in found[1]
    assert "parent_not_accepted" in found[2] and stacked.plan.body["anchor"] == one.parent.digest
    claims = locked(mac, lever="claims", parent="one", change={"runtime": {"cache_limit_mb": 9}, "expect_bit_exact": True})
    assert "unanchored" in evidence.caps(claims, lock.plan_of(claims), identity.identical(claims))


def test_a_change_on_a_change_is_measured_against_the_anchor_as_well(mac, signed_in):
    one = factories.registered(lever="one", plan={"listening": {"required": False}})
    flow.work(mac)
    advance.advance_open()
    flow.work(mac)
    two = factories.registered(lever="two", parent="one", change={"voice": {"speed": 1.1}}, plan={"listening": {"required": False}})
    flow.work(mac)
    advance.advance_open()
    two = settled(two)
    assert two.plan.body["anchor"] == one.parent.digest and RenderGroup.objects.filter(draw_key=two.draw.key).count() == 12
    flow.work(mac)
    advance.advance_open()
    assert (
        Measurement.objects.filter(clip__in=Render.objects.filter(draw_key=two.draw.key).values("clip")).values("clip").distinct().count()
        > 4
    )
    Measurement.objects.update(state=Leased.State.DONE, scores=SCORES)
    advance.advance_open()
    two = settled(two)
    names = [e["name"] for e in Look.objects.get(plan__lever=two).evidence["endpoints"]]
    assert names == [prefix + n for prefix in ("", "anchor_") for n in ("cer", "dnsmos", "length", "level", "catastrophe")]
    capped = evidence.caps(two, lock.plan_of(two), identity.identical(two))
    assert "unanchored" not in capped and "parent_not_accepted" in capped
    page = signed_in.get("/levers/two/").content.decode()
    assert "Character error rate against the anchor" in page
    assert {row["arm"] for row in export.clip_rows(two)} == {"parent", "candidate", "anchor"}


def test_a_heard_ancestor_is_the_anchor_and_the_parent_itself_needs_none(mac):
    from gate.models import Verdict

    one = locked(mac, lever="one")
    two = locked(mac, lever="two", parent="one", change={"voice": {"speed": 1.1}})
    assert lineage.anchor(one) is None and lineage.anchor(two) == one.parent
    Verdict(lever=one, plan=one.plan, verdict="accepted", evidence="heard", reasons=[], code_version="x").save()
    assert lineage.anchor(two) is None
    three = locked(mac, lever="three", parent="two", change={"runtime": {"cache_limit_mb": 9}}, plan={"sentences": None})
    assert lineage.anchor(three) == one.candidate


SCORES = {"cer": 0.0, "dnsmos": 3.0, "level_dbfs": -20, "duration_s": 1.0, "failed": ""}


def test_a_loose_tail_or_few_blocks_cap_an_identical_change_that_promises_speed(mac):
    plan = {"benefit": "speed", "tail": 0.2, "timing": {"blocks": 2, "sentences": 2}}
    lever = locked(mac, lever="same", change=IDENTICAL, plan=plan)
    flow.work(mac)
    assert set(evidence.caps(lever, lock.plan_of(lever), identity.identical(lever))) == {"floor_lowered", "tail_loosened", "timing_lowered"}


def test_two_machines_of_different_kinds_can_be_brought_together(mac, tmp_path, signed_in):
    lever = factories.registered()
    mac.run("preflight")
    other = flow.bench(tmp_path / "other", "other", "another kind")
    other.run("preflight")
    advance.advance_open()
    assert "The parent was tried on test, the candidate on another kind" in settled(lever).problem
    signed_in.post(f"/levers/{lever.slug}/check-again")
    assert mac.run("preflight") is False
    while other.run("preflight"):
        pass
    other.close()
    advance.advance_open()
    assert settled(lever).state == "rendering"


def test_an_identical_change_nobody_declared_asks_no_listener(mac):
    lever = locked(mac, change={"runtime": {"cache_limit_mb": 512}})
    flow.work(mac, "render")
    advance.advance_open()
    assert hearing.open_listening(settled(lever), lock.plan_of(lever), {"look": 1, "speed": {}, "endpoints": [], "caps": []}) is True
    assert settled(lever).verdict.reasons == ["identical_undeclared"] and settled(lever).study is None


def test_a_long_lever_can_be_asked_for_its_measurements(mac):
    lever = locked(mac)
    flow.work(mac, "render")
    advance.advance_open()
    assert len(measured.waiting(settled(lever))) == 8


def test_tend_survives_a_database_that_went_away(mac, monkeypatch):
    from django.core.management import call_command
    from django.db import OperationalError

    def gone():
        raise OperationalError("the connection is closed")

    closed = []
    monkeypatch.setattr(advance, "advance_open", gone)
    monkeypatch.setattr("gate.management.commands.tend.connections.close_all", lambda: closed.append(1))
    call_command("tend", "--once")
    assert closed == [1]
