"""Types: their schema, and the values that arrive."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import pathlib
import typing
import uuid
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import attrs
import msgspec
import pytest

from actors.tools import Tool, tool


class Color(enum.Enum):
    """Colours."""

    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@attrs.frozen
class Edit:
    """One replacement."""

    old: str
    new: str = ""


@dataclasses.dataclass
class Point:
    x: int
    title: str | None = None


class Person(TypedDict):
    name: str
    age: NotRequired[int]


class Circle(msgspec.Struct, tag="circle"):
    radius: float


class Square(msgspec.Struct, tag="square"):
    side: float


@attrs.frozen
class Tree:
    value: int
    children: list[Tree] = attrs.field(factory=list)
    default: Color = Color.RED


EDIT = {
    "description": "One replacement.",
    "type": "object",
    "properties": {"old": {"type": "string"}, "new": {"type": "string", "default": ""}},
    "required": ["old"],
    "additionalProperties": False,
}
POINT = {
    "type": "object",
    "properties": {
        "x": {"type": "integer"},
        "title": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
    },
    "required": ["x"],
    "additionalProperties": False,
}
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name"],
    "additionalProperties": False,
}


def shape(tag: str, name: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"type": {"enum": [tag], "type": "string"}, name: {"type": "number"}},
        "required": ["type", name],
        "additionalProperties": False,
    }


def of_type(annotation: Any, **settings: Any) -> Tool:
    """A tool with one parameter `v` of that type."""

    def give(v: Any) -> Any:
        return v

    give.__annotations__ = {"v": annotation}
    return tool(give, **settings)


NOON = dt.datetime(2030, 1, 1, 12, tzinfo=dt.UTC)
KEY = uuid.UUID(int=5)


@pytest.mark.parametrize(
    ("annotation", "schema", "given", "arrives"),
    [
        (str, {"type": "string"}, "[1]", "[1]"),
        (int, {"type": "integer"}, 2**70, 2**70),
        (float, {"type": "number"}, 1, 1.0),
        (bool, {"type": "boolean"}, True, True),
        (None, {"type": "null"}, None, None),
        (Any, {}, [{}], [{}]),
        (object, {}, [{}], [{}]),
        (list, {"type": "array"}, [1, "x"], [1, "x"]),
        (list[int], {"type": "array", "items": {"type": "integer"}}, [1], [1]),
        (Sequence[int], {"type": "array", "items": {"type": "integer"}}, [1], [1]),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}, [1, 2], (1, 2)),
        (
            tuple[int, str],
            {
                "type": "array",
                "minItems": 2,
                "maxItems": 2,
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "items": False,
            },
            [1, "x"],
            (1, "x"),
        ),
        (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}, ["a", "a"], {"a"}),
        (dict, {"type": "object"}, {"a": []}, {"a": []}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}, {"a": 1}, {"a": 1}),
        (dict[int, str], {"type": "object", "additionalProperties": {"type": "string"}}, {"7": "a"}, {7: "a"}),
        (Mapping[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}, {"a": 1}, {"a": 1}),
        (Literal["a", "b"], {"enum": ["a", "b"], "type": "string"}, "b", "b"),
        (Literal[1, 2], {"enum": [1, 2], "type": "integer"}, 2, 2),
        (Literal["a", 1], {"enum": [1, "a"]}, 1, 1),
        (Color, {"enum": ["blue", "red"], "type": "string", "description": "Colours."}, "red", Color.RED),
        (Level, {"enum": [1, 2], "type": "integer"}, 2, Level.HIGH),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}, None, None),
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "5", "5"),
        (
            typing.Optional[list[str]],  # noqa: UP045
            {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
            ["5"],
            ["5"],
        ),
        (dt.datetime, {"type": "string", "format": "date-time"}, "2030-01-01T12:00:00Z", NOON),
        (
            dt.datetime | None,
            {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
            "2030-01-01T12:00:00",
            NOON.replace(tzinfo=None),
        ),
        (
            list[dt.datetime],
            {"type": "array", "items": {"type": "string", "format": "date-time"}},
            ["2030-01-01T12:00:00Z"],
            [NOON],
        ),
        (
            Annotated[dt.datetime, "when"],
            {"type": "string", "format": "date-time", "description": "when"},
            "2030-01-01T12:00:00Z",
            NOON,
        ),
        (dt.date, {"type": "string", "format": "date"}, "2030-01-01", NOON.date()),
        (dt.timedelta, {"type": "string", "format": "duration"}, "PT1S", dt.timedelta(seconds=1)),
        (uuid.UUID, {"type": "string", "format": "uuid"}, str(KEY), KEY),
        (Decimal, {"type": "string", "format": "decimal"}, "1.50", Decimal("1.50")),
        (Decimal, {"type": "string", "format": "decimal"}, 1.5, Decimal("1.5")),
        (pathlib.Path, {"type": "string"}, "a/b", pathlib.Path("a/b")),
        (pathlib.Path | None, {"anyOf": [{"type": "string"}, {"type": "null"}]}, "a", pathlib.Path("a")),
        (
            list[pathlib.PurePosixPath],
            {"type": "array", "items": {"type": "string"}},
            ["a"],
            [pathlib.PurePosixPath("a")],
        ),
        (bytes, {"type": "string", "contentEncoding": "base64"}, "AAE=", b"\0\1"),
        (Edit, EDIT, {"old": "x"}, Edit("x")),
        (list[Edit], {"type": "array", "items": EDIT}, [{"old": "x", "new": "y"}], [Edit("x", "y")]),
        (Point, POINT, {"x": 1, "title": "t"}, Point(1, "t")),
        (Person, PERSON, {"name": "n"}, {"name": "n"}),
        (
            Circle | Square,
            {"anyOf": [shape("circle", "radius"), shape("square", "side")]},
            {"type": "square", "side": 2},
            Square(2.0),
        ),
        (
            Annotated[int, msgspec.Meta(ge=1, description="a")],
            {"type": "integer", "minimum": 1, "description": "a"},
            1,
            1,
        ),
    ],
)
def test_a_type_has_a_schema_and_its_values_arrive(annotation: Any, schema: Any, given: Any, arrives: Any) -> None:
    """The schema says what JSON to send, and the function gets a value of its type."""
    made = of_type(annotation)
    bound = made.bind({"v": given})

    assert schema == made.parameters["properties"]["v"]
    assert arrives == bound.arguments["v"]
    assert type(arrives) is type(bound.arguments["v"])
    assert (bound.repaired, bound.decoded) == (False, {"v": given})


def test_a_type_that_contains_itself_stays_a_definition() -> None:
    """Only such types need `$defs`; what they use themselves stands in place."""
    made = of_type(Tree)

    assert made.parameters == {
        "type": "object",
        "properties": {"v": {"$ref": "#/$defs/Tree"}},
        "required": ["v"],
        "additionalProperties": False,
        "$defs": {
            "Tree": {
                "type": "object",
                "properties": {
                    "value": {"type": "integer"},
                    "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}, "default": []},
                    "default": {
                        "enum": ["blue", "red"],
                        "type": "string",
                        "description": "Colours.",
                        "default": "red",
                    },
                },
                "required": ["value"],
                "additionalProperties": False,
            }
        },
    }
    assert made.bind({"v": {"value": 1, "children": [{"value": 2}]}}).arguments == {"v": Tree(1, [Tree(2)])}


def test_a_definition_used_by_a_recursive_one_is_put_in_place() -> None:
    """Two parameters, one type each: no definition is left that could stand where it is used."""

    @tool
    def f(tree: Tree, color: Color = Color.BLUE) -> None: ...

    assert list(f.parameters["$defs"]) == ["Tree"]
    assert f.parameters["properties"]["color"]["default"] == "blue"


@pytest.mark.parametrize(
    ("default", "shown"),
    [
        (1, {"default": 1}),
        (None, {"default": None}),
        ([1], {"default": [1]}),
        (pathlib.Path("a"), {"default": "a"}),
        (NOON, {"default": "2030-01-01T12:00:00Z"}),
        (Edit("a"), {"default": {"old": "a", "new": ""}}),
        (float("nan"), {}),
        (object(), {}),
    ],
)
def test_a_default_is_shown_where_json_can_say_it(default: Any, shown: Any) -> None:
    """The schema is strict JSON; the function's default holds whatever it is, and is not copied."""

    def f(v: Any = default) -> Any:
        return v

    made = tool(f)

    assert made.parameters["properties"]["v"] == shown
    assert made.parameters["required"] == []
    assert made.bind({}).arguments == {}


def test_schemas_are_what_strict_providers_take() -> None:
    """No titles, no discriminators; every object with known properties is closed; nothing but JSON."""
    made = of_type(dict[str, tuple[Edit, Point | None, list[Circle | Square], Person, Tree]])
    text = msgspec.json.encode(made.parameters).decode()

    assert made.parameters == msgspec.json.decode(text)
    assert ('"title":"' in text, "discriminator" in text) == (False, False)
    assert text.count('"properties"') == text.count('"additionalProperties":false') == 7


def test_keyword_only_parameters_and_odd_names_work() -> None:
    """A parameter may be keyword-only, follow one with a default, or have a name that a dict or struct uses."""

    @tool
    def f(a: int = 1, *, keys: str, copy: int, _hidden: int = 0) -> Any:
        return a, keys, copy, _hidden

    bound = f.bind({"keys": "k", "copy": 2, "_hidden": 3})

    assert f.parameters["required"] == ["keys", "copy"]
    assert f.call(bound.arguments) == (1, "k", 2, 3)
