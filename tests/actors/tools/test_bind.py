"""Binding arguments: what fits, what is mended, what is refused and how."""

from __future__ import annotations

import copy
import datetime as dt
import pathlib
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypedDict

import attrs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.tools import ArgumentsInvalid, Bound, Tool, tool
from protocol.errors import OnwardError


@attrs.frozen
class Edit:
    old: str
    new: str


class Num(msgspec.Struct, tag="num"):
    value: int


class Plus(msgspec.Struct, tag="plus"):
    left: Plus | Times | Num
    right: Plus | Times | Num


class Times(msgspec.Struct, tag="times"):
    left: Plus | Times | Num
    right: Plus | Times | Num


@attrs.frozen
class Even:
    value: int = attrs.field()

    @value.validator
    def _check(self, _field: Any, value: int) -> None:
        if value % 2:
            raise ValueError(f"{value} is odd")


@attrs.frozen
class Fragile:
    value: int

    def __attrs_post_init__(self) -> None:
        raise KeyError("gone")


class Node(TypedDict):
    next: Node | None


@tool
def add(a: int, b: int = 2) -> int:
    """Add."""
    return a + b


@tool
def edit(path: str, edits: list[Edit], note: str | None = None) -> int:
    """Edit."""
    return len(edits)


@tool
def ping() -> str:
    """Ping."""
    return "pong"


@tool
def pick(color: Literal["red", "blue"], size: Annotated[int, msgspec.Meta(ge=1, le=9)] = 1) -> None:
    """Pick."""


def nested(levels: int) -> Any:
    value: Any = None
    for _ in range(levels):
        value = {"next": value}
    return value


def refused(made: Tool, arguments: dict[str, Any]) -> list[str]:
    """The lines of the refusal, the first one checked and left out."""
    with pytest.raises(ArgumentsInvalid) as caught:
        made.bind(arguments)
    first, *lines = str(caught.value).split("\n- ")

    assert first == f"Tool {made.name!r} was not run: its arguments do not fit."
    return lines


def test_arguments_that_fit_are_bound() -> None:
    """What was given reaches the function; what was not is left to its defaults."""
    arguments = {"a": 1}

    assert add.bind(arguments) == Bound({"a": 1}, False, {"a": 1})
    assert ping.bind({}) == Bound({}, False, {})


@pytest.mark.parametrize(
    ("made", "arguments", "lines"),
    [
        (
            add,
            {},
            [
                "a: required property is missing (expected integer)",
                "the parameters are: a (integer, required), b (integer, optional)",
            ],
        ),
        (add, {"a": "1"}, ['a: expected integer, given string "1"']),
        (add, {"a": True}, ["a: expected integer, given boolean true"]),
        (add, {"a": None}, ["a: expected integer, given null"]),
        (add, {"a": 1.5}, ["a: expected integer, given number 1.5"]),
        (add, {"a": 1e300}, ["a: expected integer, given number 1e300"]),
        (add, {"a": float("nan")}, ["a: expected integer, given null"]),
        (add, {"a": {}}, ["a: expected integer, given empty object"]),
        (add, {"a": [1]}, ["a: expected integer, given array of 1"]),
        (add, {"a": "x" * 500}, [f'a: expected integer, given string "{"x" * 120}" (500 characters in full)']),
        (
            add,
            {"a": 1, "bb": 2},
            [
                "bb: unknown property, given integer 2; did you mean 'b'?",
                "the parameters are: a (integer, required), b (integer, optional)",
            ],
        ),
        (ping, {"host": "x"}, ['host: unknown property, given string "x"', "the tool takes no parameters; give {}"]),
        (edit, {"path": "p", "edits": 3}, ["edits: expected array, given integer 3"]),
        (edit, {"path": "p", "edits": "[1"}, ['edits: expected array, given string "[1"']),
        (edit, {"path": "p", "edits": "{}"}, ['edits: expected array, given string "{}"']),
        (edit, {"path": "p", "edits": "3"}, ['edits: expected array, given string "3"']),
        (edit, {"path": "p", "edits": [], "note": 4}, ["note: expected string or null, given integer 4"]),
        (edit, {"path": "p", "edits": [], "note": []}, ["note: expected string or null, given empty array"]),
        (
            edit,
            {"path": "p", "edits": [{"old": 1, "new": "x"}, {"new": "x"}]},
            [
                "edits[0].old: expected string, given integer 1",
                "edits[1].old: required property is missing (expected string)",
            ],
        ),
        (
            edit,
            {"path": "p", "edits": [{"old": "x", "new": "y", "all": True}]},
            ["edits[0].all: unknown property, given boolean true; known are old, new"],
        ),
        (pick, {"color": "green"}, ['color: expected string "blue" or string "red", given string "green"']),
        (pick, {"color": "red", "size": 0}, ["size: Expected `int` >= 1, given integer 0"]),
        (add, {"a": 2**300, "b": 2**300 + 0.0}, ["b: expected integer, given number 2.037035976334486e90"]),
        (edit, {"path": 2**300, "edits": []}, ["path: expected string, given integer of 301 bits"]),
        (add, {"a": 1, "b": [2**300]}, ["b: expected integer, given array of 1"]),
    ],
)
def test_a_refusal_can_be_acted_on(made: Tool, arguments: dict[str, Any], lines: list[str]) -> None:
    """It names tool and property, what was expected and what was given; an unknown name gets the known ones listed."""
    assert lines == refused(made, arguments)


def test_a_refusal_is_bounded_and_clean() -> None:
    """Thousands of errors, huge names and half characters make a short text that encodes as UTF-8."""
    many = refused(edit, {"path": "p", "edits": [3] * 10_000})
    with pytest.raises(ArgumentsInvalid) as caught:
        add.bind({"a": 1, **{"\ud83d" * 5000 + str(i): "\ud83d" for i in range(100)}})

    assert many[-1] == "and 42 more"
    assert len(many) == 9
    assert len(str(caught.value).encode()) < 20_000


@pytest.mark.parametrize(
    ("made", "given_", "decoded", "bound"),
    [
        (edit, {"path": "[1]", "edits": "[]"}, {"path": "[1]", "edits": []}, {"path": "[1]", "edits": []}),
        (
            edit,
            {"path": "p", "edits": '[{"old":"[2]","new":"y"}]', "note": "[3]"},
            {"path": "p", "edits": [{"old": "[2]", "new": "y"}], "note": "[3]"},
            {"path": "p", "edits": [Edit("[2]", "y")], "note": "[3]"},
        ),
        (
            edit,
            {"path": "p", "edits": ['{"old":"x","new":"y"}'] * 200},
            {"path": "p", "edits": [{"old": "x", "new": "y"}] * 200},
            {"path": "p", "edits": [Edit("x", "y")] * 200},
        ),
        (add, {"a": 3.0, "b": -0.0}, {"a": 3, "b": 0}, {"a": 3, "b": 0}),
    ],
)
def test_what_needs_no_guess_is_mended(made: Tool, given_: Any, decoded: Any, bound: Any) -> None:
    """T3: a string that holds the wanted object or array is decoded, at any depth, and the call is marked."""
    before = copy.deepcopy(given_)

    assert made.bind(given_) == Bound(bound, True, decoded)
    assert before == given_


def test_a_string_parameter_keeps_its_string() -> None:
    """A place that takes a string is never decoded, in a union neither."""

    @tool
    def f(a: str, b: str | list[int], c: dict[str, str]) -> None: ...

    arguments = {"a": "[1]", "b": "[1]", "c": {"x": "{}"}}

    assert f.bind(arguments) == Bound(arguments, False, arguments)


def test_a_mended_union_is_decoded_too() -> None:
    """Where null would do as well, a string that holds an array is still an array."""

    @tool
    def f(a: list[int] | None, b: dict[str, int] | None) -> None: ...

    assert f.bind({"a": "[1]", "b": '{"x": 1}'}) == Bound({"a": [1], "b": {"x": 1}}, True, {"a": [1], "b": {"x": 1}})


def test_a_mended_value_must_still_fit() -> None:
    """The decoded value is validated like any other."""
    assert refused(edit, {"path": "p", "edits": '[{"old": 5}]'}) == [
        "edits[0].new: required property is missing (expected string)",
        "edits[0].old: expected string, given integer 5",
    ]


def test_errors_of_a_parameter_class_are_told() -> None:
    """What a parameter's own class raises is the model's to mend, never an exception out of the run."""

    @tool
    def g(fragile: Fragile) -> None: ...

    @tool
    def h(even: list[Even]) -> None: ...

    @tool
    def exits(value: Exits) -> None: ...

    @tool
    def mute(value: Mute) -> None: ...

    assert refused(g, {"fragile": {"value": 1}}) == ["KeyError: 'gone'"]
    assert refused(exits, {"value": {"value": 1}}) == ["SystemExit: 3"]
    assert refused(mute, {"value": {"value": 1}}) == ["Silent"]
    assert refused(h, {"even": [{"value": 2}, {"value": 3}]}) == ["even[1]: 3 is odd, given object of 1"]


def test_a_place_that_is_not_known_is_told_as_far_as_it_is() -> None:
    """Of a mapping's values, the one that is out of range is not known: the mapping is quoted."""

    @tool
    def f(a: dict[str, list[Annotated[int, msgspec.Meta(ge=1)]]]) -> None: ...

    assert refused(f, {"a": {"x": [1, 0]}}) == ["a[...][1]: Expected `int` >= 1, given object of 1"]


def test_a_path_is_given_as_text() -> None:
    """What is no string is refused for a path, alone or in a list."""

    @tool
    def f(v: pathlib.Path | None = None, w: list[pathlib.Path] | None = None) -> None: ...

    assert refused(f, {"v": 5, "w": [None]}) == [
        "v: expected string or null, given integer 5",
        "w[0]: expected string, given null",
    ]


@attrs.frozen
class Exits:
    value: int

    def __attrs_post_init__(self) -> None:
        raise SystemExit(3)


@attrs.frozen
class Mute:
    value: int

    def __attrs_post_init__(self) -> None:
        class Silent(Exception):
            def __str__(self) -> str:
                raise RuntimeError

        raise Silent


def anything(**arguments: Any) -> None:
    """Anything."""


loose = tool(anything, parameters={"type": "object"})


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda: "\ud83d", "a string holds half of a surrogate pair; give whole characters"),
        (lambda: {"\ud83d": 1}, "a string holds half of a surrogate pair; give whole characters"),
        (lambda: 10**5000, "a value cannot be written as JSON: ValueError: Exceeds the limit (4300 digits)"),
        (object, "a value cannot be written as JSON: TypeError: Encoding objects of type object is unsupported"),
        (
            lambda: print,
            "a value cannot be written as JSON: TypeError: Encoding objects of type builtin_function_or_method",
        ),
        (lambda: {(1, 2): 3}, "a value cannot be written as JSON: TypeError: "),
        (lambda: nested(100_000), "the value is nested too deep; give it in a flatter form"),
    ],
)
def test_what_is_no_json_is_refused(make: Callable[[], Any], line: str) -> None:
    """A person or a hook that edits arguments may give any value: what JSON has no form for runs nothing."""

    @tool
    def f(v: Any) -> None: ...

    assert [line, line] == [refused(made, {"v": make()})[0][: len(line)] for made in (f, loose)]


def test_python_values_are_taken_as_json_has_them() -> None:
    """Edited arguments are shown, recorded and run in one form, and a parameter's type converts from it."""

    @tool
    def f(at: dt.datetime, ids: set[int], by: dict[int, float | None]) -> None: ...

    at = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
    given_ = {"at": at, "ids": {3}, "by": {1: 2.5, 2: float("nan")}}
    decoded = {"at": "2030-01-01T00:00:00Z", "ids": [3], "by": {"1": 2.5, "2": None}}

    assert f.bind(given_) == Bound({"at": at, "ids": {3}, "by": {1: 2.5, 2: None}}, False, decoded)
    assert loose.bind(given_) == Bound(decoded, False, decoded)


@pytest.mark.parametrize("text", [None, "[[1]]"])
def test_what_the_function_is_given_is_its_own(text: str | None) -> None:
    """It may change its arguments, and so may who gave them: what was shown, and approved, stays as it was."""

    def f(a: Any, b: dict[str, Any], c: list[Any], d: list[list[int]] | None = None) -> None: ...

    own = tool(f)
    for made in (own, tool(f, parameters=own.parameters)):
        given_: dict[str, Any] = {"a": [1], "b": {"x": [1]}, "c": [[1]], "d": text or [[1]]}
        bound = made.bind(given_)
        for inner in (
            bound.arguments["a"],
            bound.arguments["b"]["x"],
            bound.arguments["c"][0],
            bound.arguments["d"][0],
        ):
            inner.append(object())
        given_["b"]["x"].append(2)

        assert bound.decoded == {"a": [1], "b": {"x": [1]}, "c": [[1]], "d": [[1]]}
        assert bound.repaired == (text is not None)


@pytest.mark.slow
def test_deep_nesting_never_overflows() -> None:
    """Arguments nested too deep for the interpreter are refused; moderate depth is bound."""

    @tool
    def f(v: Node | None) -> None: ...

    @tool
    def g(v: dict[str, Any]) -> None: ...

    @tool
    def h(v: list[Edit]) -> None: ...

    lists: Any = []
    for _ in range(100_000):
        lists = [lists]

    assert f.bind({"v": nested(50)}).arguments == {"v": nested(50)}
    assert refused(f, {"v": nested(450)}) == ["the value is nested too deep; give it in a flatter form"]
    assert refused(f, {"v": nested(100_000)}) == ["the value is nested too deep; give it in a flatter form"]
    assert (
        refused(f, {"v": {"next": "[" * 100_000}})[0][:60]
        == 'v.next: expected object or null, given string "[[[[[[[[[[[[['[:60]
    )
    assert refused(h, {"v": lists}) == ["the value is nested too deep; give it in a flatter form"]
    assert list(g.bind({"v": nested(500)}).arguments) == ["v"]
    assert len(refused(f, {"v": nested(100_000), "w": nested(500)})) == 1


@pytest.mark.parametrize("wanted", ["object", "array"])
@pytest.mark.parametrize("written", [False, True])
def test_at_no_depth_it_overflows(wanted: str, written: bool) -> None:
    """A deep value, or one in a string to be decoded, is bound or refused; no depth in between lets an error through."""

    @tool
    def f(v: dict[str, Any]) -> None: ...

    @tool
    def g(v: list[Any]) -> None: ...

    own = f if wanted == "object" else g
    seen: set[str] = set()
    for depth in [10, 300, *range(440, 930, 7), *range(930, 1000)]:
        text = '{"next":' * depth + "null" + "}" * depth if wanted == "object" else "[" * depth + "]" * depth
        value = nested(depth) if wanted == "object" else [nested(depth - 1)]
        for made in (own, tool(anything, parameters=own.parameters)):
            try:
                made.bind({"v": text if written else value})
            except ArgumentsInvalid as error:
                seen.add(str(error).splitlines()[1][:30])
            else:
                seen.add("bound")

    assert "bound" in seen
    assert seen <= {"bound", "- the value is nested too deep", f"- v: expected {wanted}, given str"[:30]}


def expression(depth: int, leaf: Any) -> Any:
    if not depth:
        return {"type": "num", "value": leaf}
    return {"type": "times", "left": expression(depth - 1, 1), "right": expression(depth - 1, leaf)}


def deep_expression(depth: int, leaf: Any) -> Any:
    value: Any = {"type": "num", "value": leaf}
    for _ in range(depth):
        value = {"type": "times", "left": value, "right": {"type": "num", "value": 1}}
    return value


@tool
def evaluate(e: Plus | Times | Num) -> None:
    """Evaluate."""


def test_unions_in_unions_are_told_apart_by_their_tag() -> None:
    """The problem named is that of the branch that was meant."""
    assert evaluate.bind({"e": expression(3, 4)}).repaired is False
    assert refused(evaluate, {"e": expression(3, "x")}) == [
        'e.right.right.right.value: expected integer, given string "x"'
    ]
    assert refused(evaluate, {"e": {"type": "num", "value": 1, "unit": "m"}}) == [
        'e.unit: unknown property, given string "m"; known are type, value'
    ]


@pytest.mark.slow
def test_unions_in_unions_take_linear_time() -> None:
    """Each branch is tried once at each place: 60 levels of two-branch unions would else take 2**60 steps."""
    assert refused(evaluate, {"e": deep_expression(60, "x")})[0].endswith('.value: expected integer, given string "x"')


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["[]", "{}", "[1]", "\ud83d"]),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.sampled_from(["a", "b", "path", "edits", "old", "new", "type", "left"]) | st.text(), inner)
    ),
    max_leaves=12,
)


@pytest.mark.slow
@given(
    st.sampled_from([add, edit, ping, pick, evaluate]),
    st.dictionaries(st.sampled_from(["a", "b", "path", "edits", "note", "color", "e"]), json_values),
)
def test_any_json_is_bound_or_refused(made: Tool, arguments: dict[str, Any]) -> None:
    """Nothing but `ArgumentsInvalid` comes out of `bind`, its text encodes, and the arguments are left as they were."""
    before = repr(arguments)
    try:
        bound = made.bind(arguments)
    except ArgumentsInvalid as error:
        text = str(error)
        text.encode()

        assert isinstance(error, OnwardError)
        assert text.startswith(f"Tool {made.name!r} was not run")
    else:
        assert sorted(bound.arguments) == sorted(arguments)
        assert made.bind(bound.decoded).repaired is False
    assert before == repr(arguments)
