"""Tools whose schema the caller gives."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.tools import ArgumentsInvalid, Bound, Tool, tool
from protocol.errors import SpecError


def anything(**arguments: Any) -> Any:
    """Anything."""
    return arguments


def two(a: Any, b: Any = None) -> Any:
    return a, b


def of_schema(schema: dict[str, Any], **definitions: Any) -> Tool:
    """A tool whose one property `v` has that schema."""
    return tool(anything, parameters={"type": "object", "properties": {"v": schema}, **definitions})


def refused(made: Tool, arguments: dict[str, Any]) -> list[str]:
    with pytest.raises(ArgumentsInvalid) as caught:
        made.bind(arguments)
    return str(caught.value).split("\n- ")[1:]


def test_the_schema_is_told_as_given_and_copied() -> None:
    """The model is told the given schema; what happens to the caller's dict later changes nothing."""
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string", "title": "A"}}, "x-y": 1}
    made = tool(anything, name="t", parameters=schema)
    schema["properties"]["a"]["type"] = "integer"

    assert made.parameters == {"type": "object", "properties": {"a": {"type": "string", "title": "A"}}, "x-y": 1}
    assert made.bind({"a": "x", "other": 1}) == Bound({"a": "x", "other": 1}, False, {"a": "x", "other": 1})


def test_a_tool_made_by_hand_binds_by_its_schema() -> None:
    """`Tool(...)` takes `parameters` as `tool(parameters=)` does."""
    made = Tool("t", "", {"type": "object", "required": ["a"]}, two, in_thread=True)

    assert made.bind({"a": 1}).arguments == {"a": 1}
    assert refused(made, {})[0] == "a: required property is missing"
    with pytest.raises(SpecError, match="object schema"):
        Tool("t", "", {"type": "array"}, two, in_thread=True)


@pytest.mark.parametrize(
    ("fn", "schema", "said"),
    [
        (anything, {}, "tool 't': parameters must be a JSON Schema as a dict; it is '{}'"),
        (anything, [1], "tool 't': parameters must be a JSON Schema as a dict; it is '[1]'"),
        (
            anything,
            {"properties": {}},
            'tool \'t\': parameters must be an object schema, with "type": "object"; its type is None',
        ),
        (anything, {"type": ["object"]}, "tool 't': parameters must be an object schema"),
        (
            anything,
            {"type": "object", "properties": []},
            "tool 't': parameters: \"properties\" must be an object of schemas",
        ),
        (
            anything,
            {"type": "object", "required": "a"},
            "tool 't': parameters: \"required\" must be a list of property names",
        ),
        (
            anything,
            {"type": "object", "required": [1]},
            "tool 't': parameters: \"required\" must be a list of property names",
        ),
        (anything, {"type": "object", "default": object()}, "tool 't': parameters must be JSON: "),
        (anything, {"type": "object", "default": "\ud83d"}, "tool 't': parameters must be JSON: "),
        (
            two,
            {"type": "object", "properties": {"c": {}}},
            "tool 't': its schema has the property 'c', which the function does not take",
        ),
        (
            two,
            {"type": "object", "properties": {"a": {}}},
            "tool 't': the function needs 'a', which its schema does not require",
        ),
        (
            functools.partial(two, a=1),
            {"type": "object", "properties": {"a": {}}},
            "tool 't': its schema has the property 'a'",
        ),
    ],
)
def test_a_schema_that_cannot_work_is_refused(fn: Any, schema: Any, said: str) -> None:
    """A `SpecError` says what an object schema for this function would be."""
    with pytest.raises(SpecError) as caught:
        tool(fn, name="t", parameters=schema)

    assert str(caught.value)[: len(said)] == said


def test_the_function_is_never_called_with_what_it_does_not_take() -> None:
    """An open schema lets any property pass; the function's own parameters do not."""
    made = tool(two, parameters={"type": "object", "properties": {"a": {}}, "required": ["a"]})
    fixed = tool(functools.partial(anything, user=1), parameters={"type": "object"})

    assert made.bind({"a": 1, "b": 2}).arguments == {"a": 1, "b": 2}
    assert refused(made, {"a": 1, "c": 2})[0] == "c: unknown property, given integer 2"
    assert refused(fixed, {"user": 2})[0] == "user: unknown property, given integer 2"


TREE = {
    "type": "object",
    "properties": {"v": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]}},
    "required": ["v"],
    "additionalProperties": False,
}
TAGGED = {
    "oneOf": [
        {"type": "object", "properties": {"kind": {"const": "a"}, "x": {"type": "string"}}, "required": ["kind", "x"]},
        {"type": "object", "properties": {"kind": {"const": "b"}, "y": {"type": "integer"}}, "required": ["kind", "y"]},
    ]
}


@pytest.mark.parametrize(
    ("schema", "fits", "does_not", "line"),
    [
        ({"type": "string"}, "5", 5, "v: expected string, given integer 5"),
        ({"type": "number"}, 5, "5", 'v: expected number, given string "5"'),
        ({"type": ["string", "null"]}, None, 5, "v: expected string or null, given integer 5"),
        ({"type": "boolean"}, False, 0, "v: expected boolean, given integer 0"),
        ({"enum": [1, "a", None]}, None, True, 'v: expected integer 1 or string "a" or null, given boolean true'),
        ({"enum": [1]}, 1.0, 2, "v: expected integer 1, given integer 2"),
        ({"const": {"a": 1}}, {"a": 1}, {}, "v: expected object of 1, given empty object"),
        ({"type": "array", "items": {"type": "string"}}, ["a"], ["a", 1], "v[1]: expected string, given integer 1"),
        (
            {"prefixItems": [{"type": "string"}], "items": False},
            ["a"],
            ["a", 1],
            "v[1]: unknown property, given integer 1",
        ),
        ({"additionalProperties": {"type": "string"}}, {"a": "b"}, {"a": 1}, "v.a: expected string, given integer 1"),
        ({"allOf": [{"type": "object"}, {"required": ["a"]}]}, {"a": 1}, {}, "v.a: required property is missing"),
        (TAGGED, {"kind": "b", "y": 1}, {"kind": "b", "y": "x"}, 'v.y: expected integer, given string "x"'),
        (
            {"$ref": "#/$defs/tree"},
            {"v": 1, "next": {"v": 2}},
            {"v": 1, "next": {"v": "x"}},
            'v.next.v: expected integer, given string "x"',
        ),
        ({"$ref": "#/$defs/a~1b"}, "x", 1, "v: expected string, given integer 1"),
        (False, None, 1, "v: unknown property, given integer 1"),
    ],
)
def test_values_are_checked_against_the_schema(schema: Any, fits: Any, does_not: Any, line: str) -> None:
    """Types, enums, constants, items, unions and references are checked before the body is entered."""
    made = of_schema(schema, **{"$defs": {"tree": TREE, "a/b": {"type": "string"}}})

    assert line == refused(made, {"v": does_not})[0]
    if schema is not False:
        assert made.bind({"v": fits}) == Bound({"v": fits}, False, {"v": fits})


@pytest.mark.parametrize(
    "schema",
    [
        {},
        True,
        {"$ref": "#/$defs/nowhere"},
        {"$ref": "https://example.org/schema"},
        {"$ref": "#/$defs/loop"},
        {"type": "string", "pattern": "^b", "maxLength": 0, "format": "uuid"},
        {"properties": 5, "required": "x", "anyOf": {}, "enum": ["a"], "items": [], "prefixItems": 3},
        {"type": [{}, 5]},
        {"additionalProperties": False, "patternProperties": {".*": {}}},
    ],
)
def test_what_is_not_checked_makes_nothing_unfit(schema: Any) -> None:
    """Unknown, broken or unchecked keywords let a value pass: the tool itself judges it."""
    made = of_schema(schema, **{"$defs": {"loop": {"$ref": "#/$defs/loop"}}})

    assert made.bind({"v": "a"}).arguments == {"v": "a"}


def test_branches_in_branches_take_linear_time() -> None:
    """A schema that says the same thing twice at each level is read once at each place."""
    twice = {"properties": {"next": {"$ref": "#/$defs/node"}}}
    made = of_schema({"$ref": "#/$defs/node"}, **{"$defs": {"node": {"type": "object", "allOf": [twice, dict(twice)]}}})
    value: Any = {"next": 1}
    for _ in range(60):
        value = {"next": value}

    assert refused(made, {"v": value}) == [f"v{'.next' * 61}: expected object, given integer 1"] * 8 + ["and 42 more"]


def test_repairs_follow_the_schema() -> None:
    """A string is decoded where object or array is wanted and a string is not."""
    made = of_schema({"type": ["array", "null"], "items": {"type": "object", "properties": {"n": {"type": "integer"}}}})
    loose = of_schema({"type": ["array", "string"]})

    assert made.bind({"v": '["{\\"n\\": 2.0}"]'}) == Bound({"v": [{"n": 2}]}, True, {"v": [{"n": 2}]})
    assert loose.bind({"v": "[]"}) == Bound({"v": "[]"}, False, {"v": "[]"})
    assert refused(made, {"v": "{}"}) == ['v: expected array or null, given string "{}"']


def test_a_mutation_by_the_function_stays_its_own() -> None:
    """The keyword arguments are a dict of their own."""
    made = of_schema({})
    bound = made.bind({"v": 1})
    bound.arguments["w"] = 2

    assert bound.decoded == {"v": 1}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from([
                "type",
                "properties",
                "required",
                "items",
                "anyOf",
                "oneOf",
                "allOf",
                "enum",
                "const",
                "$ref",
                "prefixItems",
                "additionalProperties",
                "patternProperties",
                "a",
                "v",
            ]),
            inner | st.sampled_from(["object", "array", "string", "integer", "#", "#/$defs/d", ["a"], [{}]]),
        )
    ),
    max_leaves=20,
)


@pytest.mark.slow
@given(json_values, json_values, json_values)
def test_any_schema_gives_a_binding_or_a_refusal(schema: Any, definition: Any, value: Any) -> None:
    """Whatever a foreign server calls a schema, `bind` raises `ArgumentsInvalid` alone."""
    made = of_schema(schema, **{"$defs": {"d": definition}})
    try:
        bound = made.bind({"v": value})
    except ArgumentsInvalid as error:
        str(error).encode()

        assert "'anything' was not run" in str(error)
    else:
        assert list(bound.arguments) == ["v"]
