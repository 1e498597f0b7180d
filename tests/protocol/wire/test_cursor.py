"""A client's place in the numbers: nothing twice, and no gap unnoticed."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.events import ContentDelta
from protocol.wire.cursor import Cursor
from protocol.wire.incoming import NotOfTheWireError, read_messages, read_params
from protocol.wire.notifications import Events


def events(seq: int, *values: Any, epoch: str = "e") -> Events:
    return Events(
        agent="a", epoch=epoch, seq=seq, events=tuple(msgspec.Raw(json.dumps(value).encode()) for value in values)
    )


def delta(first: int, last: int) -> dict[str, Any]:
    """The numbers of this stretch as one piece of text."""
    text = "".join(f"{number} " for number in range(first, last + 1))
    return {"type": "content_delta", "run": "r", "message": "m", "text": text, "n": last - first + 1}


@st.composite
def stretches(draw: st.DrawFn, end: int = 30) -> list[Events]:
    """What a server may send: stretches of the log, merged in any way, again and again, some left out."""
    sent: list[Events] = []
    for _ in range(draw(st.integers(1, 12))):
        first = draw(st.integers(1, end))
        cuts = sorted(draw(st.sets(st.integers(first, end), min_size=1, max_size=8)))
        values, at = [], first
        for cut in cuts:
            values.append(delta(at, cut))
            at = cut + 1
        sent.append(events(first, *values))
    return sent


@given(stretches())
def test_what_is_taken_is_the_log_without_gap_or_double(sent: list[Events]) -> None:
    """Whatever comes in whatever order: the texts that were taken are a prefix of the log."""
    cursor = Cursor("e", 0)
    text = ""
    for message in sent:
        before = cursor.seq
        new, whole = cursor.take(message)
        text += "".join(numbered.event.text for numbered in new if isinstance(numbered.event, ContentDelta))

        assert "".join(f"{number} " for number in range(1, cursor.seq + 1)) == text
        assert whole or before == cursor.seq or new

    assert cursor.seq == (int(text.split()[-1]) if text else 0)


def test_a_gap_an_epoch_and_a_span_are_told() -> None:
    """And nothing behind them is taken."""
    for message in (events(3, delta(3, 3)), events(2, delta(2, 2), epoch="f"), events(1, delta(1, 2), delta(3, 3))):
        cursor = Cursor("e", 1)

        assert ([], False, 1) == (*cursor.take(message), cursor.seq)


def test_what_was_left_out_and_what_is_unknown_has_its_numbers() -> None:
    """They are counted once, however often they come."""
    cursor = Cursor("e", 0)
    message = events(1, {"type": "skipped", "n": 4}, {"type": "new"}, {"type": "newer", "n": 2}, delta(8, 8))
    (taken,), whole = cursor.take(message)
    cursor.take(message)

    assert (8, 8, True) == (taken.number, taken.last, whole)
    assert (8, 4, 2, 8) == (cursor.seq, cursor.skipped, cursor.unknown, cursor.duplicates)


@pytest.mark.parametrize("value", [None, 3, [], {}, {"type": 3}, {"type": "new", "n": 0}, {"type": "new", "n": "1"}])
def test_what_is_no_event_is_a_fault(value: Any) -> None:
    """No number can be given to what follows it."""
    with pytest.raises(NotOfTheWireError):
        Cursor("e", 0).take(events(1, value))


@given(st.text(max_size=40) | st.sampled_from(["[]", "{}", "[[]]", "null", '{"method": 3}', '{"method": "events"}']))
def test_a_frame_is_read_or_refused(frame: str) -> None:
    """By one exception, whatever it holds."""
    try:
        for message in read_messages(frame):
            read_params(message)
    except NotOfTheWireError as error:
        assert str(error)


def test_one_message_or_several_make_a_frame() -> None:
    """In their order; a notification that is not known is passed over."""
    frame = '[{"id":1,"result":{"a":1}},{"method":"news"},{"method":"heartbeat","params":{"heads":{"a":3}}}]'
    reply, news, heartbeat = read_messages(frame)

    assert (1, b'{"a":1}') == (reply.id, bytes(reply.result))
    assert read_params(news) is None
    assert {"a": 3} == getattr(read_params(heartbeat), "heads", None)
    assert (reply,) == read_messages(' {"id":1,"result":{"a":1}}')
