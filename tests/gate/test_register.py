import pytest

from gate import climb, register, specfile
from gate.models import Corpus, Lever
from synth.configuration import Refused
from synth.models import Configuration, Preflight, Sentence
from tests import factories
from tests.factories import spec, tone


def test_a_lever_is_registered_with_everything_it_needs(db):
    (lever,) = register.register([spec()])
    assert (lever.state, lever.parent.name, lever.candidate.name) == ("checking", "tone", "louder")
    assert Preflight.objects.count() == 2
    assert lever.corpus.sentences.count() == 4
    assert [e.text for e in lever.history.all()] == ["registered; tone and louder are tried on a worker"]


def with_candidate(**body):
    made = spec()
    del made["change"]
    return made | {"candidate": body}


def sentences(*texts, language="en"):
    return spec() | {"sentences": {"language": language, "texts": list(texts)}}


#: Nine levels of nine aliases: 387 million values from a few hundred characters.
BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]\n" for k in range(1, 10))

BAD = {
    "unknown key in the spec": (spec() | {"colour": 1}, "unknown_key", "spec.colour"),
    "unknown key in the parent": (spec(parent=tone() | {"colour": 1}), "unknown_key", "parent.colour"),
    "unknown key in the change": (spec(change={"colour": 1}), "unknown_key", "change.colour"),
    "unknown key in the plan": (spec(plan={"colour": 1}), "unknown_key", "plan.colour"),
    "unknown benefit": (spec(plan={"benefit": "beauty"}), "configuration_invalid", "plan.benefit"),
    "looks that fall": (spec(plan={"listening": {"looks": [1.0, 0.5]}}), "configuration_invalid", "plan.listening.looks"),
    "looks that are too close": (
        spec(plan={"listening": {"looks": [0.5, 0.5000001, 1.0]}}),
        "configuration_invalid",
        "plan.listening.looks",
    ),
    "a first look at nothing": (spec(plan={"listening": {"looks": [0.01, 1.0]}}), "configuration_invalid", "plan.listening.looks"),
    "automatic looks that fall": (spec(plan={"looks": [1.0, 0.5]}), "configuration_invalid", "plan.looks"),
    "fewer sentences than the smallest look": (spec(plan={"looks": [0.1, 1.0]}), "look_too_small", "plan.looks"),
    "a first sound of what does not stream": (
        spec(plan={"benefit": "first_audio", "timing": {"blocks": 2}}),
        "benefit_needs_streams",
        "plan.benefit",
    ),
    "an assay without controls": (spec(plan={"listening": {"assay": True}}), "assay_unavailable", "plan.listening.controls"),
    "one timed block": (spec(plan={"timing": {"blocks": 1}}), "benefit_needs_blocks", "plan.timing.blocks"),
    "a benefit without its blocks": (spec(plan={"benefit": "memory"}), "benefit_needs_blocks", "plan.timing.blocks"),
    "a shift of length nobody hears": (
        spec(plan={"length_shift": 1.1, "listening": {"required": False}}),
        "shift_needs_listeners",
        "plan.length_shift",
    ),
    "looks at the same sentences": (spec(plan={"looks": [0.5, 0.55, 1.0]}), "look_too_small", "plan.looks"),
    "one seed for all": (spec(change={"sampling": {"extra": {"seed": 7}}}), "fixed_seed", "candidate.sampling.extra.seed"),
    "a panel out of reach": (spec(plan={"panel": {"votes": 99}}), "panel_out_of_reach", "plan.panel"),
    "an infinite margin": (spec(plan={"margins": {"cer": float("inf")}}), "not_finite", "spec.plan.margins.cer"),
    "a temperature of NaN": (spec(change={"sampling": {"temperature": float("nan")}}), "not_finite", "spec.change.sampling.temperature"),
    "a NUL in the title": (spec(title="a\0b"), "not_storable", "spec.title"),
    "a date for a title": (spec(title=__import__("datetime").date(2026, 1, 1)), "not_plain", "spec.title"),
    "a variable that would run code": (
        spec(change={"runtime": {"env": {"LD_PRELOAD": "/tmp/x.so"}}}),
        "configuration_invalid",
        "change.runtime.env",
    ),
    "a slug that is too long": (spec(lever="a" * 60), "configuration_invalid", "spec.lever"),
    "no sentences": (sentences(), "no_sentences", "sentences"),
    "one sentence": (sentences("Only one."), "too_few_sentences", "sentences"),
    "a sentence twice": (sentences("Hello there.", "hello  THERE!"), "duplicate_sentence", "sentences"),
    "a sentence in two spellings": (sentences("हिन्दी में", "हिंदी में", language="hi"), "duplicate_sentence", "sentences"),
    "an empty sentence": (sentences("Hello.", "..."), "sentence_empty", "sentences"),
    "digits without a spoken form": (sentences("Hello.", "It costs 50 now."), "sentence_needs_spoken_refs", "sentences"),
    "half a surrogate": (sentences("Hello.", "a\ud800"), "sentence_not_text", "sentences"),
    "unknown language": (sentences("a", "b", language="xx"), "unknown_language", "sentences.language"),
    "unknown corpus": (spec() | {"sentences": {"language": "en", "corpus": "none"}}, "unknown_corpus", "sentences.corpus"),
    "candidate equal to its parent": (with_candidate(**tone(name="same")), "candidate_equals_parent", "candidate"),
    "neither candidate nor change": ({k: v for k, v in spec().items() if k != "change"}, "candidate_or_change", "candidate"),
    "unknown parent by name": (spec(parent="nobody"), "unknown_parent", "parent"),
    "a slug with spaces": (spec(lever="Not a slug"), "configuration_invalid", "spec.lever"),
    "more sentences than there are": (spec(plan={"sentences": 9}), "too_few_sentences", "plan.sentences"),
}


@pytest.mark.parametrize(("made", "code", "field"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_one_sentence_and_nothing_is_half_registered(db, made, code, field):
    with pytest.raises(Refused) as caught:
        register.register([spec(lever="good"), made])
    assert (caught.value.code, caught.value.field) == (code, field)
    assert caught.value.message[-1] in ".!" and "\n" not in caught.value.message
    assert [m.objects.count() for m in (Lever, Configuration, Preflight, Corpus, Sentence)] == [0] * 5


def test_a_taken_name_is_refused(db):
    register.register([spec()])
    with pytest.raises(Refused, match="that name is taken"):
        register.register([spec()])


def test_more_than_one_section_is_a_warning_that_stays(db):
    (lever,) = register.register([spec(change={"sampling": {"top_k": 3}, "voice": {"speed": 1.1}})])
    assert lever.warnings[-1:] == [
        "More than one section changes at once (sampling, voice): the verdict will be about all of them together."
    ]


def test_levers_registered_together_share_a_campaign_when_they_ask_for_the_same_sentences(db):
    one, two, other = register.register(
        [
            spec("one"),
            spec("two", change={"voice": {"speed": 1.1}}),
            spec("other", texts=["Quite another one.", "And one more.", "A third."]),
        ]
    )
    assert other.campaign != one.campaign
    (alone,) = register.register([spec("alone", change={"voice": {"speed": 1.2}})])
    assert one.campaign == two.campaign != alone.campaign


def test_a_parent_can_be_named(db):
    factories.configuration("known")
    (lever,) = register.register([spec(parent="known")])
    assert lever.parent.name == "known"


def test_a_failed_preflight_is_tried_again_by_a_new_registration(db):
    register.register([spec("one")])
    Preflight.objects.update(state="failed", attempts=5, error="x")
    register.register([spec("two", change={"voice": {"speed": 1.1}})])
    assert Preflight.objects.get(configuration__name="tone").state == "queued"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a: [", "not_yaml"),
        ("- 1", "not_a_mapping"),
        ("", "not_a_mapping"),
        ("a: 1\n---\nb: 2", "not_yaml"),
        ("levers: []", "levers_invalid"),
        ("levers: [{}]\nx: 1", "unknown_key"),
        ("a: 1\na: 2", "duplicate_key"),
        ("a: &a {b: *a}", "refers_to_itself"),
        ("[" * 5000, "not_yaml"),
        ("a: " + "[" * 40 + "]" * 40, "too_deep"),
        (BOMB, "too_large"),
        ("levers: [1]", "levers_invalid"),
    ],
)
def test_a_file_that_is_no_spec_is_refused(text, code):
    with pytest.raises(Refused) as caught:
        specfile.read_yaml(text)
    assert caught.value.code == code


def test_the_demonstration_file_can_be_registered(db):
    from gate import demonstration

    assert demonstration.wanted()
    made = demonstration.register()
    assert [(x.slug, x.demonstration) for x in made] == [("kokoro-2bit", True), ("kokoro-8bit", True), ("kokoro-folded", True)]
    assert len({x.campaign for x in made}) == 1 and not demonstration.wanted()


def test_every_example_can_be_registered(db, settings):
    for file in sorted((settings.BASE_DIR / "examples").glob("*.yaml")):
        text = file.read_text()
        assert climb.climb(climb.read(text)) == "" if "\nladder:" in text else register.register(specfile.read_yaml(text)), file
