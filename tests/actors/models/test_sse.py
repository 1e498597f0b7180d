"""The event-stream decoder."""

from __future__ import annotations

import re
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from actors.models.wire._sse import EventStreamDecoder, EventTooLargeError, ServerSentEvent


def decode(*chunks: bytes | str, max_event_bytes: int = 1000) -> list[ServerSentEvent]:
    decoder = EventStreamDecoder(max_event_bytes=max_event_bytes)
    events = []
    for chunk in chunks:
        events += decoder.feed(chunk.encode() if isinstance(chunk, str) else chunk)
    return events


def data_of(*chunks: bytes | str) -> list[str]:
    return [event.data for event in decode(*chunks)]


def test_an_event_has_data_a_name_and_the_last_id() -> None:
    """Name and id are read; the name is for one event, the id holds on."""
    events = decode("event: a\nid: 7\ndata: x\n\ndata: y\n\n")

    assert [ServerSentEvent("x", "a", "7"), ServerSentEvent("y", "message", "7")] == events


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("data:x\n\n", ["x"]),
        ("data: x\n\n", ["x"]),
        ("data:  x\n\n", [" x"]),
        ("data: a\ndata: b\n\n", ["a\nb"]),
        ("data\n\n", [""]),
        ("data:\ndata:\n\n", ["\n"]),
        ("data: a:b\n\n", ["a:b"]),
        (": comment\n\n", []),
        (":\n\n", []),
        ("event: keepalive\n\n", []),
        ("id: 1\n\nretry: 10\n\n", []),
        ("event: gone\n\ndata: x\n\n", ["x"]),
        ("dataset: x\n data: y\nDATA: z\n\n", []),
        ("\n\n\ndata: x\n\n\n", ["x"]),
        ("data: x\n", []),
        ("data: x", []),
        ("data: a\u2028b\u2029c\u0085d\u000be\u000cf\n\n", ["a\u2028b\u2029c\u0085d\u000be\u000cf"]),
    ],
)
def test_lines_are_read_as_the_rules_say(text: str, expected: list[str]) -> None:
    """Comments, fields without value, several data lines, Unicode separators: as the standard has it."""
    assert expected == data_of(text)


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_each_of_the_three_line_ends_ends_a_line(end: str) -> None:
    """LF, CR and CRLF mean the same."""
    assert ["a\nb", "c"] == data_of(f"data: a{end}data: b{end}{end}data: c{end}{end}")


def test_a_crlf_that_is_cut_in_two_is_one_line_end() -> None:
    """SSE-06: the two data lines are one event, whatever the chunks."""
    assert ['{"a":\n1}'] == data_of('data: {"a":\r', "\ndata: 1}\r\n\r", "\n")


def test_an_event_is_out_as_soon_as_its_blank_line_is() -> None:
    """A CR at the end of a chunk does not wait for an LF that may never come."""
    decoder = EventStreamDecoder()

    assert [ServerSentEvent("x")] == decoder.feed(b"data: x\r\r")
    assert [] == decoder.feed(b"\n")
    assert [ServerSentEvent("y")] == decoder.feed(b"data: y\n\n")


def test_a_byte_order_mark_is_left_out_at_the_start_alone() -> None:
    """Only the first three bytes of the stream can be one."""
    mark = b"\xef\xbb\xbf"

    assert ["x"] == data_of(mark + b"data: x\n\n")
    assert ["x"] == data_of(mark[:1], mark[1:2], mark[2:] + b"data: x\n\n")
    assert ["x\ufeff"] == data_of(b"data: x" + mark + b"\n\n")
    assert [] == data_of(mark + mark + b"data: x\n\n")


def test_a_character_that_is_cut_in_two_is_whole_again() -> None:
    """SSE-05: chunks do not respect characters."""
    assert ["\u4f60\u597d\U0001f600"] == data_of(b"data: \xe4\xbd\xa0\xe5", b"\xa5\xbd\xf0\x9f\x98\x80\n\n")


def test_bytes_that_are_no_utf8_become_replacement_characters() -> None:
    """A broken byte costs a character, not the stream."""
    assert ["a\ufffdb"] == data_of(b"data: a\xffb\n\n")


def test_an_id_with_a_null_character_is_ignored() -> None:
    """As the standard says."""
    assert [ServerSentEvent("x", id="1")] == decode("id: 1\nid: 2\0\ndata: x\n\n")


@pytest.mark.parametrize(
    "chunks",
    [
        ["data: " + "x" * 20],
        ["data: ", "x" * 10, "x" * 10],
        ["data: " + "x" * 20 + "\n\n"],
        ["data: xxxxx\n"] * 4,
        [": " + "x" * 20],
        [": " + "x" * 20 + "\n"],
    ],
)
def test_a_line_or_event_that_grows_too_long_is_an_error(chunks: list[str]) -> None:
    """A stream cannot fill the memory, with one line or with many."""
    with pytest.raises(EventTooLargeError, match="longer than 16 bytes"):
        decode(*chunks, max_event_bytes=16)


def test_events_within_the_limit_pass_for_ever() -> None:
    """The limit is for one event, not for the stream."""
    assert 50 == len(decode(*["data: xxxxx\n\n"] * 50, max_event_bytes=16))


WORDS = st.sampled_from([
    "data: x",
    "data:y",
    "data",
    "event: e",
    "id: 1",
    ":",
    ": c",
    "",
    "é\u2028",
    "\ufeff",
    "\n",
    "\r",
    "\r\n",
    "😀",
])


@given(st.lists(WORDS, max_size=30), st.data())
@example(["\ufeff", "data: x", "\r", "\n", "\r", "\n"], None)
def test_any_split_gives_the_same_events(words: list[str], choices: st.DataObject | None) -> None:
    """Where the network cuts the stream makes no difference."""
    stream = "".join(words).encode()
    whole = decode(stream)
    cuts = choices.draw(st.lists(st.integers(0, len(stream)))) if choices else []
    bounds = [0, *sorted(cuts), len(stream)]
    split = decode(*[stream[start:end] for start, end in zip(bounds, bounds[1:], strict=False)])
    single = decode(*[stream[index : index + 1] for index in range(len(stream))])

    assert whole == split
    assert whole == single


def by_the_standard(stream: bytes) -> list[ServerSentEvent]:
    """The rules of the HTML standard, "Interpreting an event stream", written down as they stand there."""
    text = stream.decode("utf-8", "replace").removeprefix("\ufeff")
    events: list[ServerSentEvent] = []
    data, name, last_id = "", "", ""
    lines = re.split("\r\n|\n|\r", text)
    for line in lines[:-1]:  # what no line end follows is discarded
        field, colon, value = line.partition(":")
        if line == "":
            if data != "":
                events.append(ServerSentEvent(data.removesuffix("\n"), name or "message", last_id))
            data, name = "", ""
        elif colon and not field:
            continue
        elif field == "data":
            data += value.removeprefix(" ") + "\n"
        elif field == "event":
            name = value.removeprefix(" ")
        elif field == "id" and "\0" not in value:
            last_id = value.removeprefix(" ")
    return events


FIELDS = st.sampled_from(["data", "event", "id", "retry", "Data", " data", "data ", "comment", "dat", "a\u2028b", ""])
VALUES = st.text(st.sampled_from('x: {}"\\\t\0\v\f\x1c\u0085\u2028\u2029\ufeffé😀'), max_size=6)
LINES = st.one_of(
    st.builds("{}{}{}".format, FIELDS, st.sampled_from(["", ":", ": ", ":  ", "::"]), VALUES),
    st.just("data: x"),
    st.just(""),
)
ENDS = st.sampled_from(["\n", "\r", "\r\n"])
STREAMS = st.lists(st.tuples(LINES, ENDS), max_size=25).map(lambda pairs: "".join([line + end for line, end in pairs]))


@given(
    st.sampled_from(["", "\ufeff", "\ufeff\ufeff"]),
    STREAMS,
    st.sampled_from(["", "data: rest", "data: rest\n", "\r"]),
    st.lists(st.integers(0, 400)),
)
def test_noise_is_read_as_the_standard_says(mark: str, noise: str, rest: str, cuts: list[int]) -> None:
    """Comments, unknown fields, every mix of line ends and byte order marks, however the network cuts them."""
    stream = (mark + noise + rest).encode()
    bounds = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    chunks = [stream[start:end] for start, end in zip(bounds, bounds[1:], strict=False)]

    assert by_the_standard(stream) == decode(*chunks)


@given(st.binary(max_size=200), st.integers(1, 9))
def test_bytes_of_any_kind_are_read_as_the_standard_says(stream: bytes, size: int) -> None:
    """Broken UTF-8 within a line gives the same replacement characters as in the whole."""
    chunks = [stream[at : at + size] for at in range(0, len(stream), size)]

    assert by_the_standard(stream) == decode(*chunks)
    assert by_the_standard(b"data:" + stream + b"\n\n") == decode(b"data:", *chunks, b"\n\n")


@pytest.mark.parametrize("piece", [b"data: x\n", b"data\n", b"x"])
def test_an_event_takes_no_more_memory_than_it_holds(piece: bytes) -> None:
    """Many small lines, or a line in many small chunks, up to the limit: lists of them would take many times as much."""
    limit = 2**15
    decoder = EventStreamDecoder(max_event_bytes=limit)
    tracemalloc.start()
    try:
        with pytest.raises(EventTooLargeError):
            for _ in range(limit * 2):
                decoder.feed(piece)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < limit * 3
