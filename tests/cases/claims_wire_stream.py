"""What must hold of the cases about event streams and fragments of calls, beyond their checks."""

from __future__ import annotations

import json
from typing import Any

from actors.models.wire import EventStreamDecoder
from protocol.events import RunFailed, StepFinished
from protocol.turns import AssistantMessage, TextPart, calls_of, text_of

from .came import Came
from .claims import calls_in, claim
from .program import Change, input_of
from .runner import run_case
from .wire.speech import data


def only(id: str, *changes: Change, order: int = 0) -> Came:
    (came,) = run_case(id, "remote", *changes, order=order)
    return came


def cause(came: Came) -> BaseException | None:
    """Why the last run failed."""
    assert came.last.error is not None
    return came.last.error.__cause__


def steps(id: str) -> list[Any]:
    """The first reply's chunks."""
    told: list[Any] = input_of(id)["http"][0]["sse"]
    return told


def bytes_of(step: Any) -> bytes:
    return bytes.fromhex(step["hex"]) if isinstance(step, dict) else str(step).encode()


def arguments_of(came: Came) -> dict[str, Any]:
    """The arguments of each call in the conversation, by its id."""
    return {call.id: json.loads(call.arguments) for call in calls_in(came.messages)}


def decoded(id: str) -> list[str]:
    """The data of the events, as the decoder reads them."""
    decoder = EventStreamDecoder()
    return [event.data for step in steps(id) for event in decoder.feed(bytes_of(step))]


@claim("SSE-02", "blank lines without data dispatch nothing")
def nothing_is_dispatched() -> None:
    assert 4 == len(decoded("SSE-02"))
    assert all(decoded("SSE-02"))


@claim("SSE-04", "no timeout, no retry (24 virtual seconds without a data event, but never 10 s without bytes)")
def keep_alives_keep_it_alive() -> None:
    came = only("SSE-04")

    assert (1, 24.0) == (len(came.served.bodies), came.last.seconds)


@claim("SSE-06", "the two data lines form one JSON document")
def two_lines_are_one_document() -> None:
    first = decoded("SSE-06")[0]

    assert "\n" in first
    assert "message_start" == json.loads(first)["type"]


@claim("SSE-08", "'data:[DONE]' ends the stream")
def done_needs_no_space() -> None:
    came = only("SSE-08", ("http.0.end", "hang"))

    assert ("Hello", True) == (came.last.result.text, came.last.seconds < 10)


@claim("SSE-09", "only CR, LF and CRLF end a line")
def other_separators_end_nothing() -> None:
    assert 3 == len(decoded("SSE-09"))
    assert {"\u2028", "\u2029", "\x85"} & set(decoded("SSE-09")[0])


@claim("SSE-10", "the error carries overloaded_error")
def the_error_says_what_it_was() -> None:
    came = only("SSE-10")

    assert "overloaded_error" in str(cause(came))
    assert "overloaded_error" in came.last.only(RunFailed).error.message


@claim("SSE-10", "the text 'Partial' is kept as partial text, not as the answer")
def a_part_is_no_answer() -> None:
    came = only("SSE-10")

    assert AssistantMessage((TextPart("Partial"),), partial=True) == came.messages[-1]
    assert (False, "Partial") == (came.last.result.answered, came.last.result.text)


@claim("SSE-12", "never outcome answer")
def a_cut_stream_is_no_answer() -> None:
    anthropic = [
        data({"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}}, "message_start"),
        data({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        data({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "He"}}),
    ]

    for end in ("close", "done", "cut"):
        assert "error" == only("SSE-12", ("http.0.end", end)).outcome
        came = only("SSE-12", ("http.0.end", end), ("wire", "anthropic"), ("http.0.sse", anthropic))
        assert ("error", "He") == (came.outcome, came.last.result.text)


@claim("SSE-12", "with an open call fragment the tool is not run")
def half_a_call_is_no_call() -> None:
    fragment = {"index": 0, "id": "a", "function": {"name": "t", "arguments": "{}"}}
    delta = data({"choices": [{"index": 0, "delta": {"tool_calls": [fragment]}, "finish_reason": None}]})
    came = only("SSE-12", ("tools", {"t": "return 1"}), ("http.0.sse", [delta]))

    assert ("error", {}) == (came.outcome, came.tool_runs)
    assert [] == calls_in(came.messages)


@claim("SSE-14", "the call returns within 1 virtual second of [DONE]")
def done_is_done() -> None:
    assert only("SSE-14").last.seconds <= 1


@claim("SSE-14", "the connection is closed or released, a second request works")
def the_next_request_works() -> None:
    again = {"when": "run_ended", "do": "user_message", "text": "again"}
    came = only("SSE-14", ("http", input_of("SSE-14")["http"] * 2), ("actions", [again]))

    assert ["Hello", "Hello"] == [played.result.text for played in came.played]


@claim("SSE-15", "usage 3/2 is counted from the trailing chunk that also has no choices")
def usage_comes_last() -> None:
    usage = only("SSE-15").last.result.usage

    assert (3, 2, True) == (usage.input_tokens, usage.output_tokens, usage.complete)


@claim("DEL-01", "calls: a {q:Emma}, b {q:Virginia}")
def one_index_two_calls() -> None:
    assert {"a": {"q": "Emma"}, "b": {"q": "Virginia"}} == arguments_of(only("DEL-01"))


@claim(
    "DEL-02", "a has arguments {c:Paris}; variant: index null; variant: first fragment with index 0, the rest without"
)
def no_index_at_all() -> None:
    plain = steps("DEL-02")
    null = [step.replace('{"tool_calls":[{', '{"tool_calls":[{"index":null,') for step in plain]
    first = [plain[0].replace('{"tool_calls":[{', '{"tool_calls":[{"index":0,'), *plain[1:]]

    assert plain not in (null, first)
    for variant in (plain, null, first):
        came = only("DEL-02", ("http.0.sse", variant))
        assert {"a": {"c": "Paris"}, "b": {}} == arguments_of(came)
        assert {"w": 1, "z": 1} == came.tool_runs


@claim("DEL-04", "one call a {n:5}")
def two_entries_one_call() -> None:
    assert {"a": {"n": 5}} == arguments_of(only("DEL-04"))


@claim(
    "DEL-05",
    "name is search, arguments {q:x}; variant: a name really sent in two pieces ('sea','rch', no repeat) gives search",
)
def a_name_is_not_repeated() -> None:
    first, second, third, *rest = steps("DEL-05")
    pieces = [first.replace('"search"', '"sea"').replace('"{\\"q\\":"', '""')]
    pieces += [second.replace('"search"', '"rch"').replace('"\\"x"', '""')]
    whole = third.replace('"name":"search",', "").replace('"\\"}"', '"{\\"q\\":\\"x\\"}"')
    variant = [*pieces, whole, *rest]

    assert [('"sea"' in pieces[0]), ('"rch"' in pieces[1])] == [True, True]
    for came in (only("DEL-05"), only("DEL-05", ("http.0.sse", variant))):
        assert [("search", {"q": "x"})] == came.tools.received
        assert ["search"] == [call.name for call in calls_in(came.messages)]


@claim(
    "DEL-07",
    "one of: attached to the only open call (t gets n=4); or the turn fails as malformed."
    " The tool is never run with the cut arguments and no call with an empty name appears",
)
def pieces_under_another_index() -> None:
    came = only("DEL-07")

    assert [("t", {"n": 4})] == came.tools.received
    assert ["t"] == [call.name for call in calls_in(came.messages)]


@claim("DEL-09", "the text 'thinking aloud' stays in the same assistant message as the call")
def text_before_a_call() -> None:
    (turn,) = [
        message
        for message in only("DEL-09").messages
        if isinstance(message, AssistantMessage) and calls_of(message.parts)
    ]

    assert "thinking aloud" == text_of(turn.parts)


@claim("ARG-02", "streamed and non-streamed parsing of the same response give the same call")
def streamed_or_whole() -> None:
    function = {"name": "ping", "arguments": ""}
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "a", "type": "function", "function": function}],
    }
    whole = {"json": {"id": "r1", "choices": [{"finish_reason": "tool_calls", "message": message}]}}
    streamed, told = only("ARG-02"), only("ARG-02", ("http.0", whole))

    assert streamed.messages == told.messages
    assert streamed.last.all(StepFinished) and {"ping": 1} == told.tool_runs
