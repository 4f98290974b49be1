"""Closer looks: a judge over real HTTP, parity of clips that should be one sound. Shown, and never able to decide."""

import base64
import io
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest
import soundfile

from gate import advance, annotations, identity, judges
from gate.models import Comparison, Judgement, Lever
from tests import factories
from tests.gate import flow

CARD = {
    "transcription": "the ferry leaves", "clarity": "clean", "completeness": "all of it", "phonetic_drift": "none", "alignment_score": 95,
    "overall_score": 80,
}  # fmt: skip

pytestmark = pytest.mark.usefixtures("known_metrics")


class Provider(BaseHTTPRequestHandler):
    """Answers as its server's `answer` says: (status, body), or a function of the request."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((dict(self.headers), body))
        status, text = self.server.answer
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode() if isinstance(text, str) else text)

    def log_message(self, *args):
        pass


@pytest.fixture
def provider(settings):
    server = HTTPServer(("127.0.0.1", 0), Provider)
    server.asked, server.answer = [], (200, json.dumps(CARD))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    settings.JUDGE, settings.JUDGE_URL, settings.JUDGE_KEY = "http", f"http://127.0.0.1:{server.server_port}/judge", "secret"
    settings.JUDGE_SENTENCES = 2
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def lever(db, tmp_path):
    """A lever that claims to be bit-identical and is not, all its clips rendered."""
    bench = flow.bench(tmp_path)
    change = {"sampling": {"extra": {"detune": 1.001}}, "expect_bit_exact": True}
    made = factories.registered(change=change, plan={"listening": {"required": False}})
    flow.work(bench)
    advance.advance_open()
    flow.work(bench)
    bench.close()
    advance.advance_open()
    return Lever.objects.get(pk=made.pk)


def request(seconds=0.5):
    return judges.Request(0.1 * np.ones(int(24000 * seconds), np.float32), 24000, "The ferry leaves.", "en")


def test_a_judge_is_sent_sound_text_and_schema_and_not_the_arm(provider):
    card = judges.read(judges.configured().judge(request()))
    assert card == judges.Scorecard(**CARD)
    headers, body = provider.asked[0]
    assert headers["Authorization"] == "Bearer secret"
    assert body.keys() == {"instruction", "schema", "expected_text", "language", "audio"}
    samples, rate = soundfile.read(io.BytesIO(base64.b64decode(body["audio"]["base64"])))
    assert (len(samples), rate) == (12000, 24000) and body["schema"]["additionalProperties"] is False


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ((200, "not JSON"), "no scorecard"), ((200, "[]"), "no scorecard"), ((200, json.dumps(CARD | {"verdict": "accept"})), "verdict"),
        ((200, json.dumps(CARD | {"overall_score": "80"})), "overall_score"), ((200, json.dumps(CARD | {"alignment_score": 101})), "alignment_score"),
        ((200, json.dumps({k: v for k, v in CARD.items() if k != "clarity"})), "clarity"), ((500, "oops"), "status 500"),
        ((401, ""), "status 401"), ((200, "x" * 100_000), "longer than"), ((200, b"\xff\xfe\x00"), "no scorecard"),
    ],
)  # fmt: skip
def test_an_answer_that_does_not_fit_is_a_sentence(provider, answer, told):
    provider.answer = answer
    with pytest.raises(judges.JudgeFailed, match=told):
        judges.read(judges.configured().judge(request()))


def test_a_judge_that_is_not_there_is_a_sentence(provider):
    provider.shutdown()
    provider.server_close()
    with pytest.raises(judges.JudgeFailed, match="can't be reached"):
        judges.configured().judge(request())


@pytest.mark.parametrize(("name", "url", "key"), [("", "http://x", "k"), ("http", "http://x", ""), ("http", "", "k"), ("nobody", "", "k")])
def test_without_a_name_or_a_key_nobody_is_asked(settings, lever, name, url, key):
    settings.JUDGE, settings.JUDGE_URL, settings.JUDGE_KEY = name, url, key
    annotations.want(lever)
    assert Judgement.objects.count() == 0 and annotations.judge_one() is False


def test_scorecards_are_stored_and_shown_beside_the_clips(lever, provider):
    annotations.want(lever)
    annotations.want(lever)
    assert Judgement.objects.count() == 4  # two sentences, two arms, asked for twice
    while annotations.judge_one():
        pass
    shown = annotations.judgements(lever)
    assert [(r["arm"], r["overall_score"], r["error"]) for r in shown] == [("parent", 80, ""), ("candidate", 80, "")] * 2
    assert len(provider.asked) == 4


def test_a_judge_that_fails_holds_nothing_up(lever, provider):
    provider.answer = (500, "")
    annotations.want(lever)
    for _ in range(5):
        Judgement.objects.update(due_at=lever.created_at)
        while annotations.judge_one():
            pass
    assert set(Judgement.objects.values_list("state", flat=True)) == {"failed"}
    assert all("status 500" in row["error"] for row in annotations.judgements(lever))


def test_clips_that_should_be_one_sound_are_compared(lever):
    annotations.want(lever)
    assert Comparison.objects.count() == 4
    while annotations.compare_one():
        pass
    rows = annotations.comparisons(lever)
    assert len(rows) == 4 and all(r["state"] == "done" and r["reason"] == "" and r["snr_db"] is not None for r in rows)


def test_only_a_lever_that_claims_to_be_identical_is_compared(lever):
    lever.wanted["claims_identical"] = False
    annotations.want(lever)
    assert Comparison.objects.count() == 0


def test_nothing_that_decides_can_see_an_annotation():
    """The import graph: evidence, its figures and the decision never reach annotations or judges."""
    import ast
    from pathlib import Path

    gate = Path(advance.__file__).parent
    seen, todo = set(), ["evidence", "decide", "measured", "described", "identity", "pace", "policy"]
    while todo:
        name = todo.pop()
        file = gate / f"{name}.py"
        if name in seen or not file.exists():
            continue
        seen.add(name)
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "gate":
                todo += [a.name for a in node.names] if node.module == "gate" else [node.module.split(".")[1]]
                assert not {"Judgement", "Comparison"} & {a.name for a in node.names}, name
    assert not {"annotations", "judges"} & seen


@pytest.mark.parametrize("answer", [lambda self: time.sleep(5.0), lambda self: drip(self)])
def test_a_slow_judge_is_given_up(provider, monkeypatch, answer):
    monkeypatch.setattr(judges, "WAIT_S", 1.0)
    provider.RequestHandlerClass = type("Slow", (Provider,), {"do_POST": answer})
    begin = time.monotonic()
    with pytest.raises(judges.JudgeFailed):
        judges.ask(judges.configured(), request())
    assert time.monotonic() - begin < 3


def drip(handler):
    handler.send_response(200)
    handler.end_headers()
    for _ in range(20):
        handler.wfile.write(b" ")
        time.sleep(0.3)


@pytest.mark.parametrize("url", ["http://judge:port/x", "not a url", "ftp://"])
def test_a_judge_that_cant_be_made_holds_no_verdict(lever, settings, url):
    settings.JUDGE, settings.JUDGE_URL, settings.JUDGE_KEY = "http", url, "secret"
    annotations.want(lever)
    annotations.ring()
    while annotations.judge_one():  # one that can be made, and not be reached, fails and is told
        pass
    assert not Judgement.objects.exclude(error="").exclude(error__contains="can't be reached").exists()


def test_a_scorecard_asked_of_one_judge_is_answered_by_no_other(lever, provider):
    sentence, clip, _ = identity.clip_pairs(lever)[0]
    Judgement.objects.create(clip=clip, sentence=sentence, judge="http:old.example.org")
    assert annotations.judge_one() is False and Judgement.objects.get().state == "queued"
    assert annotations.judgements(lever) == []


def test_whatever_a_judge_raises_is_a_sentence(settings):
    class Broken:
        name = "broken"

        def judge(self, asked):
            raise RuntimeError("no licence")

    with pytest.raises(judges.JudgeFailed, match="The judge failed: RuntimeError: no licence"):
        judges.ask(Broken(), request())
