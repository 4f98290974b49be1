"""More than one look at the automatic evidence: clips are made look by look, and each look reads just its own sentences."""

import uuid

import pytest

from gate import advance, evidence, export, identity, lock, progress, stages
from gate.models import LedgerEntry, Lever, Look, Measurement, Use
from gate.statistics import looks
from listening import allocate, ballot
from synth.models import Leased, Render
from tests import factories
from tests.gate import flow

pytestmark = pytest.mark.usefixtures("known_metrics")
PLAN = {"looks": [0.5, 1.0], "listening": {"required": False}}
GOOD = {"cer": 0.0, "dnsmos": 3.0, "level_dbfs": -20, "duration_s": 1.0, "failed": ""}


def begun(mac, **kwargs):
    lever = factories.registered(texts=factories.SENTENCES, **({"plan": PLAN} | kwargs))
    flow.work(mac)
    advance.advance_open()
    return Lever.objects.get(pk=lever.pk)


def rendered(mac, lever):
    flow.work(mac, "render")
    advance.advance_open()
    return Lever.objects.get(pk=lever.pk)


def measured(lever, candidate_cer=lambda place: 0.0):
    """Settles what is waiting to be measured; the candidate's error rate by the sentence's place in the draw."""
    place = {s.pk: k for k, s in enumerate(lever.draw.sentences())}
    mine = {r.clip_id: place[r.sentence_id] for r in Render.objects.filter(configuration=lever.candidate).exclude(clip=None)}
    for row in Measurement.objects.filter(state=Leased.State.QUEUED):
        cer = candidate_cer(mine[row.clip_id]) if row.clip_id in mine else 0.0
        Measurement.objects.filter(pk=row.pk).update(state=Leased.State.DONE, scores=GOOD | {"cer": cer})
    advance.advance_open()
    return Lever.objects.get(pk=lever.pk)


def test_an_undecided_look_asks_for_the_sentences_of_the_next_one_only(mac):
    lever = begun(mac)
    assert Use.objects.count() == 8  # all of them are spent at once, however many are rendered
    assert Render.objects.count() == 8 and {r.group.place for r in Render.objects.all()} == {0, 1, 2, 3}
    lever = rendered(mac, lever)
    assert lever.state == "scoring" and Measurement.objects.count() == 8
    lever = measured(lever, lambda place: 0.04 if place % 2 else 0.0)
    first = Look.objects.get()
    assert (lever.state, first.number, first.evidence["sentences"], lever.verdict) == ("rendering", 1, 4, None)
    assert Render.objects.count() == 16 and Measurement.objects.count() == 8
    lever = measured(rendered(mac, lever))
    last = Look.objects.get(number=2)
    assert (lever.state, last.evidence["sentences"], last.evidence["looks"]) == ("settled", 8, 2)
    assert last.evidence["endpoints"][0]["n"] == 8 and lever.verdict.look == last
    assert LedgerEntry.objects.get(kind="verdict").body["look"]["number"] == 2


def test_a_failure_at_the_first_look_ends_it_and_the_rest_is_never_rendered(mac):
    lever = measured(rendered(mac, begun(mac)), lambda place: 0.9 + 0.01 * place)
    assert (lever.verdict.verdict, lever.verdict.reasons[0]) == ("rejected", "cer:beyond_margin")
    assert Render.objects.count() == 8 and len(stages.covered(lever)) == 4
    assert len(export.clip_rows(lever)) == 8


def test_a_pass_at_the_first_look_opens_listening_on_its_sentences(mac):
    plan = {"looks": [0.5, 1.0], "margins": {"catastrophe": 1.0}}
    lever = measured(rendered(mac, begun(mac, plan=plan)))
    assert (lever.state, lever.study.pairs.count()) == ("listening", 4)
    case, _ = evidence.human(lever, lock.plan_of(lever), 0, True)
    assert [e.name for e in case.endpoints] == ["cer", "dnsmos", "length", "level", "catastrophe"]


def test_between_looks_pages_and_exports_show_counts_only(mac, signed_in):
    lever = measured(rendered(mac, begun(mac)), lambda place: 0.04 if place % 2 else 0.0)
    with pytest.raises(export.Sealed):
        export.clips_csv(lever)
    assert signed_in.get(f"/levers/{lever.slug}/clips.csv").status_code == 409
    page = signed_in.get(f"/levers/{lever.slug}/").content.decode()
    assert "look 1 of 2 at 4 sentences: not decided yet" in page and "<audio" not in page
    assert [b.total for b in progress.bars(lever) if b.label == "Rendered"] == [16]


def test_each_look_is_as_strict_as_its_share_says(mac):
    lever = measured(rendered(mac, begun(mac)), lambda place: 0.04 if place % 2 else 0.0)
    tails = looks.tails([0.5, 1.0], 0.025)
    assert Look.objects.get().evidence["tail"] == pytest.approx(tails[0]) and tails[0] < 0.002 < tails[1] < 0.025
    lever = measured(rendered(mac, lever))
    assert Look.objects.get(number=2).evidence["tail"] == pytest.approx(tails[1])


def test_what_claims_to_be_identical_has_one_look_at_everything(mac):
    lever = begun(mac, change={"runtime": {"cache_limit_mb": 512}, "expect_bit_exact": True})
    assert lever.plan.body["looks"] == [1.0]
    lever = rendered(mac, lever)
    assert lever.verdict.evidence == "bit-identical" and identity.identical(lever).clips == 8


def test_advancing_again_at_a_look_that_was_taken_changes_nothing(mac):
    lever = measured(rendered(mac, begun(mac)), lambda place: 0.04 if place % 2 else 0.0)
    before = Render.objects.count(), Look.objects.count()
    for _ in range(3):
        advance.advance(lever.pk)
    assert (Render.objects.count(), Look.objects.count()) == before


def vote(lever, number, score_of):
    """Two raters vote in turns, `number` answers in all; score_of(k) is what the k-th answer says of the candidate."""
    raters, cast = [factories.rater() for _ in range(4)], 0
    while cast < number:
        for rater in raters:
            trial = allocate.next_trial(rater)
            if trial is None or cast == number:
                continue
            towards = {1: ("left", "right")[trial.tested_side], -1: ("right", "left")[trial.tested_side], 0: "same"}
            ballot.cast(rater.key, uuid.uuid4(), trial.key, ballot.Answer(towards[score_of(cast)]))
            cast += 1
    advance.advance_open()
    return Lever.objects.get(pk=lever.pk)


HEARD = {"margins": {"catastrophe": 1.0}, "listening": {"votes_per_pair": 4, "looks": [0.5, 1.0]}}


@pytest.mark.parametrize(
    ("scores", "futility", "state", "reason"),
    [
        ((-1, -1, 0, -1, 1), 0.05, "settled", "futile"),
        ((-1, -1, 0, -1, 1), 0.0, "listening", ""),
        ((0, 0, 1, 0, -1), 0.05, "listening", ""),
    ],
)
def test_listening_stops_where_going_on_would_be_in_vain(mac, scores, futility, state, reason):
    plan = {**HEARD, "listening": HEARD["listening"] | {"futility": futility}}
    lever = measured(rendered(mac, begun(mac, plan=plan)))
    lever = vote(lever, 16, lambda k: scores[k % 5])
    assert (lever.state, lever.verdict.reasons[-1] if lever.verdict else "") == (state, reason)
    assert 0 <= Look.objects.get(kind="human").evidence["chance"] <= 1
