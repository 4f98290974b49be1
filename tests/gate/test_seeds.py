"""The published levers, judged again."""

from django.conf import settings
from django.core.management import call_command

from gate import seeds
from gate.management.commands.seeds import levers, table


def test_the_page_holds_what_the_command_prints(capsys):
    page = (settings.BASE_DIR / "docs" / "seed-verdicts.md").read_text(encoding="utf-8")
    assert table() in page
    call_command("seeds")
    assert capsys.readouterr().out.strip() == table()


def test_where_we_differ_it_is_never_that_we_accept_more():
    rows = seeds.judged(levers())
    assert len(rows) == 15
    assert {r.name: r.ours.verdict for r in rows if r.differs} == {
        "lora-merge-q8": "inconclusive",
        "cp-4bit-g64": "inconclusive",
        "talker-mlp-4bit": "inconclusive",
    }
    assert {r.name for r in rows if r.ours.verdict == "accepted"} == {"compile-code-pred", "lora-merge-q8 + compile (new set)"}
    assert all(r.last.verdict == "rejected" for r in rows if r.differs)
