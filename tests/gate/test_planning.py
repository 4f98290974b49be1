"""The planner's page and command, the pages of sentences."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command

from gate import planning, policy, register
from gate.models import Corpus
from tests import factories


def test_the_policys_plan_is_likely_to_pass_and_a_small_one_is_not():
    found = planning.outlook(policy.parse({"listening": {"required": False}}), 300)
    assert found.passes > 0.9 and found.votes == 0 and found.problems == ()
    assert (
        planning.outlook(policy.parse({}), 300, raters=4, kind="rater-heavy").hint == "More raters would help most; more sentences hardly."
    )
    small = planning.outlook(policy.parse({"listening": {"required": False}}), 50)
    assert small.passes < 0.5 and "Below the floor of 100 sentences" in small.problems[0]


def test_reserved_attempts_cost_power():
    one, five = (planning.outlook(policy.parse({"attempts": k, "listening": {"required": False}}), 150).passes for k in (1, 5))
    assert five < one


def test_a_plan_that_will_most_likely_end_undecided_is_taken_with_a_warning(db):
    made = register.register(
        [
            factories.spec(
                texts=[f"This is sentence {a} {b}." for a in "abcdefgh" for b in "stuvwxyzklmnopqr"],
                plan={"margins": {"cer": 0.005}, "floor": {"sentences": 100, "clips": 100}},
            )
        ]
    )[0]
    assert any("passes with a chance of" in w and "character error rate" in w for w in made.warnings)


def test_the_command_says_what_a_plan_costs(db, capsys, tmp_path):
    call_command("plan")
    said = capsys.readouterr().out
    assert "300 sentences x 1, 300 clips an arm; 600 votes by 12 raters." in said and "ends undecided with nothing wrong in" in said
    call_command("plan", "examples/demonstration.yaml", "--sentences", "8")
    assert "8 sentences x 1" in capsys.readouterr().out
    file = tmp_path / "plan.yaml"
    for text, told in (
        ("margins: {cer: 0}", "plan.margins.cer is 0"),
        ("margins: {cer: -0.1}", "-0.1"),
        ("margins: {cer: .nan}", "plan.margins.cer"),
        ("replicates: 0", "plan.replicates is 0"),
        ("- a", "mapping"),
        ("views: 3", "plan.views is not a known key"),
    ):
        file.write_text(text)
        with pytest.raises(CommandError, match=told):
            call_command("plan", str(file))
    with pytest.raises(CommandError, match="2 or more"):
        call_command("plan", "--sentences", "1")


def test_the_planners_page_reckons_and_refuses(signed_in):
    page = signed_in.get("/plan/").content.decode()
    assert "With nothing wrong, all of it passes with a chance of" in page and "Net preference" in page
    bad = signed_in.get("/plan/", {"sentences": "0", "cer": "nan"})
    assert bad.status_code == 422 and b"greater than or equal to 2" in bad.content
    query = {
        "sentences": 150,
        "replicates": 3,
        "attempts": 1,
        "cer": 0.02,
        "dnsmos": 0.05,
        "length": 0.03,
        "preference": 0.15,
        "votes_per_pair": 0,
        "raters": 12,
        "panel": "low",
    }
    assert "nobody is asked" in signed_in.get("/plan/", query).content.decode()


def test_a_corpus_is_added_on_the_page_and_a_bad_line_is_named_beside_the_file(signed_in):
    def send(content, name="mine", file="mine.txt"):
        return signed_in.post("/sentences/", {"file": SimpleUploadedFile(file, content), "name": name, "language": "en", "licence": "MIT"})

    assert send(b"The ferry leaves.\nShe kept it.").status_code == 302
    assert Corpus.objects.get().licence == "MIT"
    page = signed_in.get("/sentences/").content.decode()
    assert "<td>mine</td>" in page
    bad = send(b"One.\n\nTwo.", "other")
    assert bad.status_code == 422 and b"mine.txt, line 2 is empty" in bad.content
    assert b"another corpus has it" in send(b"Another.").content and Corpus.objects.count() == 1


def test_a_corpus_is_added_by_the_command(db, tmp_path, capsys):
    file = tmp_path / "hindi.jsonl"
    file.write_text('{"text": "बाहर बारिश हो रही है।"}\n{"text": "खाना मेज़ पर रखा है।"}', encoding="utf-8")
    call_command("corpus", str(file), "--language", "hi", "--licence", "CC0")
    call_command("corpus")
    assert "hi       2 sentences  hindi  CC0" in capsys.readouterr().out
    for arguments, told in (
        ([str(file)], "Say which language"),
        ([str(tmp_path / "no.txt"), "--language", "hi"], "can't be read"),
        ([str(file), "--language", "xx"], "language is 'xx'"),
    ):
        with pytest.raises(CommandError, match=told):
            call_command("corpus", *arguments)


def test_the_policy_is_versioned_owned_by_leads_and_fills_plans(signed_in, admin_client):
    from gate import site_policy
    from gate.models import Policy

    page = admin_client.get("/policy/").content.decode()
    assert "cer: 0.02" in page and "the built-in policy" in page
    assert signed_in.post("/policy/", {"body": "margins: {cer: 0.5}", "note": "x"}).status_code == 403 and Policy.objects.count() == 0
    assert "Put in force" not in signed_in.get("/policy/").content.decode()
    for body, told in (
        ("margins: {cer: 0}", "plan.margins.cer is 0"),
        ("margins: [", "not one YAML document"),
        ("colour: red", "plan.colour is not a known key"),
    ):
        bad = admin_client.post("/policy/", {"body": body, "note": "x"})
        assert bad.status_code == 422 and told in bad.content.decode()
    assert admin_client.post("/policy/", {"body": "margins: {cer: 0.01}", "note": "our recogniser is better now"}).status_code == 302
    assert site_policy.current().margins.cer == 0.01 and site_policy.current().margins.dnsmos == 0.05
    strict = register.register([factories.spec("strict")])[0]
    assert strict.wanted["margins"]["cer"] == 0.01
    assert "margin_loosened:cer" in policy.caps(policy.parse({"margins": {"cer": 0.02}}), site_policy.current())
    assert 'value="0.01"' in signed_in.get("/plan/").content.decode()
    with pytest.raises(Policy.WrittenOnce):
        Policy.objects.all().delete()


def test_a_new_policy_changes_no_lever_under_way(db, admin_user):
    from gate import site_policy
    from gate.models import Plan

    old = site_policy.replace({"margins": {"cer": 0.03}}, "looser", admin_user)
    lever = register.register([factories.spec("one", plan={"margins": {"cer": 0.03}})])[0]
    plan = Plan.objects.create(lever=lever, body={"policy": old.pk}, digest="x")
    site_policy.replace({"margins": {"cer": 0.01}}, "tighter", admin_user)
    assert site_policy.locked_under(plan).margins.cer == 0.03


def test_an_upload_with_near_duplicates_says_so(signed_in):
    lines = b"The old ferry leaves the northern pier at dawn.\nThe old ferry leaves the northern pier at dawns.\nQuite another one."
    page = signed_in.post(
        "/sentences/", {"file": SimpleUploadedFile("near.txt", lines), "name": "near", "language": "en"}, follow=True
    ).content.decode()
    assert "1 pairs of lines are nearly the same (1 and 2)" in page
