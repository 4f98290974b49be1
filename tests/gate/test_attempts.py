"""Attempts, lineages and shared draws that could give one change more than one chance, or mix what belongs to different plans."""

import pytest
from django.core.management import CommandError, call_command

from gate import advance, evidence, identity, ledger, lineage, lock, register, standing
from gate.models import AppendOnly, Draw, LedgerEntry, Lever, Look, Measurement, Plan, Use, Verdict
from synth.configuration import Refused
from synth.models import Leased, Preflight, TimedBlock, Worker
from tests import factories
from tests.gate import flow

pytestmark = pytest.mark.usefixtures("known_metrics")
GOOD = {"cer": 0.0, "dnsmos": 3.0, "level_dbfs": -20, "duration_s": 1.0, "failed": ""}
AUTOMATIC = {"listening": {"required": False}, "margins": {"catastrophe": 1.0}}


def again(lever):
    return Lever.objects.select_related("draw").get(pk=lever.pk)


def caps(lever):
    lever = again(lever)
    return evidence.caps(lever, lock.plan_of(lever), identity.identical(lever))


def worked(mac):
    flow.work(mac)
    advance.advance_open()


def measured():
    Measurement.objects.update(state=Leased.State.DONE, scores=GOOD)
    advance.advance_open()


def detuned(by):
    return {"sampling": {"extra": {"detune": by}}}


def test_it_is_the_order_of_locking_that_counts_attempts(mac):
    texts = factories.SENTENCES
    late = factories.registered(lever="late", change=detuned(1.01), texts=texts, plan={"sentences": 4})
    Preflight.objects.filter(configuration=late.candidate).update(state="leased")  # its trial hangs
    early = factories.registered(lever="early", change=detuned(1.02), texts=texts, plan={"sentences": 4})
    worked(mac)
    assert (again(late).plan, again(early).plan.body["attempt"]) == (None, 1)
    Preflight.objects.filter(configuration=late.candidate).update(state="queued")
    worked(mac)
    assert again(late).plan.body["attempt"] == 2 and "unreserved_attempt" in caps(late) and "unreserved_attempt" not in caps(early)


def test_a_campaigns_sentences_are_spent_for_all_of_its_levers_at_once(mac):
    texts = factories.SENTENCES
    specs = [factories.spec(name, change=detuned(by), texts=texts, plan={"sentences": 4}) for name, by in (("a", 1.01), ("b", 1.02))]
    a, b = register.register(specs)
    Preflight.objects.filter(configuration=b.candidate).update(state="leased")
    worked(mac)
    assert (again(b).plan, Use.objects.filter(lever=b).count()) == (None, 4)
    with pytest.raises(Refused, match="4 of 8 are left"):
        factories.registered(lever="c", change=detuned(1.03), texts=texts, plan={"sentences": 5})


def test_two_levers_of_a_campaign_that_are_one_are_refused(db):
    with pytest.raises(Refused, match="two and one change the same thing"):
        register.register([factories.spec("one"), factories.spec("two")])


def test_levers_of_a_campaign_with_other_replicates_keep_to_their_own(mac):
    plan = {"listening": {"required": False}}
    a, b = register.register(
        [factories.spec("a", plan=plan), factories.spec("b", change={"voice": {"speed": 1.1}}, plan=plan | {"replicates": 3})]
    )
    worked(mac)
    worked(mac)
    measured()
    facts = Look.objects.get(plan__lever=a).evidence
    assert (facts["missing"], facts["arms"]["parent"]["clips"]) == ([], 4)
    assert Look.objects.get(plan__lever=b).evidence["arms"]["parent"]["clips"] == 12


def test_blocks_of_other_lengths_are_not_shared(mac):
    same = {"runtime": {"cache_limit_mb": 9}, "expect_bit_exact": True}
    a, b = register.register(
        [
            factories.spec("a", change=same, plan={"timing": {"blocks": 2, "sentences": 2}}),
            factories.spec(
                "b", change={"runtime": {"cache_limit_mb": 8}, "expect_bit_exact": True}, plan={"timing": {"blocks": 3, "sentences": 4}}
            ),
        ]
    )
    worked(mac)
    worked(mac)
    found = {(block.second_id, len(block.sentences)) for block in TimedBlock.objects.all()}
    assert found == {(a.candidate_id, 2), (b.candidate_id, 4)}


def test_a_revert_makes_nobody_depend_on_it_and_is_judged(mac):
    there = factories.registered(lever="there", change=detuned(1.01), plan=AUTOMATIC)
    worked(mac)
    worked(mac)
    measured()
    before = caps(there)
    exact = register.register(
        [factories.spec("exact", parent="there") | {"change": None, "candidate": factories.tone()} | {"plan": factories.spec()["plan"]}]
    )[0]
    assert exact.candidate_id == there.parent_id
    worked(mac)
    assert caps(there) == before and lineage.makers(there.parent) == [] and lineage.anchor(again(exact)) is None
    worked(mac)
    measured()
    assert again(exact).verdict is not None


def test_a_parent_that_falls_while_raters_listen_weakens_the_verdict(mac):
    parent = factories.registered(lever="below", change=detuned(1.01), plan=AUTOMATIC)
    worked(mac)
    worked(mac)
    child = factories.registered(lever="above", parent="below", change=detuned(1.03), plan={"margins": {"catastrophe": 1.0}})
    worked(mac)
    worked(mac)
    measured()
    child = again(child)
    assert child.state == "listening", child.verdict.reasons
    case, facts = evidence.human(child, lock.plan_of(child), 0, True)
    assert "parent_not_accepted" in case.caps and facts["caps"] == list(case.caps)
    assert again(parent).verdict is not None


def test_an_amendment_while_the_evidence_is_read_is_not_passed_over(mac, monkeypatch, tmp_path):
    lever = factories.registered(plan={"margins": {"catastrophe": 1.0}})
    worked(mac)
    worked(mac)
    file = tmp_path / "plan.yaml"
    file.write_text("margins: {preference: 0.9}")
    from listening import pairs

    real, done = pairs.prepared, []

    def meanwhile(*args, **kwargs):
        if not done:
            done.append(call_command("amend", lever.slug, str(file), "--note", "easier"))
        return real(*args, **kwargs)

    monkeypatch.setattr("listening.pairs.prepared", meanwhile)
    measured()
    look = Look.objects.get()
    assert look.plan.number == 2 and "plan_amended" in look.evidence["caps"]
    assert again(lever).state == "listening"


def test_what_is_identical_and_was_not_declared_is_nothing_to_accept(mac):
    lever = factories.registered(change={"runtime": {"cache_limit_mb": 512}}, plan=AUTOMATIC)
    worked(mac)
    worked(mac)
    measured()
    assert again(lever).verdict.reasons == ["evidence_incomplete", "identical_undeclared"]


def test_a_verdict_that_fell_is_told_to_ci(mac, capsys):
    lever = factories.registered(change={"runtime": {"cache_limit_mb": 512}, "expect_bit_exact": True})
    worked(mac)
    worked(mac)
    assert again(lever).verdict.verdict == "provisional" and standing.why_not(again(lever)) == []
    with pytest.raises(SystemExit) as left:
        call_command("verdict", lever.slug, "--allow-provisional")
    assert left.value.code == 0
    flight = Preflight.objects.get(configuration=lever.candidate)
    flight.report["environment"] = {"mlx": "99"}
    flight.save()
    with pytest.raises(SystemExit) as left:
        call_command("verdict", lever.slug, "--allow-provisional")
    assert left.value.code == 2 and "does not stand any more (expired)" in capsys.readouterr().out


def test_a_machine_that_changed_is_noticed_when_it_says_hello(mac, monkeypatch):
    monkeypatch.setattr("tests.tone.Tone.environment", {"mlx": "1.0"}, raising=False)
    lever = factories.registered(change={"runtime": {"cache_limit_mb": 512}, "expect_bit_exact": True})
    worked(mac)
    lever = again(lever)
    lever.plan.body["environment"]["mlx"] = "1.0"
    Worker.objects.update(environment={"mlx": "1.0"})
    plan = Plan.objects.get()
    monkeypatch.setattr("gate.models.Lever.plan", property(lambda self: plan))
    plan.body["environment"] = {"mlx": "1.0"}
    Preflight.objects.update(report={"environment": {"mlx": "1.0"}})
    Verdict(lever=lever, plan=plan, verdict="accepted", evidence="heard", reasons=[], code_version="x").save()
    assert standing.why_not(lever) == []
    Worker.objects.update(environment={"mlx": "2.0"})
    assert standing.why_not(lever) == ["expired"]


def test_the_ledger_misses_what_was_deleted_or_drawn_otherwise(mac):
    from django.db import connection

    lever = factories.registered(change={"runtime": {"cache_limit_mb": 512}, "expect_bit_exact": True})
    worked(mac)
    worked(mac)
    assert ledger.verify() == [] and LedgerEntry.objects.filter(kind="verdict").exists()
    for write in (
        lambda: Draw.objects.update(order=[]),
        lambda: Plan.objects.bulk_create([], update_conflicts=True, update_fields=["body"]),
    ):
        with pytest.raises(AppendOnly.WrittenOnce):
            write()

    def told(*statements):
        from django.db import transaction

        with transaction.atomic(), connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            found = " ".join(ledger.verify())
            transaction.set_rollback(True)
        return found

    assert "speaks of a verdict of louder that is not there" in told("DELETE FROM gate_verdict")
    assert "The ledger is empty, but 1 plans were locked." in told("DELETE FROM gate_ledgerentry")
    assert "The sentences drawn for louder are not those" in told("UPDATE gate_draw SET \"order\" = '[]'")
    assert again(lever).verdict is not None


def test_a_plan_without_looks_far_enough_apart_or_a_tiny_level_can_be_computed(db):
    from gate.statistics import looks

    assert len(looks.boundaries([0.05, 1.0], 0.005)) == 2
    with pytest.raises(CommandError):
        call_command("plan", "no-such-file.yaml")
