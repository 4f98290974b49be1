"""Sentences are used up: the small tests of the specification, and what a corpus file may not hold."""

import hashlib
import random

import pytest

from gate import corpora, draws, lineage, lock, policy, register
from gate.models import Corpus, Lever, Use
from gate.sentences import sentence_digest
from synth.configuration import Refused
from synth.models import Sentence
from tests import factories

WORDS = [
    "amber", "basket", "cedar", "dragon", "ember", "falcon", "garden", "harbour", "island", "jacket", "kettle", "lantern", "marble",
    "needle", "orchard", "pepper", "quiver", "ribbon",
]  # fmt: skip


def sentences(count, start=0):
    """Different sentences by the dozen."""
    rng = random.Random(start)  # noqa: S311
    return [" ".join(rng.sample(WORDS, 6)) + f" {WORDS[k % 18]} {WORDS[k // 18 % 18]}." for k in range(count)]


def corpus(name="big", count=400, start=0, language="en", texts=None):
    data = "\n".join(texts or sentences(count, start)).encode()
    return corpora.keep(name, language, corpora.read(data, f"{name}.txt", language), data).corpus


def lever(slug="one", corpus_="big", change=None, plan=None, language="en", **fields):
    spec = factories.spec(slug, change=change, plan={"sentences": None} | (plan or {}), **fields)
    spec["sentences"] = {"language": language, "corpus": corpus_}
    return register.register([spec])[0]


def spend(of, count, purpose="confirmation"):
    """Uses as the lock writes them."""
    of.candidate, of.parent  # noqa: B018
    order = list(of.corpus.sentences.order_by("digest"))[:count]
    draw = of.draw or _draw(of, order, purpose)
    for sentence in order:
        Use.objects.create(draw=draw, lever=of, sentence=sentence, purpose=purpose)
    return order


def _draw(of, order, purpose):
    from gate.models import Draw

    return Draw.objects.create(
        key=of.campaign, corpus=of.corpus, purpose=purpose, salt="s", order=[s.digest for s in order], list_sha256="x"
    )


DETUNED = {"sampling": {"extra": {"detune": 1.02}}}


def test_one_text_by_two_speakers_is_one_sentence():
    assert sentence_digest("The ferry leaves.", "en") == sentence_digest("the ferry, leaves", "en")


def test_a_spelling_of_a_used_sentence_is_used(db):
    made = corpus("hindi", language="hi", texts=["मैं हिन्दी में लिखता हूँ।", "बाहर बारिश हो रही है।", "खाना मेज़ पर रखा है।"])
    one = lever(corpus_="hindi", language="hi")
    spend(one, 3)
    again = corpus("hindi two", language="hi", texts=["मैं हिंदी में लिखता हूं।", "कल सुबह ट्रेन पकड़नी है।", "दुकान कब खुलेगी?"])
    assert made.sentences.filter(pk__in=again.sentences.all()).count() == 1
    two = register.register(
        [{**factories.spec("two", change=DETUNED, plan={"sentences": 2}), "sentences": {"language": "hi", "corpus": "hindi two"}}]
    )[0]
    assert draws.stock(again, [two], two.campaign).left == 2


def test_a_near_duplicate_of_a_used_sentence_is_used(db):
    corpus("first", texts=["The old ferry leaves the harbour at dawn on Mondays.", "She kept every letter."])
    spend(lever(corpus_="first"), 2)
    second = corpus("second", texts=["The old ferry leaves the harbours at dawn on Mondays.", "Nobody told the driver.", "Turn left here."])
    two = lever("two", "second", DETUNED, {"sentences": 2})
    found = draws.stock(second, [two], two.campaign)
    assert (found.total, found.near_spent, found.left) == (3, 1, 2)


def test_what_is_appended_to_a_corpus_changes_no_order(db):
    rows = list(corpus("a", 200).sentences.all())
    more = rows + list(corpus("b", 1000, 1).sentences.all())
    order = [s.pk for s in draws.draw(rows, 200, "salt")]
    mine = {s.pk for s in rows}
    assert [s.pk for s in draws.draw(more, len(more), "salt") if s.pk in mine] == order
    assert [s.pk for s in draws.draw(rows, 200, "other")] != order


def test_a_draw_has_its_corpus_strata(db):
    texts = [t[:-1] + ("?" if k % 4 == 0 else ".") for k, t in enumerate(sentences(200))]
    chosen = draws.draw(list(corpus(texts=texts).sentences.all()), 40, "salt")
    assert len(chosen) == 40 and sum(s.text.endswith("?") for s in chosen) == 10


def test_too_few_fresh_sentences_are_a_refusal_that_names_the_number_left(db):
    corpus(count=400)
    spend(lever(), 150)
    with pytest.raises(Refused, match="asks for 300 fresh sentences and 250 of 400 are left for this lineage \\(150 spent\\)") as refused:
        lever("two", change=DETUNED, plan={"sentences": 300})
    assert refused.value.field == "plan.sentences" and not Lever.objects.filter(slug="two").exists()
    assert lever("three", change=DETUNED, plan={"sentences": 250}).pk
    assert lever("four", change=DETUNED, plan={"sentences": 400, "purpose": "tuning"}).pk


def preflight(of, parent, candidate):
    """What a worker found of the weights of both, as it reports it."""
    from synth.models import Preflight

    for configuration, tensors in ((of.parent, parent), (of.candidate, candidate)):
        Preflight.objects.filter(configuration=configuration).update(state="done", report={"tensors": tensors})


def test_levers_that_rework_the_same_weights_are_proposed_and_may_be_linked_late(db, signed_in):
    corpus(count=40)
    before = {f"layer{k}": "same" for k in range(40)}
    one = lever("g64", change={"quantisation": [{"match": "^talker", "bits": 4, "group_size": 64}]})
    two = lever("g32", parent=factories.tone(detune=1.5), change={"levers": [{"lever": "tests.tone:other", "a": 1, "b": 2, "c": 3}]})
    other = lever("sampler", parent=factories.tone(detune=2.5), change={"sampling": {"extra": {"x": 1, "y": 2, "z": 3}}})
    preflight(one, before, before | {f"layer{k}": "four bits" for k in range(20)})
    preflight(two, before, before | {f"layer{k}": "other four bits" for k in range(1, 20)})
    preflight(other, before, before)
    assert lineage.proposed(two) == [(one, "changes nearly the same weights")] and lineage.proposed(other) == []
    assert "g64</a> changes nearly the same weights" in signed_in.get("/levers/g32/").content.decode()
    assert signed_in.post("/levers/g64/variant", {"of": "g32"}).status_code == 409  # of an earlier one only
    assert signed_in.post("/levers/g32/variant", {"of": "g64"}).status_code == 302
    assert signed_in.post("/levers/g32/variant", {"of": "sampler"}).status_code == 409  # a link is never taken back
    two.refresh_from_db()
    assert lineage.lineage(two) == {one.pk, two.pk}


def test_a_declared_variant_shares_uses_and_a_near_copy_is_proposed(db):
    corpus(count=60)
    rules = [{"match": "^talker", "bits": 4, "group_size": 64}, {"match": "^decoder", "keep": True}]
    one = lever("g64", change={"quantisation": rules}, plan={"sentences": 30})
    spend(one, 30)
    with pytest.raises(Refused, match="30 of 60 are left"):  # it changes something besides, which makes it no less a further attempt
        lever("more", change={"quantisation": rules, "voice": {"speed": 1.1}}, plan={"sentences": 60})
    other = lever("elsewhere", change={"voice": {"speed": 1.1}}, plan={"sentences": 60})
    assert lineage.lineage(other) == {other.pk} and lineage.proposed(other) == []
    copy = lever(
        "copy", parent=factories.tone(detune=1.5), change={"quantisation": rules, "sampling": {"extra": {}}}, plan={"sentences": 60}
    )
    assert lineage.proposed(copy) == [(one, "is nearly the same configuration")]
    with pytest.raises(Refused, match="30 of 60 are left"):
        lever("tied", change={"voice": {"speed": 1.2}}, plan={"sentences": 60}, variant_of="g64")
    tied = lever("tied", change={"voice": {"speed": 1.2}}, plan={"sentences": 30}, variant_of="g64")
    assert lineage.lineage(tied) == {one.pk, other.pk, tied.pk} == lineage.lineage(one)  # `other` changed the same sections as `tied`
    with pytest.raises(Refused, match="there is no lever of that name"):
        lever("lost", change=DETUNED, variant_of="nobody")


def test_deleting_a_run_gives_no_sentence_back(db):
    corpus(count=40)
    one = lever(plan={"sentences": 20})
    order = spend(one, 20)
    from gate.models import AppendOnly

    with pytest.raises(AppendOnly.WrittenOnce):
        Use.objects.all().delete()
    with pytest.raises(Exception, match="(?i)protect|referenc"):
        one.delete()
    two = lever("two", change=DETUNED, plan={"sentences": 20})
    assert {s.pk for s in draws.stock(two.corpus, [two], two.campaign).fresh}.isdisjoint({s.pk for s in order})


def test_a_sentence_is_worn_out_for_its_root_after_five_draws(db):
    corpus(count=20)
    for k in range(5):
        spend(
            lever(
                f"lever-{k}",
                change={"runtime": {"cache_limit_mb": 100 + k}}
                if k == 0
                else {
                    ["voice", "adapter", "streaming", "batching"][k - 1]: [
                        {"speed": 1.1},
                        {"path": "x", "scale": 1.0},
                        {"interval_s": 1.0},
                        {"size": 2},
                    ][k - 1]
                },
                plan={"sentences": 20},
            ),
            15,
        )
    with pytest.raises(Refused, match="5 of 20 are left for this lineage \\(15 worn out\\)"):
        lever("sixth", change={"compile": ["talker"]}, plan={"sentences": 20})


def test_levers_of_one_campaign_do_not_spend_each_others_sentences(db):
    corpus(count=20)
    specs = [
        factories.spec(slug, change={"sampling": {"extra": {"detune": pitch}}}, plan={"sentences": 20})
        for slug, pitch in (("one", 1.01), ("two", 1.02))
    ]
    for spec in specs:
        spec["sentences"] = {"language": "en", "corpus": "big"}
    one, two = register.register(specs)
    assert one.campaign == two.campaign
    spend(one, 20)
    assert draws.stock(two.corpus, [one, two], two.campaign).left == 20


def test_a_further_attempt_is_only_within_what_the_first_one_reserved(db):
    corpus(count=90)
    one = lever(plan={"sentences": 30, "attempts": 2})
    two = lever("two", change=DETUNED, plan={"sentences": 30, "attempts": 2})
    greedy = lever("greedy", change={"sampling": {"extra": {"detune": 1.03}}}, plan={"sentences": 30, "attempts": 5})
    from gate.models import Plan

    for made in (one, two):
        Plan.objects.create(lever=made, body={"attempts": made.wanted["attempts"]}, digest="x")
    assert lock.attempt_of(one) == (1, 2) and lock.attempt_of(two) == (2, 2) and lock.attempt_of(greedy) == (3, 2)
    assert policy.of(two.wanted).share == pytest.approx(0.0125)


# -- files -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.txt", "One here.\n\nTwo.", "line 2 is empty"), ("a.txt", "One here.\none, here!", "line 2 says the same as line 1"),
        ("a.txt", "One here.\n...", "line 2: The sentence '...' has nothing to say"), ("a.txt", "", "holds no sentence"),
        ("a.txt", "Call 112 now.", "line 1: The sentence 'Call 112 now.' has digits or signs"),
        ("a.txt", "Ask Dr. Smith.", "has abbreviations"), ("a.csv", "sentence\nOne.", "needs a header with a column `text`"),
        ("a.csv", "text,spoken_refs\nOne.,\n,\n", "line 3 is empty"), ("a.jsonl", '{"text": "One."}\n{"txt": "Two."}', "line 2 is not an object"),
        ("a.jsonl", '{"text": "One."}\nnot json', "line 2 is not an object"), ("a.jsonl", '{"text": 5}', "text is not a text"),
        ("a.jsonl", '{"text": "Call 112.", "spoken_refs": ["..."]}', "nothing to say"), ("a.docx", "One.", "write a corpus as"),
        ("a.txt", "One here.\nTwo \ud800 there.", "not UTF-8"),
    ],
)  # fmt: skip
def test_a_bad_line_is_named(name, content, told):
    with pytest.raises(Refused, match=r".") as refused:
        corpora.read(content.encode("utf-8", "surrogatepass"), name, "en")
    assert told in refused.value.message


def test_the_three_formats_hold_the_same():
    found = [
        [(x.text.text, x.text.spoken_refs) for x in corpora.read(data.encode(), name, "en")]
        for name, data in (
            ("a.csv", "\ufefftext,spoken_refs\nOne here.,\n\"Call 112, now.\",Call one one two now.|Call a hundred and twelve now.\n"),
            ("a.jsonl", '{"text": "One here."}\n{"text": "Call 112, now.", "spoken_refs": ["Call one one two now.", "Call a hundred and twelve now."]}'),
        )
    ]  # fmt: skip
    assert found[0] == found[1] == [("One here.", []), ("Call 112, now.", ["Call one one two now.", "Call a hundred and twelve now."])]


def test_a_name_is_one_content(db):
    corpus("mine", 10)
    assert corpus("mine", 10).pk == Corpus.objects.get().pk
    with pytest.raises(Refused, match="another corpus has it"):
        corpus("mine", 11)


def test_near_duplicates_are_those_a_comparison_of_all_pairs_finds():
    rng = random.Random(7)  # noqa: S311
    forms = [corpora.plain(t, "en") for t in sentences(120)]
    for k in range(60):
        text = list(forms[k])
        for _ in range(rng.randint(1, 7)):
            text[rng.randrange(len(text))] = rng.choice("abcdefgh")
        forms.append("".join(text))
    forms += ["aye", "ayes", "oh", "ohh", "nothinghere", "nothinghere!"]
    grams = [corpora._grams(f) for f in forms]
    pairs = [(i, j) for i in range(len(forms)) for j in range(i + 1, len(forms)) if corpora._near(forms[i], forms[j], grams[i], grams[j])]
    assert corpora.near_duplicates(forms) == pairs and len(pairs) > 20


def test_the_bundled_corpora_are_what_they_should_be(db):
    found = {x.corpus.language: x for x in corpora.bundled()}
    assert {k: x.corpus.sentences.count() for k, x in found.items()} == {"en": 662, "hi": 505, "ja": 87}
    assert all(x.near == [] and x.corpus.licence == "MIT" for x in found.values())
    hindi = [corpora.strata(s.text, "hi", s.spoken_refs) for s in Sentence.objects.filter(language="hi")]
    assert sum("retroflex" in s for s in hindi) >= 120 and sum("aspirated" in s for s in hindi) >= 120
    english = [corpora.strata(s.text, "en") for s in Sentence.objects.filter(language="en")]
    for name in ("short", "medium", "long", "very-long", "near-30-s", "question", "exclamation", "digits"):
        assert sum(name in s for s in english) >= 10, name
    assert corpora.bundled() == []
    assert hashlib.sha256((corpora.BUNDLED / "en.jsonl").read_bytes()).hexdigest() == found["en"].corpus.sha256
