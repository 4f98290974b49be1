"""The desk over HTTP, as a worker sees it."""

import hashlib
import uuid

import numpy as np
import pytest
from django.test import Client

from gate.models import Token
from synth import pcm
from synth.models import Clip, Leased, Preflight, Render, RenderGroup, Worker
from tests import factories

SOUND = pcm.encode_flac((0.1 * np.sin(np.arange(24000) / 20)).astype(np.float32), 24000)
FILE = hashlib.sha256(SOUND).hexdigest()


class Machine:
    """A worker with a token, speaking plain HTTP."""

    def __init__(self, name="mac", device_class="test"):
        self.headers = {"HTTP_AUTHORIZATION": f"Bearer {Token.issue(name, 'worker')}"}
        self.client = Client()
        assert self.post("/hello", {"name": name, "device_class": device_class}).status_code == 200

    def post(self, path, body):
        return self.client.post(f"/api/desk{path}", body, content_type="application/json", **self.headers)

    def claim(self, kind="render", loaded=""):
        answer = self.post("/claim", {"kind": kind, "loaded": loaded})
        return None if answer.status_code == 204 else answer.json()

    def upload(self, unit, data=SOUND, name=FILE):
        return self.client.put(
            f"/api/desk/units/{unit['kind']}/{unit['lease']}/clips/{name}", data, content_type="audio/flac", **self.headers
        )

    def finish(self, unit, **changes):
        clips = [
            {"render": c["id"], "outcome": "made", "file_sha256": FILE, "pcm_sha256": "p" * 64, "figures": {"sample_rate": 24000, "samples": 24000}} | changes
            for c in unit["clips"]
        ]  # fmt: skip
        return self.post(f"/units/render/{unit['lease']}/finish", {"clips": clips})


@pytest.fixture
def mac(db):
    return Machine()


def render(place=0, config=None, draw="draw"):
    config = config or factories.configuration()
    group = factories.group(draw, place, config)
    sentence = factories.sentence(f"Sentence {chr(97 + place)}.")
    return Render.objects.create(group=group, configuration=config, sentence=sentence, draw_key=draw, seed=5)


def test_a_clip_goes_from_claim_to_row(mac):
    row = render()
    unit = mac.claim()
    assert unit["clips"] == [{"id": row.pk, "text": "Sentence a.", "language": "en", "seed": 5}]
    assert unit["configuration"]["engine"] == "tests.tone:Tone"
    assert mac.upload(unit).status_code == 201
    assert mac.finish(unit).status_code == 200
    row.refresh_from_db()
    assert (row.outcome, row.clip.file_sha256, row.group.state) == ("made", FILE, "done")


def test_a_result_sent_twice_is_stored_once(mac):
    render()
    unit = mac.claim()
    mac.upload(unit)
    assert [mac.finish(unit).status_code for _ in range(2)] == [200, 409]
    assert Clip.objects.count() == 1


def test_a_late_upload_changes_nothing(mac):
    render()
    unit = mac.claim()
    RenderGroup.objects.update(lease=uuid.uuid4())
    assert [mac.upload(unit).status_code, mac.finish(unit).status_code] == [409, 409]
    assert mac.post(f"/units/render/{unit['lease']}/beat", {}).status_code == 409
    assert Render.objects.get().outcome == ""


def test_another_workers_lease_is_not_mine(mac):
    render()
    unit = mac.claim()
    assert Machine("other").finish(unit).status_code == 409


@pytest.mark.parametrize("header", [{}, {"HTTP_AUTHORIZATION": "Bearer wrong"}])
def test_a_wrong_token_is_401(db, header):
    assert Client().post("/api/desk/claim", {"kind": "render"}, content_type="application/json", **header).status_code == 401


def test_a_revoked_token_and_a_readers_token_are_401(mac):
    Token.objects.update(revoked_at="2026-01-01T00:00Z")
    assert mac.post("/claim", {"kind": "render"}).status_code == 401
    reader = {"HTTP_AUTHORIZATION": f"Bearer {Token.issue('ci', 'reader')}"}
    assert Client().post("/api/desk/claim", {"kind": "render"}, content_type="application/json", **reader).status_code == 401


@pytest.mark.parametrize(
    ("data", "name", "code"), [(SOUND[:100], FILE, "bad_audio"), (b"text", hashlib.sha256(b"text").hexdigest(), "bad_audio")]
)
def test_a_damaged_upload_is_refused(mac, data, name, code):
    render()
    answer = mac.upload(mac.claim(), data, name)
    assert (answer.status_code, answer.json()["code"]) == (422, code)


def test_a_clip_finished_without_its_file_is_refused(mac):
    render()
    answer = mac.finish(mac.claim(), file_sha256="0" * 64)
    assert (answer.status_code, answer.json()["code"]) == (422, "clip_missing")
    assert RenderGroup.objects.get().state == "leased"


def test_results_for_other_clips_are_refused(mac):
    render()
    answer = mac.finish(mac.claim(), render=999)
    assert (answer.status_code, answer.json()["code"]) == (422, "wrong_clips")


def test_malformed_bodies_and_kinds_are_refused(mac):
    assert mac.post("/claim", {"kind": "coffee"}).json()["code"] == "unknown_kind"
    assert mac.post("/claim", {"nothing": 1}).status_code == 422
    assert mac.post(f"/units/coffee/{uuid.uuid4()}/beat", {}).status_code == 409


def test_the_loaded_configuration_is_preferred(mac):
    first, second = factories.configuration("a"), factories.configuration("b", detune=2.0)
    for place in range(2):
        render(place, first)
        render(place, second)
    assert mac.claim(loaded=second.digest)["digest"] == second.digest


def test_both_arms_of_a_sentence_go_to_one_worker(mac):
    first, second = factories.configuration("a"), factories.configuration("b", detune=2.0)
    render(0, first)
    assert mac.claim()["digest"] == first.digest
    render(0, second)
    other = Machine("other")
    assert other.claim() is None
    Worker.objects.filter(name="mac").update(last_seen="2026-01-01T00:00Z")
    assert other.claim()["digest"] == second.digest


def test_another_device_class_gets_nothing(mac):
    row = render()
    RenderGroup.objects.filter(pk=row.group_id).update(device_class="Apple M9")
    assert mac.claim() is None
    assert Machine("studio", "Apple M9").claim() is not None


def test_a_failure_after_the_last_attempt_is_a_result(mac):
    row = render()
    for _ in range(5):
        RenderGroup.objects.update(due_at="2026-01-01T00:00Z")
        unit = mac.claim()
        assert mac.post(f"/units/render/{unit['lease']}/fail", {"error": "the child died"}).status_code == 200
    row.refresh_from_db()
    assert (row.outcome, row.error, row.group.state) == ("error", "the child died", "failed")


def test_a_preflight_report_and_its_sample_are_kept(mac):
    Preflight.objects.create(configuration=factories.configuration())
    unit = mac.claim("preflight")
    assert unit["language"] == "en"
    mac.upload(unit)
    sample = {"file_sha256": FILE, "pcm_sha256": "q" * 64, "sample_rate": 24000, "samples": 24000}
    assert mac.post(f"/units/preflight/{unit['lease']}/finish", {"report": {"sample": sample}}).status_code == 200
    flight = Preflight.objects.get()
    assert (flight.state, flight.sample.file_sha256) == (Leased.State.DONE, FILE)


def test_a_half_written_clip_is_written_again(mac):
    from pathlib import Path

    from synth import clips

    render()
    unit = mac.claim()
    place = Path(clips.storage().path(clips.path(FILE)))
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(SOUND[:100])
    assert mac.upload(unit).status_code == 201
    assert place.read_bytes() == SOUND and not list(place.parent.glob("*.part"))
