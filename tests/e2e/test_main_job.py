"""From a lever's file through a real voice, real measurements and votes over HTTP to the page and the exit code."""

import time

import pytest

from tests.e2e.stack import Stack, vote

TEXTS = [
    "I left my umbrella on the bus.",
    "Can you help me move this table?",
    "I would like a cup of hot tea.",
]
PARENT = {"name": "kokoro", "model": {"path": "kokoro-82m"}, "voice": {"preset": "jm_kumo"}}
PLAN = {
    "benefit": "none", "margins": {"cer": 0.1, "dnsmos": 0.6, "length": 0.08, "level": 0.5, "catastrophe": 0.9, "preference": 0.9},
    "floor": {"sentences": 3, "clips": 3}, "panel": {"raters": 2, "sentences": 3, "votes": 6},
    "listening": {"votes_per_pair": 3, "looks": [1.0], "assay": False, "controls": 4}, "timing": {"blocks": 0},
}  # fmt: skip


def lever(slug, change, **fields):
    return {"lever": slug, "parent": PARENT, "change": change, "sentences": {"language": "en", "texts": TEXTS}, "plan": PLAN} | fields


def quantised(bits):
    return {"quantisation": [{"match": r"^(bert|bert_encoder|predictor)\b", "bits": bits, "group_size": 64}]}


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_from_a_file_to_a_verdict_on_a_real_voice():
    begin = time.monotonic()
    with Stack() as stack:
        stack.register(
            lever("two", quantised(2)), lever("eight", quantised(8)),
            lever("folded", {"levers": [{"lever": "fold-weight-norm"}], "expect_bit_exact": True}),
        )  # fmt: skip
        page = stack.dashboard()
        assert page.get("/levers/two/clips.csv").status_code in (404, 409)
        stack.wait(lambda: all(stack.state(s)["state"] == "settled" for s in ("two", "folded")), 300, "two verdicts")
        stack.wait(lambda: stack.state("eight")["state"] == "listening", 120, "the listening test")

        two = stack.manage("verdict", "two", check=False)
        assert two.returncode == 1 and "beyond_margin" in two.stdout
        folded = stack.manage("verdict", "folded", check=False)
        assert folded.returncode == 5 and "bit-identical" in folded.stdout
        assert stack.manage("verdict", "folded", "--allow-provisional", check=False).returncode == 0
        assert stack.manage("verdict", "eight", check=False).returncode == 4

        shown = page.get("/levers/eight/").text
        assert "0 / 9" in shown and "preferred the candidate" not in shown
        assert page.get("/levers/eight/votes.csv").status_code == 409
        assert vote(stack.rater(), lambda k: "same") >= 4  # three tests, a practice pair, and perhaps a control
        assert "3 / 9" in page.get("/levers/eight/").text
        assert vote(stack.rater(), lambda k: "same") >= 4  # three tests, a practice pair, and perhaps a control
        assert vote(stack.rater(), lambda k: "same") >= 4  # three tests, a practice pair, and perhaps a control
        stack.wait(lambda: stack.state("eight")["state"] == "settled", 20, "the human look")
        eight = stack.state("eight")
        assert (eight["verdict"], eight["evidence"]) == ("provisional", "heard")
        assert {r["code"] for r in eight["reasons"]} >= {"floor_lowered", "panel_lowered", "assay_waived"}
        assert stack.manage("verdict", "eight", check=False).returncode == 5

        shown = page.get("/levers/eight/").text
        assert "9 votes by 3 listeners" in shown and "provisional" in shown
        assert len(page.get("/levers/eight/votes.csv").text.strip().splitlines()) == 10
        assert len(page.get("/levers/two/clips.csv").text.strip().splitlines()) == 7
        assert stack.ask("Render.objects.exclude(outcome='made').count()") == 0
    print(f"the main job took {time.monotonic() - begin:.0f} s")
