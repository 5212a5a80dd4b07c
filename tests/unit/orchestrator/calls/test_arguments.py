"""Bending arguments to a schema, and never bending what fits."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.common.toolhost.contract import ToolSpec
from services.orchestrator.calls.arguments import Faulty, Fitted, fit
from services.orchestrator.calls.arguments.repair import repaired
from services.orchestrator.calls.arguments.schema import Schema, compiled

EDIT = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "edits": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "old": {"type": "string"},
                    "new": {"type": "string"},
                    "count": {"type": "integer"},
                },
                "required": ["old", "new"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["path", "edits"],
    "additionalProperties": False,
}
XY = {"old": "x", "new": "y"}
TAGS = {
    "type": "object",
    "properties": {
        "tags": {"type": "array", "items": {"type": "string"}},
        "ids": {"type": "array", "items": {"type": "integer"}},
        "note": {"type": "string"},
        "limit": {"type": "integer", "minimum": 1},
        "ratio": {"type": "number"},
        "deep": {"type": "boolean"},
        "either": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        "maybe": {"type": ["string", "null"]},
    },
}


def spec(parameters: dict[str, Any], name: str = "tool") -> ToolSpec:
    return ToolSpec(name, "", parameters, name, "read", "read")


async def fitted(parameters: dict[str, Any], arguments: str) -> Any:
    result = await fit(spec(parameters), arguments, "en")
    return result.arguments if isinstance(result, Fitted) else result.text


@pytest.mark.spec("TLS-075", "TLS-077")
@pytest.mark.parametrize(
    ("schema", "given_", "expected"),
    [
        (EDIT, {"path": "a", "edits": '[{"old":"x","new":"y"}]'}, {"path": "a", "edits": [XY]}),
        (EDIT, {"path": "a", "edits": XY}, {"path": "a", "edits": [XY]}),
        (EDIT, {"path": "a", **XY}, {"path": "a", "edits": [XY]}),
        (EDIT, {"path": "a", **XY, "count": "2"}, {"path": "a", "edits": [{**XY, "count": 2}]}),
        (TAGS, {"tags": "one"}, {"tags": ["one"]}),
        (TAGS, {"ids": "[1, 2]"}, {"ids": [1, 2]}),
        (TAGS, {"ids": 7}, {"ids": [7]}),
    ],
)  # fmt: skip
async def test_the_three_shapes_are_repaired(schema, given_, expected):
    assert await fitted(schema, json.dumps(given_)) == expected


@pytest.mark.spec("TLS-078", "TLS-079")
@pytest.mark.parametrize(
    ("schema", "given_"),
    [
        # A list of strings, or one string that looks like a list: two readings.
        (TAGS, {"tags": '["a"]'}),
        # Not the fields of one object.
        (EDIT, {"path": "a", "old": "x", "other": "y"}),
        (EDIT, {"path": "a", "old": "x"}),
    ],
)
async def test_what_has_two_readings_or_none_is_refused_as_it_came(schema, given_):
    result = await fit(spec(schema), json.dumps(given_), "en")
    assert isinstance(result, Faulty)
    assert json.loads(result.json) == given_


@pytest.mark.spec("TLS-079")
@pytest.mark.parametrize("value", ['["a"]', '{"a":1}', "5", "true", "null"])
async def test_a_string_stays_a_string_where_a_string_may_stand(value):
    for name in ("note", "either", "maybe"):
        assert await fitted(TAGS, json.dumps({name: value})) == {name: value}


@pytest.mark.spec("PIP-015", "TLS-025")
@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ('{"limit":"5"}', '{"limit":5}'),
        ('{"limit":5.0}', '{"limit":5}'),
        ('{"ratio":"1.10"}', '{"ratio":1.10}'),
        ('{"ratio":2}', '{"ratio":2}'),
        ('{"deep":"true"}', '{"deep":true}'),
        ('{"note":true}', '{"note":"true"}'),
        ('{"note":1.10}', '{"note":"1.10"}'),
        ('{"note":12345678901234567890123}', '{"note":"12345678901234567890123"}'),
        ('{"limit":null,"note":null}', "{}"),
        ('{"maybe":null}', '{"maybe":null}'),
        ('{"ids":["1",2]}', '{"ids":[1,2]}'),
        ('{"ratio":12345678901234567890.50}', '{"ratio":12345678901234567890.50}'),
        ('{"note":"“q”\\u00a0\\n"}', '{"note":"“q”\u00a0\\n"}'),
        ('{"note":"a","note":"b"}', '{"note":"b"}'),
        ("", "{}"),
    ],
)  # fmt: skip
async def test_primitives_are_converted_without_loss(given_, expected):
    result = await fit(spec(TAGS), given_, "en")
    assert isinstance(result, Fitted)
    assert result.json == expected


@pytest.mark.spec("PIP-015", "PIP-016")
@pytest.mark.parametrize(
    ("given_", "line"),
    [
        ('{"limit":"5.5"}', "- limit: expected integer, got string"),
        ('{"limit":" 5"}', "- limit: expected integer, got string"),
        ('{"limit":0}', "- limit: must not be below 1"),
        ('{"deep":"yes"}', "- deep: expected boolean, got string"),
        ('{"deep":1}', "- deep: expected boolean, got integer"),
        ('{"note":["a"]}', "- note: expected string, got array"),
        ('{"ids":["x"]}', "- ids[0]: expected integer, got string"),
        ('{"nope":1}', f"- nope: unknown parameter; allowed are: {', '.join(TAGS['properties'])}"),
    ],
)  # fmt: skip
async def test_what_does_not_fit_is_named(given_, line):
    result = await fit(spec(TAGS), given_, "en")
    assert isinstance(result, Faulty)
    assert line in result.text.split("\n")


@pytest.mark.parametrize(
    "text",
    [
        "[1]",
        '"x"',
        "{",
        '{"a":NaN}',
        '{"a":' * 5000,
        '{"note":"' + "x" * 3_000_000 + '"}',
        '{"note":"\\ud800"}',
        '{"limit":' + "9" * 5000 + "}",
    ],
)
async def test_hostile_text_is_a_fault_and_never_raises(text):
    result = await fit(spec(TAGS), text, "vi")
    assert isinstance(result, Faulty)
    assert len(result.text) < 3000


@pytest.mark.spec("PIP-123")
def test_a_schema_is_compiled_once():
    assert compiled({"type": "object"}) is compiled({"type": "object"})


@pytest.mark.spec("TLS-076")
async def test_references_within_the_schema_are_followed():
    schema = {
        "type": "object",
        "$defs": {
            "item": {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "required": ["n"]},
            "n": {"type": "integer"},
        },
        "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/item"}}},
    }
    assert await fitted(schema, '{"items":{"n":"4"}}') == {"items": [{"n": 4}]}
    endless = {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}}
    assert isinstance(await fit(spec(endless), '{"a":1}', "en"), Fitted | Faulty)


VALUES = st.fixed_dictionaries(
    {},
    optional={
        "tags": st.lists(st.text(), max_size=3),
        "ids": st.lists(st.integers(), max_size=3),
        "note": st.text() | st.sampled_from(["[1]", '["a"]', "{}", "5"]),
        "limit": st.integers(min_value=1),
        "ratio": st.floats(allow_nan=False, allow_infinity=False),
        "deep": st.booleans(),
        "either": st.text() | st.lists(st.text(), max_size=3),
        "maybe": st.none() | st.text(),
    },
)


@pytest.mark.spec("TLS-077")
@settings(max_examples=300, deadline=None)
@given(VALUES)
def test_repair_never_changes_a_valid_call(value):
    schema = Schema(json.dumps(TAGS))
    assert schema.accepts(value)
    assert repaired(schema, value) == value


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2),
    max_leaves=5,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from([*TAGS["properties"], "old", "x"]), ANYTHING, max_size=4))
async def test_whatever_comes_is_fitted_or_refused_in_words(value):
    text = json.dumps(value)
    result = await fit(spec(TAGS), text, "en")
    if isinstance(result, Fitted):
        assert Schema(json.dumps(TAGS)).accepts(result.arguments)
        again = await fit(spec(TAGS), result.json, "en")
        assert isinstance(again, Fitted)
        assert again.json == result.json
