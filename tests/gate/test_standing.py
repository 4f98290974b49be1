"""Verdicts that stand on others: judged again, stale, expired; and the pages that show how levers hang together."""

import pytest

from gate import advance, ladder, standing
from gate.models import Lever, Verdict
from synth.models import Preflight
from tests import factories
from tests.gate import flow

SAME = {"runtime": {"cache_limit_mb": 512}, "expect_bit_exact": True}

pytestmark = pytest.mark.usefixtures("known_metrics")


@pytest.fixture
def settle(db, tmp_path, monkeypatch):
    """Registers a lever that is bit for bit its parent and works it to its verdict; no cap but a lowered floor."""
    monkeypatch.setattr("gate.policy.caps", lambda plan, site: [])
    bench = flow.bench(tmp_path)

    def settle(**spec):
        made = factories.registered(**spec)
        for _ in range(2):
            flow.work(bench)
            advance.advance_open()
        return Lever.objects.get(pk=made.pk)

    yield settle
    bench.close()


def word(lever):
    return (lever.verdict.verdict, lever.verdict.reasons)


def test_a_child_is_judged_again_when_its_parent_is_accepted(settle, monkeypatch):
    first = settle(lever="one", change=SAME)
    assert word(first) == ("accepted", ["evidence:bit-identical"])
    Verdict(lever=first, plan=first.plan, verdict="rejected", reasons=["cer:beyond_margin"], code_version="x").save()
    second = settle(lever="two", parent="one", change={"runtime": {"cache_limit_mb": 256}, "expect_bit_exact": True})
    assert word(second) == ("provisional", ["parent_not_accepted"]) and standing.why_not(second) == ["stale-parent"]
    Verdict(lever=first, plan=first.plan, verdict="accepted", reasons=["evidence:bit-identical"], code_version="x").save()
    standing.judge_children_again(first)
    assert word(second) == ("accepted", ["evidence:bit-identical"]) and second.verdicts.count() == 2 and standing.why_not(second) == []
    standing.judge_children_again(first)
    assert second.verdicts.count() == 2
    Verdict(lever=first, plan=first.plan, verdict="rejected", reasons=["cer:beyond_margin"], code_version="x").save()
    standing.judge_children_again(first)
    assert word(second) == ("provisional", ["parent_not_accepted"])


def test_another_engine_makes_a_verdict_expire_visibly(settle, signed_in):
    lever = settle(lever="one", change=SAME)
    assert standing.why_not(lever) == []
    flight = Preflight.objects.get(configuration=lever.candidate)
    flight.report["environment"] = flight.report["environment"] | {"mlx": "99.0"}
    lever.plan.body["environment"]["mlx"] = "1.0"
    flight.save()
    assert standing.why_not(lever) == ["expired"]
    assert "has changed since it was measured" in signed_in.get("/levers/one/").content.decode()


def test_the_ladder_shows_what_grew_from_what(settle, signed_in):
    settle(lever="one", change=SAME)
    settle(lever="two", parent="one", change={"runtime": {"cache_limit_mb": 256}, "expect_bit_exact": True})
    settle(lever="side", change={"voice": {"speed": 1.2}}, plan={"listening": {"required": False}})
    (rungs,) = ladder.ladders()
    assert [(r.depth, r.lever.slug if r.lever else None) for r in rungs] == [(0, None), (1, "one"), (2, "two"), (1, "side")]
    page = signed_in.get("/ledger/").content.decode()
    assert "depth-2" in page and page.count("plan locked") == 3


def test_a_variant_is_linked_before_the_lock_and_not_after(db, signed_in):
    one = factories.registered(lever="one")
    two = factories.registered(lever="two", change={"voice": {"speed": 1.1}})
    assert signed_in.post("/levers/two/variant", {"of": "one"}).status_code == 302
    two.refresh_from_db()
    assert two.variant_of == one
    assert signed_in.post("/levers/one/variant", {"of": "one"}).status_code == 409
    assert signed_in.post("/levers/two/variant", {"of": "nobody"}).status_code == 404
    from gate.models import Plan

    Plan.objects.create(lever=two, body={}, digest="x")
    assert signed_in.post("/levers/two/variant", {"of": "one"}).status_code == 409
    assert "4 of the 4 sentences" in signed_in.get("/levers/one/").content.decode()
