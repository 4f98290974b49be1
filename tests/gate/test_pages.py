import json
import re
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings as live
from django.core.management import CommandError, call_command
from django.test import Client

from gate import advance, charts, reasons
from gate.files import ranged
from gate.models import Lever, Token
from gate.views import entry_token
from listening.models import Invitation
from tests import factories
from tests.gate import flow


@pytest.fixture
def rendered(db, tmp_path, known_metrics):
    """A lever whose clips are all there and not measured: nothing may be seen of them."""
    bench = flow.bench(tmp_path)
    lever = factories.registered()
    flow.work(bench)
    advance.advance_open()
    flow.work(bench)
    advance.advance_open()
    bench.close()
    assert Lever.objects.get().state == "scoring"
    return Lever.objects.get(pk=lever.pk)


PAGES = ["/", "/levers/", "/levers/new", "/levers/louder/", "/levers/louder/status", "/levers/louder/clips.csv", "/levers/louder/votes.csv",
         "/levers/louder/plan.json", "/invitations/", "/plan/", "/sentences/", "/voices/", "/ledger/", "/policy/", "/machine/", "/password/"]  # fmt: skip


def test_strangers_are_sent_to_the_login(db):
    factories.registered()
    for path in PAGES:
        answer = Client().get(path)
        assert answer.status_code == 302 and answer.url.startswith("/login/"), path


def test_a_raters_cookie_opens_no_dashboard(db):
    from tests.listening.test_ballot import browser

    assert browser(factories.rater()).get("/").status_code == 302


def test_before_the_look_only_counts_are_shown(rendered, signed_in):
    page = signed_in.get("/levers/louder/").content.decode()
    assert "8 / 8" in page and "sealed" in page
    for secret in ("Evidence", "Mean CER", "audio", "seconds", "pcm_sha256"):
        assert secret not in page.split("<h2>What changes")[0], secret
    for name in ("clips", "votes"):
        answer = signed_in.get(f"/levers/louder/{name}.csv")
        assert answer.status_code == 409 and b"Still sealed" in answer.content
        with pytest.raises(CommandError):
            call_command("export", "louder", name)


def test_before_the_look_no_clip_is_served(rendered, signed_in):
    from synth.models import Render

    for render in Render.objects.all():
        assert signed_in.get(f"/levers/louder/clips/{render.clip_id}.flac").status_code == 404


def test_before_the_look_the_api_and_the_admin_show_no_result(rendered, admin_client):
    reader = {"HTTP_AUTHORIZATION": f"Bearer {Token.issue('ci', 'reader')}"}
    answer = Client().get("/api/levers/louder", **reader).json()
    assert answer == {"lever": "louder", "state": "scoring", "problem": "", "verdict": None, "evidence": "", "reasons": [], "fallen": []}
    page = admin_client.get("/admin/")
    assert page.status_code == 200
    models = set(re.findall(r'href="/admin/(\w+/\w+)/"', page.content.decode()))
    assert models - {"auth/user", "auth/group"} <= {
        "gate/lever",
        "gate/plan",
        "gate/verdict",
        "gate/corpus",
        "gate/auditentry",
        "gate/token",
        "synth/worker",
        "listening/invitation",
    }


def test_the_roofline_is_shown_from_the_start_and_what_was_timed_only_when_the_clips_are(rendered, signed_in, monkeypatch):
    from gate import timing
    from synth.models import Pass, Preflight, TimedBlock

    predicted = {"gb_per_frame": 1.7884, "passes": 15, "gb_per_s": 307.0, "ms_per_frame": [8.4, 9.0]}
    Preflight.objects.update(report={"roofline": predicted, "device_class": "test"})
    block = TimedBlock.objects.create(
        first=rendered.parent, second=rendered.candidate, draw_key=timing.against_parent(rendered).key, number=7, sentences=[], state="done"
    )
    for place, configuration in ((0, rendered.parent), (1, rendered.candidate)):
        clips = [{"sentence": 1, "wall_s": 1.5, "audio_s": 8.0, "tokens": 100 + 20 * place}]
        Pass.objects.create(block=block, place=place, configuration=configuration, clips=clips)
    page = signed_in.get("/levers/louder/").content.decode()
    assert "1.7884 GB" in page and "8.4 … 9.0 ms" in page and "15.0 ms" not in page and "12.5 ms" not in page
    monkeypatch.setattr("gate.export.clips_unsealed", lambda lever: True)
    page = signed_in.get("/levers/louder/").content.decode()
    assert "15.0 ms" in page and "12.5 ms" in page


def test_the_admin_can_not_edit_a_plan(rendered, admin_client):
    url = f"/admin/gate/plan/{rendered.plan.pk}/change/"
    assert admin_client.get(url).status_code == 200
    assert admin_client.post(url, {"body": "{}"}).status_code == 403
    assert admin_client.post(f"/admin/gate/plan/{rendered.plan.pk}/delete/", {"post": "yes"}).status_code == 403


def test_the_api_needs_its_token(db):
    factories.registered()
    assert Client().get("/api/levers/louder").status_code == 401
    worker = {"HTTP_AUTHORIZATION": f"Bearer {Token.issue('mac', 'worker')}"}
    assert Client().get("/api/levers/louder", **worker).status_code == 401


def test_the_api_registers_and_refuses_like_the_form(db):
    reader = {"HTTP_AUTHORIZATION": f"Bearer {Token.issue('ci', 'reader')}"}
    assert Client().post("/api/levers", factories.spec(), content_type="application/json", **reader).status_code == 401
    reader = {"HTTP_AUTHORIZATION": f"Bearer {Token.issue('deploy', 'engineer')}"}
    ok = Client().post("/api/levers", factories.spec(), content_type="application/json", **reader)
    assert ok.status_code == 200 and ok.json()["state"] == "checking"
    bad = Client().post("/api/levers", factories.spec(lever="b", change={"colour": 1}), content_type="application/json", **reader)
    assert (bad.status_code, bad.json()["code"]) == (422, "unknown_key")


def test_the_form_registers_and_shows_what_is_wrong_beside_its_field(signed_in):
    import yaml

    bad = signed_in.post("/levers/new", {"spec": yaml.safe_dump(factories.spec(change={"colour": 1}))})
    assert bad.status_code == 422 and b"change.colour is not a known key" in bad.content
    assert signed_in.post("/levers/new", {"spec": ""}).status_code == 422
    good = signed_in.post("/levers/new", {"spec": yaml.safe_dump(factories.spec())})
    assert good.url == "/levers/louder/"
    assert Lever.objects.get().history.get().actor == "alice"


def test_the_forms_own_example_can_be_registered(signed_in):
    from gate.forms import EXAMPLE

    assert signed_in.post("/levers/new", {"spec": EXAMPLE}).status_code == 302


def test_the_page_is_loaded_again_when_the_state_changed(signed_in):
    factories.registered()
    assert "HX-Refresh" not in signed_in.get("/levers/louder/status?state=checking")
    assert signed_in.get("/levers/louder/status?state=rendering")["HX-Refresh"] == "true"


def test_the_printed_link_logs_in_and_a_forged_one_does_not(engineer):
    client, link = Client(), f"/enter/{entry_token('alice')}"
    assert client.get(link).url == "/"
    assert client.get("/").status_code == 200
    assert client.get(link).url == "/"  # clicked again in the same browser
    assert Client().get(link).status_code == 410  # and by somebody who saw it
    assert Client().get("/enter/forged:token").status_code == 410


def test_invitations_are_made_and_withdrawn(signed_in):
    assert signed_in.post("/invitations/", {"language": "hi", "raters": "3", "note": "friends"}).status_code == 302
    made = Invitation.objects.get()
    assert (made.panel.language, made.max_raters) == ("hi", 3)
    signed_in.post("/invitations/", {"revoke": made.token})
    made.refresh_from_db()
    assert made.why_closed() == "revoked"
    for form in ({"language": "xx", "raters": "3"}, {"language": "en", "raters": "many"}, {"language": "en", "raters": "0"}):
        assert signed_in.post("/invitations/", form).status_code == 422
    assert Invitation.objects.count() == 1


def test_unknown_levers_are_404(signed_in):
    for path in ("/levers/none/", "/levers/none/clips.csv", "/levers/none/plan.json"):
        assert signed_in.get(path).status_code == 404


def test_an_empty_list_says_what_to_do(signed_in):
    assert b"Register the first one" in signed_in.get("/").content


def verdict(*args):
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("verdict", *args, stdout=out)
    return ended.value.code, out.getvalue()


def test_the_verdict_command_says_not_ready(db):
    factories.registered()
    assert verdict("louder") == (4, "louder: not ready (checking)\n")
    code, out = verdict("louder", "--json")
    assert (code, json.loads(out)["state"]) == (4, "checking")
    assert verdict("louder", "--wait", "--timeout", "0.1")[0] == 4


def test_the_verdict_of_an_unknown_lever_is_one_sentence(db):
    with pytest.raises(CommandError, match="There is no lever 'none'") as caught:
        call_command("verdict", "none")
    assert caught.value.returncode == 4


def test_register_reads_a_file_and_refuses_what_it_can_not(db, tmp_path):
    file = tmp_path / "lever.yaml"
    file.write_text(json.dumps(factories.spec()))
    out = StringIO()
    call_command("register", str(file), stdout=out)
    assert "louder is registered" in out.getvalue()
    with pytest.raises(CommandError, match="that name is taken"):
        call_command("register", str(file))
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(CommandError, match="can't be read"):
            call_command("register", str(path))
    (tmp_path / "latin.yaml").write_bytes(b"\xff\xfe\x00x")
    with pytest.raises(CommandError, match="can't be read"):
        call_command("register", str(tmp_path / "latin.yaml"))


def test_every_reason_is_documented_and_explained():
    table = (Path(live.BASE_DIR) / "docs" / "verdicts.md").read_text()
    for code, (sentence, remedy) in reasons.WORDS.items():
        assert f"| `{code}` | {sentence} | {remedy} |" in table, code
    assert reasons.explain("cer:beyond_margin")[0].endswith("the character error rate.")
    assert reasons.explain("margin_loosened:dnsmos")[0].endswith("DNSMOS.")
    for code in (
        "speed:not_established",
        "length:longer",
        "core_endpoint_missing:length",
        "clips_lost:2",
        "evidence:heard",
        "asr_too_weak",
    ):
        assert reasons.explain(code)[0] != code


def fact(**changes):
    base = {
        "name": "cer",
        "label": "CER",
        "unit": "share",
        "estimate": 0.01,
        "lower": -0.004,
        "upper": 0.019,
        "margin": 0.02,
        "low": None,
        "high": None,
        "state": "pass",
    }
    return base | changes


def test_a_limit_that_rounds_onto_its_margin_shows_more_digits():
    assert charts.shown(fact(upper=0.0199996))[2] == "0.019999" or charts.shown(fact(upper=0.0199996))[2] == "0.0199996"
    assert charts.shown(fact())[2] == "0.019"
    assert charts.shown(fact(lower=None, upper=None, estimate=None))[:3] == ("–", "∞", "∞")


def test_a_chart_escapes_its_words_and_stays_in_its_picture():
    svg = charts.interval(fact(label="<script>", lower=-5.0, upper=None))
    assert "<script>" not in svg and "&lt;script&gt;" in svg
    assert all(0 <= float(x) <= charts.WIDTH for x in re.findall(r'(?:x1|x2|cx)="([-\d.]+)"', svg))


@pytest.mark.parametrize(
    ("header", "status", "body", "range_"),
    [
        (None, 200, b"0123456789", None), ("bytes=2-4", 206, b"234", "bytes 2-4/10"), ("bytes=7-", 206, b"789", "bytes 7-9/10"),
        ("bytes=-3", 206, b"789", "bytes 7-9/10"), ("bytes=0-99", 206, b"0123456789", "bytes 0-9/10"), ("bytes=20-", 416, b"", "bytes */10"),
        ("bytes=a-b", 200, b"0123456789", None), ("bytes=-", 200, b"0123456789", None),
    ],
)  # fmt: skip
def test_ranges(rf, header, status, body, range_):
    answer = ranged(rf.get("/", **({"HTTP_RANGE": header} if header else {})), b"0123456789", "audio/flac")
    assert (answer.status_code, answer.content, answer.get("Content-Range")) == (status, body, range_)


def test_a_spreadsheet_runs_nothing():
    from gate.export import _csv

    assert _csv(["a"], [["=1+1"], ["-2"], [-2], ["plain"]]) == "a\r\n'=1+1\r\n'-2\r\n-2\r\nplain\r\n"


def test_who_came_by_link_can_choose_a_password(engineer):
    engineer.set_unusable_password()
    engineer.save()
    client = Client()
    client.get(f"/enter/{entry_token('alice')}")
    assert b"Old password" not in client.get("/password/").content
    new = "a new and long secret"
    assert client.post("/password/", {"new_password1": new, "new_password2": new}).status_code == 302
    assert client.get("/").status_code == 200 and Client().login(username="alice", password=new)
    assert b"Old password" in client.get("/password/").content


def test_waiting_for_what_only_a_person_can_mend_ends(db):
    factories.registered()
    Lever.objects.update(problem="tone: there is no such model")
    assert verdict("louder", "--wait")[0] == 4


@pytest.mark.parametrize(
    ("found", "says"),
    [
        ({"state": "installing", "text": "Downloading mkl", "mb": 120, "of_mb": 650}, "120 of about 650 MB"),
        (
            {"state": "converting", "text": "Making the models out of their packages", "mb": 0, "of_mb": 0},
            "Making the models out of their packages",
        ),
        ({"state": "failed", "text": "the disk is full", "mb": 0, "of_mb": 0}, "could not be installed"),
        ({"state": "ready", "text": "", "mb": 0, "of_mb": 0}, "No worker is connected"),
        (None, "No worker is connected"),
    ],
)
def test_the_page_says_how_far_the_speech_parts_are(signed_in, settings, tmp_path, found, says):
    factories.registered()
    settings.VAR = tmp_path
    (tmp_path / "run").mkdir()
    if found:
        (tmp_path / "run" / "install.json").write_text(json.dumps(found))
    assert says in signed_in.get("/").content.decode()
    assert signed_in.get("/machine/").status_code == 200


def test_every_catastrophe_and_flag_is_documented():
    page = (Path(live.BASE_DIR) / "docs" / "metrics.md").read_text()
    for code, sentence in (reasons.CATASTROPHES | reasons.FLAGS).items():
        assert f"| `{code}` | {sentence} |" in page, code
