import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth import configuration as schema

BASE = {"name": "base", "model": {"path": "kokoro-82m"}}


def test_the_digest_names_the_system_and_not_its_label():
    one, two = schema.parse(BASE), schema.parse(BASE | {"name": "other", "note": "x", "expect_bit_exact": True})
    assert one.digest() == two.digest()
    assert schema.parse(BASE | {"voice": {"preset": "a"}}).digest() != one.digest()


def test_writing_out_a_default_changes_nothing():
    assert schema.parse(BASE | {"voice": {"speed": 1.0}, "compile": []}).digest() == schema.parse(BASE).digest()


@given(st.permutations(["name", "model", "voice", "sampling"]))
def test_the_order_of_keys_changes_nothing(order):
    body = BASE | {"voice": {"preset": "a"}, "sampling": {"top_k": 5}}
    assert schema.parse({key: body[key] for key in order}).digest() == schema.parse(body).digest()


@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        ({"colour": "red"}, "unknown_key", "configuration.colour"),
        ({"sampling": {"temprature": 1}}, "unknown_key", "configuration.sampling.temprature"),
        ({"model": {}}, "configuration_invalid", "configuration.model"),
        ({"model": {"path": "a", "id": "b"}}, "configuration_invalid", "configuration.model"),
        ({"quantisation": [{"match": "(", "bits": 4}]}, "configuration_invalid", "configuration.quantisation.0.match"),
        ({"quantisation": [{"match": ".", "bits": 7}]}, "configuration_invalid", "configuration.quantisation.0.bits"),
        ({"quantisation": [{"match": ".", "bits": 4, "keep": True}]}, "configuration_invalid", "configuration.quantisation.0"),
        ({"runtime": {"package": "git+https://x/y@main"}}, "configuration_invalid", "configuration.runtime.package"),
        ({"name": "Has Spaces"}, "configuration_invalid", "configuration.name"),
        ({"batching": {"size": 0}}, "configuration_invalid", "configuration.batching.size"),
    ],
)
def test_what_is_wrong_is_named(change, code, field):
    with pytest.raises(schema.Refused) as caught:
        schema.parse(BASE | change)
    assert (caught.value.code, caught.value.field) == (code, field)
    assert field in caught.value.message and caught.value.message.endswith(".")


def test_the_difference_lists_paths_with_both_values():
    parent, candidate = schema.parse(BASE), schema.parse(BASE | {"voice": {"preset": "a"}, "sampling": {"top_k": 5}})
    changes = schema.difference(candidate, parent)
    assert changes == {"sampling.top_k": (None, "5"), "voice.preset": (None, '"a"')}
    assert schema.sections(changes) == ["sampling", "voice"]
