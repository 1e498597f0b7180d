"""Strict JSON: what means one thing to everybody is taken, and nothing else."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.wire import NotStrictError, strict_loads

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=20,
)


@settings(deadline=None)
@given(values, st.booleans(), st.sampled_from([None, 2]))
def test_json_is_taken(value: Any, ascii_only: bool, indent: int | None) -> None:
    """Whatever can be written as strict JSON is read as it was, from text and from bytes."""
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)

    assert value == strict_loads(text) == strict_loads(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "nul",
        "NaN",
        "Infinity",
        "[-Infinity]",
        '{"a":NaN}',
        "1e999",
        "-1e999",
        "[1" + "0" * 400 + ".5]",
        "9223372036854775808",
        "-9223372036854775809",
        "1" * 5000,
        '"\\ud800"',
        '"\\udc00 and more"',
        '"\\ud83d\\u0041"',
        '{"\\ud800":1}',
        '"\ud800"',
        '{"a":1,"a":1}',
        '{"a":1,"\\u0061":2}',
        '[{"x":{"b":1,"b":2}}]',
        "\ufeff{}",
        "{} {}",
        "{}x",
        "[1,]",
        '{"a":1,}',
        "{'a':1}",
        "[01]",
        "[+1]",
        "[.5]",
        "[1.]",
        '"\t"',
        '"\x00"',
        "\x0b[]",
        "// no\n{}",
    ],
)
def test_what_is_none(text: str) -> None:
    """It is refused, by one kind of error."""
    with pytest.raises(NotStrictError):
        strict_loads(text)


@pytest.mark.parametrize(
    "text", ['{"token":"s3cret"', '{"s3cret":1,"s3cret":2}', '["s3cret",NaN]', '["s3cret","\\ud800"]']
)
def test_the_error_quotes_nothing(text: str) -> None:
    """What was sent may be a secret."""
    with pytest.raises(NotStrictError) as caught:
        strict_loads(text)

    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "data", [b"\xff", b'"\xed\xa0\x80"', b"\xef\xbb\xbf{}", b'"\xc0\xaf"', '{"a":1}'.encode("utf-16")]
)
def test_bytes_that_are_no_text(data: bytes) -> None:
    """UTF-8 without a mark is what there is."""
    with pytest.raises(NotStrictError):
        strict_loads(data)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("1.7976931348623157e308", 1.7976931348623157e308),
        ("1e-400", 0.0),
        ("-0", 0),
        ('"\\ud83d\\ude00"', "\U0001f600"),
        ('{"a":{"a":1},"b":{"a":2}}', {"a": {"a": 1}, "b": {"a": 2}}),
        ('" \\u0000 "', " \x00 "),
    ],
)
def test_what_is_just_so(text: str, value: Any) -> None:
    """The last number on each side, pairs of surrogates, the same key in two objects."""
    found = strict_loads(text)

    assert value == found
    assert not isinstance(found, float) or math.isfinite(found)


@pytest.mark.parametrize("brackets", ["[]", "{}"])
@pytest.mark.parametrize(("depth", "taken"), [(64, True), (65, False), (100_000, False)])
def test_depth(brackets: str, depth: int, taken: bool) -> None:
    """64 levels, of any kind; beyond that nothing is parsed."""
    opening, closing = brackets[0], brackets[1]
    text = '{"a":' * (depth - 1) + "{}" + "}" * (depth - 1) if opening == "{" else opening * depth + closing * depth
    try:
        strict_loads(text)
    except NotStrictError as error:
        said = str(error)
    else:
        said = ""

    assert taken == (not said)
    assert taken or "deeper than 64" in said


def test_brackets_in_texts_are_no_depth() -> None:
    """Whatever a text holds, quotes and backslashes too."""
    value = {"a": "[" * 500, "b": '\\"' + "{" * 500, "c": "\\"}

    assert value == strict_loads(json.dumps(value))


def test_many_brackets_are_no_depth() -> None:
    """A long list of lists is flat."""
    value: list[Any] = [[] for _ in range(5000)]

    assert value == strict_loads(json.dumps(value))


@pytest.mark.parametrize("text", ['"' + "\\" * 65_000, "[" * 65_000, '{"a":' * 13_000, '"' * 65_000, "\\" * 65_000])
def test_what_is_meant_to_take_long(text: str) -> None:
    """It is refused as fast as it is read."""
    with pytest.raises(NotStrictError):
        strict_loads(text)


@settings(deadline=None, max_examples=300)
@given(st.text(alphabet='{}[]":,\\u0123dn \ud800\x00e+-.', max_size=40) | st.text(max_size=40))
def test_never_another_error(text: str) -> None:
    """Whatever is sent, it is a value or this error; and a value can be sent on."""
    try:
        value = strict_loads(text)
    except NotStrictError:
        return

    assert json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
