"""What a model reads of a tool's return value, and of what it raised."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import enum
import json
import pathlib
import subprocess
import sys
import types
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import attrs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.tools import ArgumentsInvalid, OutputUnfit, render_error, render_output, tool
from protocol.errors import OnwardError, ToolError


class Color(enum.Enum):
    RED = "red"
    NONE = None


class Level(enum.IntEnum):
    HIGH = 2


class Loud(str):  # noqa: FURB189
    __slots__ = ()

    def __str__(self) -> str:
        raise ValueError("no")

    def __len__(self) -> int:
        return 10**9


class Half(float):
    __slots__ = ()

    def __repr__(self) -> str:
        return "half"


class Odd(int):
    __slots__ = ()

    def __repr__(self) -> str:
        return "NaN"


@attrs.frozen
class Point:
    x: int
    _y: Any = None


@dataclasses.dataclass
class Box:
    inside: Any


class Pair(NamedTuple):
    a: int
    b: int


class Shape(msgspec.Struct, tag_field="kind", tag="shape", rename="camel"):
    side_length: float
    note: str | msgspec.UnsetType = msgspec.UNSET


class Plain(msgspec.Struct):
    a: int


class Broken:
    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise RuntimeError("who am I?")


class BrokenMapping(collections.UserDict[str, Any]):
    def __iter__(self) -> Iterator[str]:
        raise LookupError("gone")


def shown(value: Any, max_chars: int = 100_000) -> str:
    return render_output(value, tool_name="look", max_chars=max_chars)


def cyclic() -> Any:
    value: list[Any] = []
    value.append({"a": value})
    return value


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def doubled(levels: int) -> Any:
    """A small value that is 2**levels when written out."""
    value: Any = [1]
    for _ in range(levels):
        value = [value, value]
    return value


class Nameless(type):
    """Of a class that does not tell its name."""

    def __getattribute__(cls, name: str) -> Any:
        if name in {"__name__", "__qualname__", "__module__"}:
            raise LookupError(name)
        return super().__getattribute__(name)


def hidden(*bases: type) -> Any:
    """Such a class. None stands in the module itself, where test collection would ask for its name."""
    return Nameless("Hidden", bases, {})


class Quarrelsome:
    """Is equal to nothing, and has no text."""

    def __eq__(self, other: object) -> bool:
        raise ArithmeticError

    def __hash__(self) -> int:
        return 1

    def __str__(self) -> str:
        raise ArithmeticError

    __repr__ = __str__


class QuarrelsomeText(str):  # noqa: FURB189
    __slots__ = ()
    __eq__ = Quarrelsome.__eq__
    __hash__ = str.__hash__


class Exiting(dict[str, int]):  # noqa: FURB189
    def items(self) -> Any:
        raise SystemExit(3)


class Odds(enum.Enum):
    """Members that no JSON can carry, or only in part."""

    HALF = "\ud83d"
    HUGE = 10**100_000
    OBJECT = object()
    QUARREL = Quarrelsome()


async def never() -> None: ...


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("", "(no output)"),
        (None, "(no output)"),
        (b"", "(no output)"),
        (Color.NONE, "(no output)"),
        (" \n", " \n"),
        ("a\0b", "a\0b"),
        (0, "0"),
        (False, "false"),
        ({}, "{}"),
        ([], "[]"),
        ((), "[]"),
        (set(), "[]"),
        (1.5, "1.5"),
        (2**70, "1180591620717411303424"),
        (float("nan"), "NaN"),
        ([float("inf"), -float("inf"), float("nan")], '["Infinity","-Infinity","NaN"]'),
        ("\ud83d\ude00 \ud83d", "\U0001f600 \ufffd"),
        (["\ud83d", {"\ud83d": 1}], '["\ufffd",{"\ufffd":1}]'),
        (b"\xff\xfeabc".decode("utf-8", "surrogateescape"), "\ufffd\ufffdabc"),
        (dt.datetime(2030, 1, 1), "2030-01-01T00:00:00"),  # noqa: DTZ001
        ([dt.datetime(2030, 1, 1, tzinfo=dt.UTC)], '["2030-01-01T00:00:00+00:00"]'),
        ([dt.date(2030, 1, 1), dt.time(1, 2)], '["2030-01-01","01:02:00"]'),
        (dt.timedelta(seconds=90), "PT90S"),
        ([Decimal("1.50"), Decimal("NaN")], '["1.50","NaN"]'),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ({"p": pathlib.PurePosixPath("a/b")}, '{"p":"a/b"}'),
        (b"caf\xc3\xa9", "café"),
        ([bytearray(b"a"), memoryview(b"\x00\xff")], '["a","base64:AP8="]'),
        (Color.RED, "red"),
        ({Level.HIGH: Level.HIGH}, '{"2":2}'),
        (Loud("x"), "x"),
        ([Loud("x"), Odd(3), Half(0.5)], '["x",3,0.5]'),
        ({3, 1, 2}, "[1,2,3]"),
        ({10, 9.5}, "[9.5,10]"),
        ({"b", "a"}, '["a","b"]'),
        ({"b", 1, None, (2, "x")}, '["b",1,[2,"x"],null]'),
        (frozenset({frozenset({2, 1}), frozenset({3})}), "[[1,2],[3]]"),
        (collections.deque([1, 2]), "[1,2]"),
        (range(3), "[0,1,2]"),
        ({"a": 1}.keys(), '["a"]'),
        ({"a": 1}.items(), '[["a",1]]'),
        (types.MappingProxyType({"a": 1}), '{"a":1}'),
        (collections.OrderedDict(b=1, a=2), '{"b":1,"a":2}'),
        ({1: 0, 2.5: 0, None: 2, dt.date(2030, 1, 1): 3}, '{"1":0,"2.5":0,"null":2,"2030-01-01":3}'),
        (Point(1, {2}), '{"x":1,"_y":[2]}'),
        ([Box(Pair(1, 2))], '[{"inside":[1,2]}]'),
        (Shape(2), '{"kind":"shape","sideLength":2}'),
        (Plain(1), '{"a":1}'),
        ({QuarrelsomeText("a"): QuarrelsomeText("b")}, '{"a":"b"}'),
        ({1, "a", None, (1, 2), 2.5, b"x", Odds.HALF}, '["a","x","\ufffd",1,2.5,[1,2],null]'),
        (Odds.HALF, "\ufffd"),
        ({Odds.HALF: [Odds.HALF]}, '{"\ufffd":["\ufffd"]}'),
    ],
)
def test_a_value_becomes_text(value: Any, text: str) -> None:
    """Text as it is, nothing as `(no output)`, all else as strict JSON."""
    assert text == shown(value)


def test_the_case_of_mixed_values() -> None:
    """TEX-10: dates, sets, raw bytes, NaN and Decimals in one object are one JSON object."""
    value = {
        "at": dt.datetime(2030, 1, 1),  # noqa: DTZ001
        "ids": {1, 2},
        "raw": b"\x00\xff",
        "x": float("nan"),
        "d": Decimal("1.5"),
    }

    assert json.loads(shown(value), parse_constant=lambda name: pytest.fail(name)) == {
        "at": "2030-01-01T00:00:00",
        "ids": [1, 2],
        "raw": "base64:AP8=",
        "x": "NaN",
        "d": "1.5",
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: dict, "the class dict"),
        (lambda: [Point], "the class Point"),
        (object, "an object"),
        (lambda: len, "a builtin_function_or_method"),
        (lambda: (x for x in "a"), "a generator"),
        (lambda: iter([1]), "a list_iterator"),
        (lambda: 1j, "a complex"),
        (lambda: Fraction(1, 2), "a fractions.Fraction"),
        (lambda: [ValueError("x")], "a ValueError"),
        (cyclic, "a list that contains itself"),
        (lambda: Box({"a": nested(101)}), "a list nested deeper than 100 levels"),
        (lambda: nested(100_000), "a list nested deeper than 100 levels"),
        (lambda: doubled(40), "a value too large to be written out"),
        (lambda: ["x" * 1_000_000] * 1000, "a value too large to be written out"),
        (lambda: range(10**12), "a value too large to be written out"),
        (lambda: 10**5000, "an integer of 16610 bits"),
        (lambda: {(1, 2): 3}, "a mapping with a key of type tuple"),
        (lambda: {1: "a", "1": "b"}, "a mapping with two keys that are both written '1'"),
        (never, "a coroutine that was not awaited"),
        (lambda: [never()], "a coroutine that was not awaited"),
        (lambda: 10**100_000, "an integer of 332193 bits"),
        (lambda: {10**100_000: 1}, "an integer of 332193 bits"),
        (lambda: Odds.HUGE, "an integer of 332193 bits"),
        (lambda: [Odds.OBJECT], "an object"),
        (Quarrelsome, f"a {__name__}.Quarrelsome"),
        (lambda: {Quarrelsome()}, f"a {__name__}.Quarrelsome"),
        (lambda: {Quarrelsome(): 1}, f"a {__name__}.Quarrelsome"),
        (lambda: {Odds.QUARREL: 1}, f"a {__name__}.Quarrelsome"),
        (lambda: hidden()(), f"a {__name__}.Hidden"),
        (lambda: [hidden()], "the class Hidden"),
        (lambda: {hidden()(): 1}, f"a {__name__}.Hidden"),
    ],
)
def test_what_no_text_can_stand_for_is_named(make: Callable[[], Any], what: str) -> None:
    """TEX-11: the error names tool and type, and is an ordinary error of Onward."""
    start = f"Tool 'look' returned {what}"
    with pytest.raises(OutputUnfit) as caught:
        shown(make())

    assert str(caught.value)[: len(start)] == start
    assert isinstance(caught.value, OnwardError)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: BrokenMapping(a=1), "BrokenMapping that cannot be read: LookupError: gone"),
        (Broken, "Broken that cannot be read: RuntimeError: who am I?"),
        (lambda: Exiting(a=1), "Exiting that cannot be read: SystemExit: 3"),
    ],
)
def test_a_value_whose_code_fails_is_unfit(make: Callable[[], Any], text: str) -> None:
    """What a value raises while it is read is told, and nothing else comes out."""
    with pytest.raises(OutputUnfit) as caught:
        shown(make())

    assert str(caught.value) == f"Tool 'look' returned a value of type {text}"


def test_a_hundred_levels_are_enough() -> None:
    """The depth that is promised is given."""
    assert shown(nested(100)) == "[" * 100 + "1" + "]" * 100


def test_a_shared_part_is_no_cycle() -> None:
    """A value may hold the same object twice."""
    part = [1]

    assert shown([part, part, {"a": part}]) == '[[1],[1],{"a":[1]}]'


def test_a_long_text_is_cut_in_the_middle() -> None:
    """TEX-16: head and tail are kept, and a marker states the full length."""
    text = shown("A" * 5_000_000 + "END", 10_000)

    assert text == "A" * 5000 + "\n[... cut: 5000003 characters in full, 10000 shown ...]\n" + "A" * 4997 + "END"
    assert shown(["A" * 50], 10) == '["AAA\n[... cut: 54 characters in full, 10 shown ...]\nAAA"]'


@pytest.mark.parametrize(
    "text", ["12345\ud83d" + "x" * 50, "1234\ud83d\ude00" + "x" * 50, "x" * 50 + "\ud83d\ude001234"]
)
def test_a_cut_leaves_no_half_character(text: str) -> None:
    """TEX-14: where the cut splits a pair, its halves are replaced."""
    cut = shown(text, 10)

    assert len(cut.encode().decode()) <= 10 + 60


@pytest.mark.slow
def test_sets_are_written_the_same_in_every_process() -> None:
    """The order does not depend on the hash seed: replays and caches see the same text."""
    script = (
        "from actors.tools import render_output as r; "
        "print(r({'a', 'b', 1, (1, 'a'), (1, 2), ('x',), None, 2.5}, tool_name='t', max_chars=1000))"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in (1, 2)
    }

    assert seen == {'["a","b",1,2.5,["x"],[1,"a"],[1,2],null]\n'}


nasty = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters(codec=None, exclude_categories=())),
    st.binary(),
    st.datetimes(),
    st.decimals(),
    st.uuids(),
    st.timedeltas(),
    st.complex_numbers(),
    st.builds(Broken),
    st.sampled_from([
        Color.RED,
        Level.HIGH,
        dict,
        object(),
        Loud("x"),
        cyclic(),
    ]),
)
values = st.recursive(
    nasty,
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers() | st.dates() | st.tuples(st.integers()), inner)
        | st.builds(Box, inner)
        | st.builds(Point, st.integers(), inner)
    ),
    max_leaves=15,
)
hashables = st.frozensets(st.recursive(st.none() | st.integers() | st.text() | st.floats(), lambda i: st.tuples(i, i)))


@pytest.mark.slow
@given(values | hashables, st.integers(0, 300))
def test_any_value_is_text_or_unfit(value: Any, max_chars: int) -> None:
    """T5: a text that encodes as UTF-8 and is bounded, or `OutputUnfit`; never another exception."""
    try:
        text = render_output(value, tool_name="look", max_chars=max_chars)
    except OutputUnfit as error:
        str(error).encode()

        assert str(error).startswith("Tool 'look' returned ")
    else:
        assert len(text.encode().decode()) <= max(max_chars, 11) + 100


json_like = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.slow
@given(json_like)
def test_json_values_come_back(value: Any) -> None:
    """What is JSON already is written as itself."""
    text = shown(value, 10**9)

    if value is not None and not isinstance(value, str):
        assert value == json.loads(text)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ToolError("no such row"), "no such row"),
        (ToolError(""), "ToolError"),
        (ArgumentsInvalid("Tool 't' was not run"), "Tool 't' was not run"),
        (OutputUnfit("Tool 't' returned"), "Tool 't' returned"),
        (ValueError("bad"), "ValueError: bad"),
        (ValueError(), "ValueError"),
        (KeyError("k"), "KeyError: 'k'"),
        (SystemExit(3), "SystemExit: 3"),
        (ValueError("\ud83d"), "ValueError: \ufffd"),
        (ExceptionGroup("g", [ValueError("a")]), "ValueError: a"),
        (
            ExceptionGroup("g", [ValueError("a"), ExceptionGroup("h", [ToolError("b"), KeyError("c")])]),
            "3 errors:\nValueError: a\nb\nKeyError: 'c'",
        ),
        (BaseExceptionGroup("g", [SystemExit(1), ValueError("x")]), "2 errors:\nSystemExit: 1\nValueError: x"),
    ],
)
def test_an_error_is_told(error: BaseException, text: str) -> None:
    """A `ToolError` speaks for itself; others with their type; groups by their leaves."""
    assert text == render_error(error)


def test_an_error_is_bounded() -> None:
    """No message, and no number of leaves, makes the text longer than 2000 characters."""
    long = render_error(ValueError("x" * 50_000_000))
    many = render_error(ExceptionGroup("g", [ValueError(f"e{i}") for i in range(500)]))

    assert (long[:13], long[-1], len(long) <= 2000) == ("ValueError: x", "x", True)
    assert many.splitlines()[0] == "500 errors:"
    assert many.splitlines()[-1] == "and 490 more"
    assert len(render_error(ExceptionGroup("g", [ValueError("y" * 10_000)] * 20))) <= 2000


def test_an_error_that_cannot_be_told_is_named() -> None:
    """An exception whose own text fails is still an error result."""

    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    class Exits(Exception):
        def __str__(self) -> str:
            raise SystemExit(3)

    assert [render_error(error) for error in (Mute(), Exits(), ValueError(10**100_000))] == [
        "Mute",
        "Exits",
        "ValueError",
    ]
    assert render_error(hidden(Exception)("found")) == "Hidden: found"


def test_an_error_s_text_is_read_as_what_it_is() -> None:
    """A text of a class that fails when it is used is a text all the same."""

    class Stubborn(str):  # noqa: FURB189
        __slots__ = ()

        def __format__(self, spec: str) -> str:
            raise ArithmeticError

    class Odd(Exception):
        def __str__(self) -> str:
            return Stubborn("told")

    assert render_error(Odd()) == "Odd: told"


@pytest.mark.slow
def test_groups_in_groups_are_read_to_their_leaves() -> None:
    """No depth is too deep, and no number of leaves too large."""
    error: Exception = ValueError("innermost")
    for number in range(100_000):
        error = ExceptionGroup("g", [error] if number % 2 else [error, KeyError(number)])
    lines = render_error(error).splitlines()
    while isinstance(error, ExceptionGroup):  # taken apart here: its own end would be too deep
        error = error.exceptions[0]

    assert ("50001 errors:", "ValueError: innermost", "and 49991 more") == (lines[0], lines[1], lines[-1])


def test_what_a_tool_returns_is_rendered_whole() -> None:
    """From arguments to text: the pieces fit."""

    @tool
    def ids(count: int) -> set[int]:
        return set(range(count))

    assert shown(ids.call(ids.bind({"count": 3}).arguments)) == "[0,1,2]"
