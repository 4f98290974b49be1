"""Benefits that are read from timed blocks, and the speed-up over the root."""

import pytest
from django.test import Client

from gate import advance, cumulative, ladder
from gate.management.commands.tend import Command as Tend
from gate.models import Lever, Look, Token
from synth.models import TimedBlock
from tests import factories
from tests.gate import flow

pytestmark = pytest.mark.usefixtures("known_metrics")
BUSY = {"0": {"browser": {"samples": 9, "max_percent": 90}}}


def through_its_blocks(mac, **kwargs):
    """A lever that is settled by hash, so that only its blocks matter."""
    lever = factories.registered(**kwargs)
    for _ in range(2):
        flow.work(mac)
        advance.advance_open()
    blocks(mac)
    advance.advance_open()
    return Lever.objects.get(pk=lever.pk)


def blocks(mac):
    flow.work(mac, "block")
    TimedBlock.objects.update(contended={})  # whatever else ran on this machine is not these tests' matter


def streamed(**how):
    return factories.tone(**how) | {"streaming": {"interval_s": 0.5}}


TWO = {"blocks": 2, "sentences": 2}


@pytest.mark.parametrize(("chunks", "verdict", "gain"), [(8, "provisional", "shown"), (2, "no-benefit", "absent")])
def test_a_sooner_first_sound_is_shown_by_timed_blocks(mac, signed_in, chunks, verdict, gain):
    parent = streamed(chunks=2, chunk_s=0.15)
    change = {"sampling": {"extra": {"chunks": chunks, "chunk_s": 0.304 / chunks}}, "expect_bit_exact": True}
    lever = through_its_blocks(mac, parent=parent, change=change, plan={"benefit": "first_audio", "timing": TWO})
    facts = Look.objects.get().evidence
    assert (lever.verdict.verdict, facts["gain"], facts["benefit"]["runs"]) == (verdict, gain, 8)
    if gain == "shown":
        assert facts["benefit"]["ratio"] == pytest.approx(0.25, rel=0.25)
        assert "time to its first audible sound is" in signed_in.get(f"/levers/{lever.slug}/").content.decode()
    else:
        assert lever.verdict.reasons[0] == "first_audio:absent"


@pytest.mark.parametrize(("chunk_s", "verdict"), [(0.02, "provisional"), (0.2, "no-benefit")])
def test_a_stream_that_needs_less_buffered_is_shown_by_timed_blocks(mac, signed_in, chunk_s, verdict):
    parent = streamed(chunks=4, chunk_s=0.2)  # each piece takes longer than it lasts
    change = {"sampling": {"extra": {"chunks": 4, "chunk_s": chunk_s}}, "expect_bit_exact": True, "note": "sooner"}
    change["voice"] = {"speed": 1.01}  # the tone does not care
    texts = ["Oh no.", "Not yet.", "Why not?", "So what?"]
    lever = through_its_blocks(mac, parent=parent, change=change, texts=texts, plan={"benefit": "streaming", "timing": TWO})
    facts = Look.objects.get().evidence["benefit"]
    assert lever.verdict.verdict == verdict and facts["parent_s"] > 0
    if verdict == "provisional":
        assert facts["candidate_s"] == 0 and facts["upper"] < 0
        assert "buffered to play a sentence without a gap" in signed_in.get(f"/levers/{lever.slug}/").content.decode()


@pytest.fixture
def stack(mac):
    """A change on a change, both settled by hash: (first, second)."""
    first = factories.registered(
        lever="first", parent=factories.tone(slow_s=0.12), change={"sampling": {"extra": {"slow_s": 0.06}}, "expect_bit_exact": True}
    )
    second = factories.registered(lever="second", parent="first", change={"sampling": {"extra": {"slow_s": 0.03}}, "expect_bit_exact": True},
                                  plan={"timing": TWO})  # fmt: skip
    for _ in range(2):
        flow.work(mac)
        advance.advance_open()
    blocks(mac)
    advance.advance_open()
    return [Lever.objects.get(pk=x.pk) for x in (first, second)]


def test_the_speed_up_over_the_root_is_timed_when_asked(mac, stack, signed_in):
    first, second = stack
    page = signed_in.get("/levers/second/").content.decode()
    assert "Time it against the root" in page and "Time it against" not in signed_in.get("/levers/first/").content.decode()
    assert signed_in.post("/levers/second/time-root").status_code == 302
    assert signed_in.post("/levers/second/time-root").status_code == 409  # a second click
    assert "0 of 2 timed blocks" in signed_in.get("/levers/second/").content.decode()
    blocks(mac)
    found = cumulative.facts(second)
    assert found["settled"] and found["speedup"] > 2 and found["root"].pk == first.parent_id
    assert "times as fast as tone" in signed_in.get("/levers/second/").content.decode()
    (rungs,) = ladder.ladders()
    assert [r.from_root and round(r.from_root) > 1 for r in rungs] == [None, None, True]
    assert "times the root" in signed_in.get("/ledger/").content.decode()


def test_a_disturbed_block_against_the_root_is_run_again(mac, stack):
    second = stack[1]
    cumulative.ask(second)
    flow.work(mac, "block")
    TimedBlock.objects.filter(number=0).update(contended=BUSY)
    TimedBlock.objects.filter(number=1).update(contended={})
    assert not cumulative.facts(second)["settled"]
    Tend().round()
    Tend().round()
    assert TimedBlock.objects.filter(draw_key__endswith=":root").count() == 3
    blocks(mac)
    assert cumulative.facts(second)["settled"]
    assert "void (browser)" in " ".join(second.history.values_list("text", flat=True))


def test_it_can_be_asked_for_over_the_api(mac, stack):
    secrets = {scope: Token.issue(scope, scope) for scope in ("engineer", "reader")}
    client = Client()

    def call(method, slug, scope):
        return getattr(client, method)(f"/api/levers/{slug}/root-speed", headers={"Authorization": f"Bearer {secrets[scope]}"})

    assert call("get", "second", "reader").json() is None
    assert call("post", "second", "reader").status_code == 401
    assert call("post", "second", "engineer").json()["of"] == 2
    assert call("post", "first", "engineer").json()["code"] == "no_root_to_time"
    assert call("post", "second", "engineer").json()["code"] == "root_timed_already"
