"""Reading a model's turn: whatever it sends, what is stored is canonical."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.normalise import MAX_DEPTH, normalise, parse_arguments
from protocol.turns import OpaquePart, ReasoningPart, TextPart, ToolCall, Turn

from .drawn import call_ids, is_clean, json_values, raw_arguments, texts_in, turns


def read(turn: Turn, *, known: frozenset[str] = frozenset(), max_calls: int = 128) -> tuple[Turn, dict[str, Any]]:
    return normalise(turn, knows_call=known.__contains__, max_calls=max_calls)


def one(raw: str) -> tuple[ToolCall, dict[str, Any]]:
    turn, arguments = read(Turn((ToolCall("a", "add", raw),)))
    (call,) = turn.calls
    return call, arguments["a"]


def encodes(value: Any) -> bool:
    try:
        msgspec.json.encode(value)
    except (UnicodeEncodeError, OverflowError):
        return False
    return True


@given(turns, st.frozensets(call_ids), st.integers(0, 4))
def test_ids_are_new_and_whole(turn: Turn, known: frozenset[str], max_calls: int) -> None:
    """Every id is non-empty, unlike every other and unlike all that the conversation knows (R2)."""
    read_turn, _ = read(turn, known=known, max_calls=max_calls)
    ids = [call.id for call in read_turn.calls]

    assert "" not in ids
    assert len(set(ids)) == len(ids)
    assert not known & set(ids)


@given(turns)
def test_a_good_id_is_kept(turn: Turn) -> None:
    """The vendor's id stays where it can; where it cannot, it stands in `vendor_id`."""
    read_turn, _ = read(turn)
    seen: set[str] = set()
    for before, after in zip(turn.calls, read_turn.calls, strict=True):
        if before.id.isascii() and before.id and before.id not in seen:
            assert before.id == after.id
        elif before.id.isascii():
            assert (before.vendor_id or before.id or None) == after.vendor_id
        seen.add(after.id)


@given(turns)
def test_arguments_are_always_the_text_of_an_object(turn: Turn) -> None:
    """Stored arguments parse as a JSON object, and the decoded ones are what they say (T3)."""
    read_turn, arguments = read(turn)

    assert [call.id for call in read_turn.calls] == list(arguments)
    for call in read_turn.calls:
        assert isinstance(json.loads(call.arguments), dict)
        assert msgspec.json.decode(call.arguments) == arguments[call.id]
        assert call.malformed is None or call.arguments == "{}"


@given(turns)
def test_everything_in_it_encodes(turn: Turn) -> None:
    """No lone surrogate is left in any text, id, name or argument (R3)."""
    read_turn, arguments = read(turn)
    plain = msgspec.to_builtins([part for part in read_turn.parts if not isinstance(part, OpaquePart)])

    assert [] == [text for text in texts_in([plain, arguments]) if not is_clean(text)]
    msgspec.json.encode(read_turn.parts)


@given(turns)
def test_reading_twice_is_reading_once(turn: Turn) -> None:
    """A canonical turn is left alone."""
    once, arguments = read(turn)
    twice, again = read(once)

    assert once == twice
    assert arguments == again


@given(turns, st.integers(0, 4))
def test_calls_beyond_the_limit_are_cut_off(turn: Turn, max_calls: int) -> None:
    """The first ones stay, the rest are counted; all else keeps its place (T2)."""
    read_turn, _ = read(turn, max_calls=max_calls)
    dropped = max(0, len(turn.calls) - max_calls)

    assert len(turn.calls) - dropped == len(read_turn.calls)
    assert dropped == read_turn.dropped_calls
    assert [call.malformed for call in read(turn)[0].calls[:max_calls]] == [c.malformed for c in read_turn.calls]
    assert sum(isinstance(part, TextPart) for part in turn.parts) == sum(
        isinstance(part, TextPart) for part in read_turn.parts
    )


def test_two_hundred_calls() -> None:
    """A turn with far too many calls keeps the first 128, and an opaque item goes with the call it belongs to."""
    parts: list[Any] = []
    for number in range(200):
        parts += [ToolCall(f"c{number}", "add", "{}"), OpaquePart("x", "{}", f"c{number}")]
    turn, arguments = read(Turn(tuple(parts)))

    assert [f"c{number}" for number in range(128)] == [call.id for call in turn.calls] == list(arguments)
    assert 128 == sum(isinstance(part, OpaquePart) for part in turn.parts)
    assert 72 == turn.dropped_calls


def test_an_opaque_item_follows_its_call() -> None:
    """Where an id is made anew, what belongs to the call is told."""
    turn, _ = read(Turn((ToolCall("a", "add", "{}"), OpaquePart("x", "{}", "a"))), known=frozenset("a"))
    call, item = turn.parts

    assert isinstance(call, ToolCall)
    assert OpaquePart("x", "{}", call.id) == item
    assert ("a", True) == (call.vendor_id, call.id != "a")


def test_opaque_items_of_calls_without_ids() -> None:
    """Where the server gave no ids, or one id twice, an item belongs to the last such call before it."""
    parts: list[Any] = []
    for number, told in enumerate(("", "", "x", "x", "", "")):
        parts += [ToolCall(told, "add", "{}"), OpaquePart("x", f"{number}", told)]
    turn, _ = read(Turn(tuple(parts)), max_calls=5)
    calls = [(call.id, f"{number}") for number, call in enumerate(turn.calls)]

    assert calls == [(part.call, part.data) for part in turn.parts if isinstance(part, OpaquePart)]
    assert (5, 1) == (len({call for call, _ in calls}), turn.dropped_calls)


def test_an_opaque_item_before_its_call() -> None:
    """It follows the call that comes after it, and goes where that is cut off."""
    parts = (
        OpaquePart("x", "1", "a"),
        ToolCall("a", "add", "{}"),
        OpaquePart("x", "2", "b"),
        ToolCall("b", "add", "{}"),
    )
    turn, _ = read(Turn(parts), known=frozenset("a"), max_calls=1)
    [call] = turn.calls

    assert (OpaquePart("x", "1", call.id), call) == turn.parts
    assert "a" != call.id


@pytest.mark.parametrize("raw", ["", " ", "\n", "null", " null "])
def test_no_arguments_are_an_empty_object(raw: str) -> None:
    """Empty, blank and `null` arguments are `{}` (T3)."""
    call, arguments = one(raw)

    assert ("{}", None) == (call.arguments, call.malformed)
    assert {} == arguments


@pytest.mark.parametrize(
    "raw", ["[]", "3", '"text"', "true", '{"a": 1', "{a: 1}", "{'a': 1}", '{"a": NaN}', '{"a": Infinity}', "x", "{}{}"]
)
def test_what_is_no_object_is_kept_beside(raw: str) -> None:
    """Arguments that are no JSON object are stored as `{}`, with the raw text for the error result."""
    call, arguments = one(raw)

    assert ("{}", raw) == (call.arguments, call.malformed)
    assert {} == arguments


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ('{"a": "\\ud800"}', {"a": "\ufffd"}),
        ('{"a": "\ud800"}', {"a": "\ufffd"}),
        ('{"\\udfff": 1}', {"\ufffd": 1}),
        ('{"a": "\\ud83d\\ude00"}', {"a": "\U0001f600"}),
        ('{"a": "\\\\ud800"}', {"a": "\\ud800"}),
    ],
)
def test_lone_surrogates_are_mended(raw: str, expected: dict[str, Any]) -> None:
    """A surrogate that stands alone, written out or escaped, costs one character and not the call."""
    call, arguments = one(raw)

    assert expected == arguments
    assert expected == json.loads(call.arguments)
    assert call.malformed is None


@pytest.mark.parametrize("depth", [2, MAX_DEPTH - 1])
def test_deep_arguments_are_read(depth: int) -> None:
    """Nesting up to the bound is as good as any."""
    raw = '{"a":' + "[" * depth + "]" * depth + "}"

    assert parse_arguments(raw) is not None


@pytest.mark.parametrize("depth", [MAX_DEPTH, 1000, 100_000])
def test_arguments_that_are_too_deep_are_malformed(depth: int) -> None:
    """A depth bomb is refused wherever it is read, whatever the stack in use, and costs no crash."""
    raw = '{"a":' + "[" * depth + "]" * depth + "}"
    call, _ = one(raw)

    assert raw == call.malformed


def test_brackets_in_a_string_are_no_nesting() -> None:
    """A text full of brackets is a text."""
    raw = json.dumps({"a": '["\\' + "[{" * 500})

    assert json.loads(raw) == parse_arguments(raw)


@given(st.dictionaries(st.text(), json_values.filter(encodes)))
def test_good_arguments_keep_their_value(value: dict[str, Any]) -> None:
    """What a strict JSON encoder writes is read as it was meant."""
    raw = msgspec.json.encode(value).decode()

    assert msgspec.json.decode(raw) == parse_arguments(raw)


@given(raw_arguments)
def test_parsing_never_raises(raw: str) -> None:
    """Any text at all is an object or `None`."""
    value = parse_arguments(raw)

    assert value is None or isinstance(value, dict)


def test_reasoning_keeps_its_signature() -> None:
    """What must be replayed as it was signed is not lost when its text is mended."""
    turn, _ = read(Turn((ReasoningPart("\ud800", "signed"),)))

    assert (ReasoningPart("\ufffd", "signed"),) == turn.parts


def test_the_rest_of_the_turn_is_untouched() -> None:
    """Usage, finish reason and end are the model's, whatever is mended in the parts."""
    turn = Turn((ToolCall("", "add", "x"),), "tool_calls", "raw", end="lost", response="r1", dropped_calls=2)
    after, _ = read(turn, max_calls=0)

    assert ("tool_calls", "raw", "lost", "r1", 3) == (
        after.finish,
        after.raw_finish,
        after.end,
        after.response,
        after.dropped_calls,
    )
