"""Closer looks: asked for on a page or over the API, made by a worker, shown, and kept from every verdict."""

import pytest
from django.test import Client

from gate import diagnoses
from gate.models import Lever, Token, Verdict
from synth.configuration import Refused
from synth.models import Diagnosis, Preflight
from tests import factories
from tests.gate import flow
from tests.gate.test_timing import through_its_blocks

pytestmark = pytest.mark.usefixtures("known_metrics")


@pytest.fixture
def settled(mac):
    """A lever whose clips everybody may hear."""
    return through_its_blocks(mac, change={"sampling": {"extra": {"slow_s": 0.01}}, "expect_bit_exact": True})


def page(client, slug="louder"):
    return client.get(f"/levers/{slug}/looks").content.decode()


def test_batch_sizes_and_cadence_from_the_button_to_the_page(mac, settled, signed_in):
    assert "Nobody has taken a closer look yet" in page(signed_in)
    for kind, values in (("sweep", "1 2 4"), ("cadence", "0.5, 1")):
        assert signed_in.post("/levers/louder/looks", {"kind": kind, "values": values}).status_code == 302
    assert page(signed_in).count("waits for a worker") == 2
    flow.work(mac, "diagnosis")
    sweep, cadence = (Diagnosis.objects.get(kind=kind) for kind in ("sweep", "cadence"))
    assert (sweep.state, cadence.state) == ("done", "done")
    rows = diagnoses.facts(sweep)["rows"]
    assert [(r["system"], r["size"]) for r in rows] == [(s, n) for s in ("parent", "candidate") for n in (1, 2, 4)]
    assert rows[5]["audio_per_s"] > rows[3]["audio_per_s"] > 0  # four tones take the time of one
    cells = diagnoses.facts(cadence)["rows"][0]["cells"]
    assert [c["preroll_s"] for c in cells] == list(diagnoses.PREROLLS) and all(c["starving"] == 0 and c["c50"] == 1 for c in cells)
    text = page(signed_in)
    assert "Sound made a second" in text and 'class="heat"' in text and "No gap over 50 ms" in text


def test_a_stream_that_starves_is_dark_until_enough_is_buffered(mac, settled):
    """Five pieces of 0.1 s, 0.2 s apart: more than 0.2 s must be in hand, or it stalls for 0.1 s at a time."""
    stream = {
        "arrivals_s": [0.2, 0.4, 0.6, 0.8, 1.0], "durations_s": [0.1] * 5, "first_chunk_s": 0.2, "first_audio_s": 0.25, "wall_s": 1.0,
        "audio_s": 0.5,
    }  # fmt: skip
    row = {
        "system": "parent",
        "interval_s": 0.1,
        "streams": [stream],
        "beside_whole": [{"stable_share": 0.9, "extra_samples": -3, "click": 2.0}],
    }
    one = Diagnosis(kind="cadence", state="done", first=settled.parent, report={"rows": [row]}, sentences=[{}])
    (found,) = diagnoses.facts(one)["rows"]
    by = {c["preroll_s"]: c for c in found["cells"]}
    assert by[0.0]["starving"] == 1 and by[0.0]["c50"] == 0 and by[0.0]["c100"] == 1 and by[0.4]["starving"] == 0
    assert found["smallest_preroll_s"] == 0.201 and found["first_audio_s"] == 0.25
    assert (found["stable_share"], found["extra_samples"], found["click"]) == (0.9, 3, 2.0)


def test_what_this_engine_does_not_show_is_said_in_a_sentence(mac, settled, signed_in):
    diagnoses.ask(settled, "forced")
    diagnoses.ask(settled, "components")
    flow.work(mac, "diagnosis")
    assert set(Diagnosis.objects.values_list("state", "attempts")) == {("failed", 1)}
    assert page(signed_in).count("shows nothing of what goes on inside it") == 2


def test_it_is_sealed_until_the_evidence_was_read(mac, signed_in):
    lever = factories.registered(lever="sealed")
    with pytest.raises(Refused) as caught:
        diagnoses.ask(lever, "sweep")
    assert caught.value.code == "still_sealed"
    assert "sealed until" in page(signed_in, "sealed") and 'name="kind"' not in page(signed_in, "sealed")
    assert signed_in.post("/levers/sealed/looks", {"kind": "sweep"}).status_code == 422


@pytest.mark.parametrize(
    ("kind", "values", "code"),
    [
        ("sweep", "1 none", "diagnosis_value"), ("sweep", "0", "diagnosis_value"), ("sweep", "2.5", "diagnosis_value"),
        ("sweep", "1 2 3 4 5 6 7 8 9", "diagnosis_value"), ("sweep", "64", "batch_too_large"), ("cadence", "nan", "diagnosis_value"),
        ("cadence", "-1", "diagnosis_value"), ("beauty", "", "unknown_diagnosis"),
    ],
)  # fmt: skip
def test_bad_values_are_named(settled, signed_in, kind, values, code):
    with pytest.raises(Refused) as caught:
        diagnoses.ask(settled, kind, values)
    assert caught.value.code == code and not Diagnosis.objects.exists()
    assert signed_in.post("/levers/louder/looks", {"kind": kind, "values": values}).status_code == 422


def test_a_double_click_is_one_look(settled, signed_in):
    first, second = (signed_in.post("/levers/louder/looks", {"kind": "components"}) for _ in range(2))
    assert (first.status_code, second.status_code, Diagnosis.objects.count()) == (302, 422, 1)


def test_a_look_that_nobody_takes_is_taken_back(settled, signed_in):
    signed_in.post("/levers/louder/looks", {"kind": "components"})
    one = Diagnosis.objects.get()
    assert signed_in.post("/levers/louder/looks", {"take_back": one.pk}).status_code == 302
    assert "was taken back" in page(signed_in) and not diagnoses.take_back(settled, one.pk)
    assert signed_in.post("/levers/louder/looks", {"kind": "components"}).status_code == 302


def test_another_workers_files_are_asked_for_elsewhere(mac, settled, tmp_path):
    """What a system is made of is another thing here: the look waits for a worker that has the same."""
    Preflight.objects.filter(configuration=settled.parent).update(report={"digests": {"weights": "others"}})
    one = diagnoses.ask(settled, "sweep", "1")
    flow.work(mac, "diagnosis")
    one.refresh_from_db()
    assert (one.state, one.attempts) == ("queued", 0) and "is another thing on this worker" in one.error


def test_a_look_changes_no_verdict(mac, settled):
    before = list(Verdict.objects.values("pk", "verdict", "reasons"))
    diagnoses.ask(settled, "sweep", "1")
    flow.work(mac, "diagnosis")
    from gate import advance

    advance.advance_open()
    assert list(Verdict.objects.values("pk", "verdict", "reasons")) == before and Lever.objects.get(slug="louder").state == "settled"


def test_it_can_be_asked_for_over_the_api(mac, settled):
    engineer, reader = (Client(headers={"Authorization": f"Bearer {Token.issue(scope, scope)}"}) for scope in ("engineer", "reader"))
    asked = engineer.post("/api/levers/louder/looks", {"kind": "sweep", "values": "2"}, content_type="application/json")
    assert asked.status_code == 200 and asked.json()["state"] == "queued"
    assert reader.post("/api/levers/louder/looks", {"kind": "sweep"}, content_type="application/json").status_code == 401
    flow.work(mac, "diagnosis")
    (found,) = reader.get("/api/levers/louder/looks").json()
    assert found["state"] == "done" and found["rows"][0]["size"] == 2
