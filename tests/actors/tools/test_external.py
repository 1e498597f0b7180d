"""What a tool says beside its schema: who must allow it, whether it ends the run, and whether it is the caller's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import pytest

from actors import AgentSpec
from actors.models.scripted import Scripted
from actors.tools import ArgumentsInvalid, Bound, Tool, external_tool, tool
from protocol.errors import SpecError
from protocol.model import ToolDefinition
from protocol.normalise import parse_arguments

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "question": {"type": "string"},
        "options": {"type": "object"},
        "choices": {"type": "array", "items": {"type": "integer"}},
        "note": {"type": ["string", "null"]},
    },
    "required": ["question"],
    "additionalProperties": False,
}
ask = external_tool("ask_user", "Ask the user.", SCHEMA)


def add(a: int) -> int:
    """Add."""
    return a


def is_large(arguments: Mapping[str, Any]) -> bool:
    return bool(arguments["a"] > 100)


async def is_odd(arguments: Mapping[str, Any]) -> bool:
    return bool(arguments["a"] % 2)


def refused(made: Tool, arguments: dict[str, Any]) -> list[str]:
    with pytest.raises(ArgumentsInvalid) as caught:
        made.bind(arguments)
    return str(caught.value).split("\n- ")[1:]


def test_a_tool_runs_freely_unless_it_says_otherwise() -> None:
    """By default nobody is asked, and the run goes on."""
    made = tool(add)

    assert (False, False, False) == (made.needs_approval, made.ends_run, made.external)


@pytest.mark.parametrize("needs", [True, False, is_large, is_odd])
def test_approval_and_end_are_settings_of_the_tool(needs: Any) -> None:
    """Both forms of `tool()`, `external_tool()` and `Tool()` take them; a renamed copy keeps them (T6, T8)."""
    made = [
        tool(add, needs_approval=needs, ends_run=True),
        tool(needs_approval=needs, ends_run=True)(add),
        tool(add, parameters={"type": "object", "required": ["a"]}, needs_approval=needs, ends_run=True),
        external_tool("ask", "Ask.", SCHEMA, needs_approval=needs, ends_run=True),
        Tool(
            "add", "", {"type": "object", "required": ["a"]}, add, in_thread=True, needs_approval=needs, ends_run=True
        ),
    ]

    assert [(needs, True)] * 5 == [(each.needs_approval, each.ends_run) for each in made]
    assert [(needs, True)] * 5 == [
        (each.needs_approval, each.ends_run) for each in [attrs.evolve(each, name="other") for each in made]
    ]


@pytest.mark.parametrize("value", [None, 1, 0, "yes", "", [], object])
def test_only_a_bool_ends_the_run(value: Any) -> None:
    """What is merely true or false in Python is a slip, and named as one."""
    with pytest.raises(SpecError) as caught:
        tool(add, ends_run=value)

    assert f"tool 'add': ends_run must be True or False; it is {value!r}" == str(caught.value)


@pytest.mark.parametrize("value", [None, 1, 0, "always", "", [], {"a": 1}])
def test_approval_is_a_bool_or_a_function(value: Any) -> None:
    """The text says what would be right, for each way to make a tool."""
    said = f"needs_approval must be True, False or a function of the arguments; it is {value!r}"
    with pytest.raises(SpecError) as of_function:
        tool(add, needs_approval=value)
    with pytest.raises(SpecError) as of_caller:
        external_tool("ask", "Ask.", SCHEMA, needs_approval=value)

    assert (f"tool 'add': {said}", f"tool 'ask': {said}") == (str(of_function.value), str(of_caller.value))


@pytest.mark.parametrize("text", [None, 5, b"Ask."])
def test_a_description_is_a_text(text: Any) -> None:
    """The model reads it; what is none is refused."""
    with pytest.raises(SpecError) as caught:
        external_tool("ask", text, SCHEMA)

    assert f"tool 'ask': description must be a text for the model; it is {text!r}" == str(caught.value)


def test_a_description_encodes() -> None:
    """Half of a surrogate pair in it would spoil every request: it is replaced."""
    made = [external_tool("ask", "Ask \ud83d.", SCHEMA), tool(add, description="Ask \ud83d.")]

    assert ["Ask \ufffd."] * 2 == [each.definition.description for each in made]


def test_a_caller_s_tool_is_told_like_any_other() -> None:
    """The model sees name, description and schema; that it has no body is the host's business (T7)."""
    assert ToolDefinition("ask_user", "Ask the user.", SCHEMA) == ask.definition
    assert (None, True, False) == (ask.fn, ask.external, ask.in_thread)
    with pytest.raises(TypeError, match="ask_user has no body"):
        ask.call({})


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (None, "parameters must be a JSON Schema as a dict; it is 'None'"),
        ({}, "parameters must be a JSON Schema as a dict; it is '{}'"),
        ("object", "parameters must be a JSON Schema as a dict; it is 'object'"),
        ([1], "parameters must be a JSON Schema as a dict; it is '[1]'"),
        ({"type": "array"}, 'parameters must be an object schema, with "type": "object"; its type is \'array\''),
        ({"properties": {}}, 'parameters must be an object schema, with "type": "object"; its type is None'),
        ({"type": "object", "properties": 5}, 'parameters: "properties" must be an object of schemas'),
        ({"type": "object", "required": "a"}, 'parameters: "required" must be a list of property names'),
        ({"type": "object", "x": object()}, "parameters must be JSON: "),
    ],
)
def test_its_schema_must_be_one_of_an_object(schema: Any, said: str) -> None:
    """There is no function to read: what is given must say it all."""
    with pytest.raises(SpecError) as caught:
        external_tool("ask", "Ask.", schema)

    assert f"tool 'ask': {said}" == str(caught.value)[: len(said) + 12]


def test_its_schema_is_copied() -> None:
    """What happens to the caller's dict later changes nothing."""
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
    made = external_tool("ask", "Ask.", schema)
    schema["properties"]["a"]["type"] = "integer"

    assert {"a": "x"} == made.bind({"a": "x"}).decoded


def test_its_arguments_come_back_as_json_has_them() -> None:
    """Nothing converts them: the caller is given what was validated."""
    arguments = {"question": "[1]", "options": {"a": [None, 1.5]}, "choices": [1, 2], "note": None}

    assert Bound(arguments, False, arguments) == ask.bind(arguments)


def test_its_arguments_are_mended_like_any() -> None:
    """T3: a string where an object or an array is wanted is decoded and marked; where a string will do it is kept."""
    given = {"question": '{"a": 1}', "options": '{"a": 1}', "choices": "[1, 2]", "note": "{}"}
    mended = {"question": '{"a": 1}', "options": {"a": 1}, "choices": [1, 2], "note": "{}"}

    assert Bound(mended, True, mended) == ask.bind(given)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"question": 1}, "question: expected string, given integer 1"),
        ({"question": "q", "options": "[]"}, 'options: expected object, given string "[]"'),
        ({"question": "q", "options": "{a}"}, 'options: expected object, given string "{a}"'),
        ({"question": "q", "choices": '["x"]'}, 'choices[0]: expected integer, given string "x"'),
        ({"question": "q", "xyz": 1}, "xyz: unknown property, given integer 1"),
    ],
)
def test_its_arguments_are_validated(arguments: dict[str, Any], line: str) -> None:
    """The caller is not asked for what does not fit."""
    assert line == refused(ask, arguments)[0]


@pytest.mark.parametrize("raw", ["", " \n", "null", " null\t", "{}"])
@pytest.mark.parametrize(
    ("made", "line"),
    [
        (ask, "question: required property is missing (expected string)"),
        (tool(add), "a: required property is missing (expected integer)"),
        (tool(add, parameters={"type": "object", "required": ["a"]}), "a: required property is missing"),
    ],
    ids=["external", "own", "given"],
)
def test_no_arguments_are_an_empty_object(made: Tool, line: str, raw: str) -> None:
    """T3: empty, blank and `null` are `{}`, and that is validated: what is required is missing."""
    arguments = parse_arguments(raw)

    assert arguments == {}
    assert line == refused(made, arguments)[0]


def test_two_tools_of_one_name_are_refused() -> None:
    """The error names them, whatever kind they are."""
    with pytest.raises(SpecError) as caught:
        AgentSpec(model=Scripted([]), tools=[add, ask, external_tool("add", "Add.", SCHEMA)])

    assert str(caught.value) == "tools: add is there more than once; every tool needs a name of its own"
