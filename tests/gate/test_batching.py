"""A batching configuration from its spec to its verdict: groups, seeds, time of the whole, and what can't be compared."""

import pytest

from gate import advance, pace, policy, register, timing
from gate.models import Lever
from synth import groups
from synth.batches import whole_batches
from synth.configuration import Refused
from synth.models import Render, RenderGroup, TimedBlock, seed_of
from tests import factories
from tests.gate import flow
from tests.gate.test_register import spec

pytestmark = pytest.mark.usefixtures("known_metrics")


def tone(**how):
    return factories.tone(**how)


def batches(configuration):
    rows = RenderGroup.objects.filter(configuration=configuration).order_by("pk")
    return [[r.sentence.text for r in group.renders.order_by("pk")] for group in rows]


def test_a_batch_is_one_group_in_its_frozen_order_and_is_timed_as_a_whole(mac):
    """Four sentences in one call take as long as one: 4 times as fast, though each row waits for the others."""
    lever = factories.registered(
        lever="four-at-once", parent=tone(slow_s=0.2), change={"batching": {"size": 4, "sort": "length"}},
        plan={"benefit": "speed", "timing": {"blocks": 2, "sentences": 2}},
    )  # fmt: skip
    flow.work(mac)
    advance.advance_open()
    (together,) = batches(lever.candidate)
    assert len(together) == 4 and together == sorted(together, key=len) and [len(b) for b in batches(lever.parent)] == [1] * 4
    renders = Render.objects.filter(configuration=lever.candidate)
    first = renders.order_by("pk").first()
    lever.refresh_from_db()
    assert {r.seed for r in renders} == {seed_of(lever.draw.key, first.sentence.digest, 0)}
    flow.work(mac)
    assert renders.filter(outcome="made").count() == 4 and first.group.attempts == 1
    assert all(r.figures["together"]["rows"] == 4 and 0 < r.figures["together"]["useful_share"] <= 1 for r in renders.all())
    advance.advance_open()
    flow.work(mac, "block")
    TimedBlock.objects.update(contended={})
    block = TimedBlock.objects.first()
    assert len(block.sentences) == 4  # a part of a batch would be timed at another size
    parent, candidate = block.passes.get(place=0), block.passes.get(place=1)
    assert (parent.figures["calls"], candidate.figures["calls"]) == (4, 1)
    assert candidate.figures["total_wall_s"] < parent.figures["total_wall_s"] / 2
    found, facts = pace.measured_speed(timing.against_parent(lever), policy.of(lever.plan.body))
    assert facts["wall_speedup"] > 2.5 and found.lower > 1


def test_a_row_that_says_nothing_fails_alone(mac):
    texts = ["One sentence.", "A silent sentence.", "A third sentence."]
    lever = factories.registered(
        lever="two", parent=tone(), change={"batching": {"size": 3}, "sampling": {"extra": {"empty_on": "silent"}}}, texts=texts
    )
    flow.work(mac)
    advance.advance_open()
    flow.work(mac)
    rows = Render.objects.filter(configuration=lever.candidate).order_by("sentence__text")
    assert [r.outcome for r in rows] == ["empty", "made", "made"]


def test_a_group_asked_for_twice_is_asked_for_once(mac):
    lever = factories.registered(lever="once", parent=tone(), change={"batching": {"size": 3}})
    flow.work(mac)
    advance.advance_open()
    lever = Lever.objects.get(pk=lever.pk)
    wanted = [groups.Wanted(s, k, 7) for k, s in enumerate(lever.draw.sentences())]
    groups.ask(lever.candidate, lever.draw.key, wanted, "test")
    assert sorted(len(b) for b in batches(lever.candidate)) == [1, 3]


def test_what_another_process_asked_for_a_moment_ago_is_left_to_it_and_the_rest_is_grouped_anew(mac, monkeypatch):
    lever = factories.registered(lever="raced", parent=tone(), change={"batching": {"size": 3}})
    wanted = [groups.Wanted(s, k, 7) for k, s in enumerate(lever.corpus.sentences.order_by("pk"))]
    missing, asked = groups._missing, []

    def late(configuration, draw_key, everything):
        found = missing(configuration, draw_key, everything)
        if not asked:
            asked.append(groups._create(configuration, draw_key, wanted[1:2], "test"))
        return found

    monkeypatch.setattr(groups, "_missing", late)
    groups.ask(lever.candidate, "raced", wanted, "test")
    assert sorted(g.renders.count() for g in RenderGroup.objects.filter(draw_key="raced")) == [1, 1, 2]
    assert Render.objects.filter(draw_key="raced").count() == 4


@pytest.mark.parametrize(
    ("change", "plan", "code"),
    [
        ({"batching": {"size": 9}}, {}, "batch_too_large"),
        ({"batching": {"size": 3}}, {"looks": [0.5, 1.0]}, "batch_too_large"),  # each look is rendered by itself
        ({"batching": {"size": 2}, "expect_bit_exact": True}, {}, "batch_bit_exact"),
        ({"batching": {"size": 2}, "streaming": {"interval_s": 1}}, {}, "stream_or_batch"),
        ({"batching": {"size": 0}}, {}, "configuration_invalid"),
    ],
)
def test_what_can_not_be_compared_is_refused(db, change, plan, code):
    with pytest.raises(Refused) as caught:
        register.check(spec(change=change, plan=plan))
    assert caught.value.code == code


def test_two_sizes_are_timed_on_whole_batches_of_both_or_not_at_all(db):
    assert whole_batches(20, [8, 12]) == 24 and whole_batches(20, [8, 12], 47) == 24 and whole_batches(30, [8, 12], 47) == 24
    assert whole_batches(20, [16], 20) == 16 and whole_batches(5, []) == 5 and whole_batches(1, [7], 6) == 0
    body = spec(parent=tone() | {"batching": {"size": 2}}, change={"batching": {"size": 3}}, plan={"timing": {"blocks": 2}})
    with pytest.raises(Refused, match="take 6 sentences, and 4 are drawn"):
        register.check(body)


def test_a_lever_waits_for_all_that_it_judges_wherever_its_batch_stands(mac):
    """Sorted by length, a batch may begin with a sentence that only a later look covers."""
    parent = tone() | {"batching": {"size": 4, "sort": "length"}}
    plan = {"listening": {"required": False}}
    one, two = register.register(
        [
            spec("whole", parent=parent, texts=factories.SENTENCES, plan=plan),
            spec("halves", parent=parent, texts=factories.SENTENCES, plan=plan | {"looks": [0.5, 1.0]}, change={"voice": {"speed": 1.1}}),
        ]
    )
    flow.work(mac)
    advance.advance_open()
    lever = Lever.objects.get(pk=two.pk)
    assert lever.draw_id == Lever.objects.get(pk=one.pk).draw_id
    covered = {s.pk for s in lever.draw.sentences()[:4]}
    waited = Render.objects.filter(group__in=advance.groups_of(lever), configuration=lever.parent)
    assert covered <= set(waited.values_list("sentence_id", flat=True))


def test_a_sentence_of_two_lists_is_rendered_once(mac):
    lever = factories.registered(lever="listed", parent=tone(), change={"batching": {"size": 3}})
    rows = list(lever.corpus.sentences.order_by("pk"))
    groups.ask(lever.candidate, "listed", [groups.Wanted(s, k, 7) for k, s in enumerate([*rows, rows[0]])], "test")
    assert Render.objects.filter(draw_key="listed").count() == 4


def test_a_parent_that_batches_is_never_compared_by_hash(db):
    body = spec(parent=tone() | {"batching": {"size": 2}}, change={"batching": None, "expect_bit_exact": True})
    with pytest.raises(Refused) as caught:
        register.check(body)
    assert caught.value.code == "batch_bit_exact"


def test_the_batch_size_belongs_to_the_system(db):
    lever = factories.registered(lever="sized", parent=tone(), change={"batching": {"size": 2}})
    other = factories.registered(lever="sized-3", parent=tone(), change={"batching": {"size": 3}})
    assert lever.candidate.digest != other.candidate.digest
