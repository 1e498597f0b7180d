"""JSON out never fails for what a program put into an event; JSON in is strict."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.codec import decode, decode_event, digest_of, encode, encode_event
from protocol.events import ContentDelta, ToolFinished, ToolRequested, Warned
from protocol.turns import ToolCall, UserMessage

from .drawn import any_text, is_clean, json_values, texts_in


class Stranger:
    """Something that JSON has no form for."""

    def __repr__(self) -> str:
        return "<a stranger>"


class Liar:
    """Something whose repr raises."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


def requested(value: Any) -> ToolRequested:
    return ToolRequested(run="r", call="c", name="add", arguments={"a": value})


@given(json_values)
def test_any_value_encodes(value: Any) -> None:
    """What a tool or a model gives becomes UTF-8 JSON, whatever it holds."""
    data = encode_event(requested(value))
    decoded = json.loads(data.decode())

    assert "tool_requested" == decoded["type"]
    assert [] == [text for text in texts_in(decoded) if not is_clean(text)]


@given(any_text)
def test_only_surrogates_are_replaced(text: str) -> None:
    """One U+FFFD for each lone surrogate, and every other character as it was."""
    event = ContentDelta(run="r", message="m", text=text)
    expected = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    assert ContentDelta(run="r", message="m", text=expected) == decode_event(encode_event(event))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Stranger(), "<a stranger>"),
        ([Stranger(), 1], ["<a stranger>", 1]),
        ({"\ud800": "\udfff"}, {"\ufffd": "\ufffd"}),
        (float("nan"), None),
        (2**70, 2**70),
        (b"\xff", "/w=="),
        ({1, 2} - {2}, [1]),
        (1 + 2j, "(1+2j)"),
    ],
)
def test_what_json_has_no_form_for_is_replaced(value: Any, expected: Any) -> None:
    """The rest of the event stays, and the event keeps its kind."""
    decoded = decode_event(encode_event(requested(value)))

    assert isinstance(decoded, ToolRequested)
    assert "c" == decoded.call
    assert expected == decoded.arguments["a"]


@pytest.mark.parametrize("value", [Liar(), nested(100_000)], ids=["repr raises", "too deep"])
def test_the_worst_value_costs_its_content_and_not_the_log(value: Any) -> None:
    """Whatever it is, there is an event of this type and run on the wire."""
    decoded = json.loads(encode_event(requested(value)))

    assert ("tool_requested", "r") == (decoded["type"], decoded["run"])


def test_a_status_that_is_none_still_encodes() -> None:
    """Events are made without checks, on a hot path: a wrong field is still an event."""
    event = ToolFinished(run="r", call="c", name="n", status="odd", started=False, text=3)  # type: ignore[arg-type]

    assert {
        "type": "tool_finished",
        "run": "r",
        "call": "c",
        "name": "n",
        "status": "odd",
        "started": False,
        "text": 3,
    } == (json.loads(encode_event(event)))


@pytest.mark.parametrize("data", ["", "{", "[]", '{"text": NaN}', '{"role":"user"}', '{"role":"user","text":1}', "{}x"])
def test_decoding_is_strict(data: str) -> None:
    """What is no such value is refused, not guessed."""
    with pytest.raises((msgspec.DecodeError, msgspec.ValidationError)):
        decode(data, UserMessage)


def test_a_refusal_says_where() -> None:
    """The error names the path of what was wrong."""
    with pytest.raises(msgspec.ValidationError, match=r"\$\.call"):
        decode_event('{"type":"tool_started","run":"r","call":3,"name":"n"}')


@given(st.dictionaries(st.text(), json_values), st.randoms(use_true_random=False))
def test_a_digest_does_not_depend_on_order(value: dict[str, Any], random: Any) -> None:
    """Two mappings that are equal have one digest, however they were built."""
    items = list(value.items())
    random.shuffle(items)

    assert digest_of(value) == digest_of(dict(items))


def test_a_digest_is_the_same_in_every_process() -> None:
    """It is shown to people and stored: it may not depend on hash seeds, versions or ids."""
    value = ("run-1", {"b": [1, "ü"], "a": None}, ToolCall("c", "add", "{}"))

    assert "9b51e064d860c2d64bfcbd85158fa619" == digest_of(value)
    assert digest_of(value) == digest_of(json.loads(encode(value)))


@given(st.lists(st.text(max_size=3), max_size=4), st.lists(st.text(max_size=3), max_size=4))
def test_values_that_differ_have_digests_that_differ(first: list[str], second: list[str]) -> None:
    """What a person saw cannot be swapped for something else, nor its parts be shifted."""
    assert (first == second) == (digest_of(first) == digest_of(second))


def test_a_digest_of_bad_values() -> None:
    """What cannot be encoded is shown by its replacement, and has a digest."""
    assert digest_of(["\ufffd", "<a stranger>"]) == digest_of(["\ud800", Stranger()])


def test_a_warning_names_its_call_only_if_it_has_one() -> None:
    """Absent is absent, not null."""
    assert b'{"type":"warning","run":"r","code":"c","text":"t"}' == encode_event(Warned(run="r", code="c", text="t"))
