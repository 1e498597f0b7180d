"""Interactions: the hops of a decode, read into one turn."""

from __future__ import annotations

import json
from typing import Any

import pytest

from actors.models.gemini._interactions_reply import turn_of, usage_of
from protocol.decode import HopRecord
from protocol.errors import ModelError, ModelReplyError, ModelServerError
from protocol.normalise import normalise
from protocol.outcome import outcome_of
from protocol.turns import Finish, OpaquePart, Part, ReasoningPart, TextPart, ToolCall
from protocol.usage import Usage
from tests.actors.models._interactions_read import ENDPOINT, read
from tests.support.interactions import Call, Checkpoint, Hop, Raw, Step, Thought, hop

SIGNED = Call("c1", "add", {"a": 1, "b": 2}, signature="s2")
FORMS = pytest.mark.parametrize(
    ("streamed", "older"), [(True, False), (True, True), (False, False)], ids=["stream", "older names", "whole"]
)


def opaque(step: dict[str, Any], call: str | None = None) -> OpaquePart:
    return OpaquePart("gemini-interactions", json.dumps(step, separators=(",", ":"), ensure_ascii=False), call)


def thought(signature: str, *said: str) -> OpaquePart:
    return opaque({"type": "thought", "signature": signature, "summary": [{"type": "text", "text": t} for t in said]})


def same(expected: tuple[Part, ...], actual: tuple[Part, ...]) -> bool:
    """Whether parts are equal, whatever the order of the fields in what is opaque."""
    return [_plain(part) for part in expected] == [_plain(part) for part in actual]


def _plain(part: Part) -> Any:
    return (part.format, json.loads(part.data), part.call) if isinstance(part, OpaquePart) else part


@FORMS
def test_a_whole_reply(*, streamed: bool, older: bool) -> None:
    """Thoughts, text and signed calls become parts in their order; deltas say the same in every form."""
    done = read(hop(Thought("s1", "Hm."), "Let me ", "see.", SIGNED), streamed=streamed, older=older)
    call = ToolCall("c1", "add", '{"a":1,"b":2}')

    assert same(
        (ReasoningPart("Hm."), thought("s1", "Hm."), TextPart("Let me see."), call, opaque({"signature": "s2"}, "c1")),
        done.turn.parts,
    )
    assert ("tool_calls", "requires_action", "i1") == (done.turn.finish, done.turn.raw_finish, done.turn.response)
    assert ("Let me see.", "Hm.") == (done.heard.text, done.heard.reasoning)
    assert [("add", {"a": 1, "b": 2})] == [(name, json.loads(text)) for name, text in done.heard.calls]
    assert (Usage(10, 0, None, 7, 4, complete=True), ()) == (
        done.turn.usage,
        done.turn.hops,
    )


@FORMS
def test_hops_are_one_turn(*, streamed: bool, older: bool) -> None:
    """A text that goes on over a boundary is one text; usage is summed, and the context is the last hop's input."""
    again = Step({"type": "user_input", "content": [{"type": "text", "text": "Hello?"}]})
    last = hop(again, "upon a time.", usage={"total_input_tokens": 20, "total_cached_tokens": 15})
    done = read(hop("Once ", token="tk1"), last, streamed=streamed, older=older)
    first_usage, last_usage = Usage(10, 0, None, 1, 0, complete=True), Usage(5, 15, None, 1, 0, complete=True)

    assert (TextPart("Once upon a time."),) == done.turn.parts
    assert "Once upon a time." == done.heard.text
    assert ("stop", "completed", "i2") == (done.turn.finish, done.turn.raw_finish, done.turn.response)
    assert (first_usage + last_usage, 20) == (done.turn.usage, done.turn.context_tokens)
    assert read(hop("a", token="t"), hop("b", usage=None)).turn.context_tokens is None
    assert [("i1", "requires_continuation", first_usage), ("i2", "completed", last_usage)] == [
        (made.interaction, made.status, made.usage) for made in done.turn.hops
    ]


CUT_CALL = Call("c1", "add", pieces=('{"a": 1, "b',))


@pytest.mark.parametrize(
    ("hops", "calls", "cut"),
    [
        pytest.param([hop("a", CUT_CALL, token="t"), hop("b")], ["c1"], True, id="cut"),
        pytest.param([hop(CUT_CALL, "a", token="t"), hop("b")], ["c1"], True, id="cut before other output"),
        pytest.param([hop("a", SIGNED, token="t"), hop("b")], ["c1"], True, id="the last word of its hop"),
        pytest.param([hop("a", CUT_CALL, token="t"), hop(SIGNED)], ["c1"], False, id="cut and made again"),
        pytest.param([hop("a", SIGNED, token="t"), hop(SIGNED)], ["c1"], False, id="made twice"),
        pytest.param([hop(SIGNED, "a", token="t"), hop("b")], ["c1"], False, id="whole before other output"),
        pytest.param([hop(SIGNED, "a", token="t"), hop(SIGNED)], ["c1"], False, id="whole and made again"),
        pytest.param([hop(CUT_CALL, token="t"), hop(Call("c2", "add"))], ["c1", "c2"], True, id="cut, and another"),
        pytest.param([hop(SIGNED, Call("c2", "add"))], ["c1", "c2"], False, id="one hop"),
        pytest.param([hop(SIGNED, SIGNED)], ["c1", "?"], False, id="one id twice"),
    ],
)
def test_a_call_that_a_boundary_cut_is_not_run(hops: list[Hop], calls: list[str], cut: bool) -> None:
    """None of the calls runs where one was cut between two hops; a call that was made again is one call."""
    turn = read(*hops).turn

    assert (len(calls), calls[0]) == (len(turn.calls), turn.calls[0].id)
    assert cut == outcome_of(turn).cut
    if not cut:
        assert {"a": 1, "b": 2} == json.loads(turn.calls[0].arguments)


@pytest.mark.parametrize(
    ("status", "finish"),
    [
        ("completed", "stop"),
        ("requires_action", "tool_calls"),
        ("incomplete", "length"),
        ("budget_exceeded", "length"),
        ("requires_continuation", "length"),
        ("waiting_for_godot", "other"),
    ],
)
def test_how_a_status_ends_the_turn(status: str, finish: Finish) -> None:
    """Statuses become the field's words, and are kept verbatim."""
    turn = read(hop("a", status=status)).turn

    assert (finish, status, "complete") == (turn.finish, turn.raw_finish, turn.end)


@pytest.mark.parametrize(
    ("over", "error", "said"),
    [
        ({"status": "failed", "errors": [{"code": "x", "message": "on fire"}]}, ModelServerError, "'failed': on fire"),
        ({"status": "failed", "error": {"message": "on fire"}}, ModelServerError, "'failed': on fire"),
        ({"status": "cancelled"}, ModelServerError, "'cancelled'"),
        ({"status": "in_progress"}, ModelReplyError, "'in_progress'"),
        ({"status": "queued"}, ModelReplyError, "'queued'"),
        ({"status": ""}, ModelReplyError, "no status"),
    ],
)
def test_what_is_no_answer(over: dict[str, Any], error: type[ModelError], said: str) -> None:
    """A decode that failed, or that goes on elsewhere, is an error that says why, with what was said in it."""
    steps = [{"type": "model_output", "content": [{"type": "text", "text": "a"}]}]
    interaction = {"id": "i1", "steps": steps, **over}
    record = HopRecord(number=0, interaction=interaction, status=over["status"], ended=True)
    with pytest.raises(error, match=said) as caught:
        turn_of([record], ENDPOINT)

    assert caught.value.partial is not None
    assert ("a", "lost") == (caught.value.partial.text, caught.value.partial.end)
    assert (over["status"] != "cancelled") == caught.value.retryable


def test_arguments_as_servers_really_send_them() -> None:
    """`{}` at a call's beginning is no argument; pieces find their call under the index of the thought before it."""
    done = read(
        hop(
            Thought("s1"),
            Call("c1", "add", pieces=('{"a"', ": 1}"), index=0),
            Call("c2", "now", pieces=()),
            Raw({"event_type": "step.start", "index": 9, "step": {"type": "function_call", "id": "c3", "name": "add"}}),
            Raw({
                "event_type": "step.delta",
                "index": 9,
                "delta": {"type": "arguments_delta", "partial_arguments": "{}"},
            }),
            status="requires_action",
        )
    )

    assert [("c1", '{"a":1}'), ("c2", "{}"), ("c3", "{}")] == [(call.id, call.arguments) for call in done.turn.calls]
    assert [("add", '{"a": 1}'), ("now", ""), ("add", "{}")] == done.heard.calls


def raw(kind: str, index: int, **fields: Any) -> Raw:
    return Raw({"event_type": kind, "index": index, **fields})


def begun(index: int, name: str, arguments: Any = None) -> Raw:
    return raw("step.start", index, step={"type": "function_call", "id": name, "name": name, "arguments": arguments})


def argued(index: int, text: str) -> Raw:
    return raw("step.delta", index, delta={"type": "arguments_delta", "arguments": text})


ODD_CALLS: dict[str, tuple[list[Hop], list[tuple[str, str]]]] = {
    "an index of the hop before": (
        [hop(Call("x", "x"), "a", token="t"), hop(Thought("s"), Call("y", "y", pieces=('{"b":2}',), index=0))],
        [("x", "{}"), ("y", '{"b":2}')],
    ),
    "the open one": (
        [hop(begun(1, "x"), begun(2, "y"), raw("step.stop", 2), argued(0, '{"a":1}'), status="requires_action")],
        [("x", '{"a":1}'), ("y", "{}")],
    ),
    "others than it began with": (
        [hop(begun(0, "x", {"a": 0}), argued(0, '{"a":1}'), raw("step.stop", 0), status="requires_action")],
        [("x", '{"a":1}')],
    ),
    "ended twice": (
        [hop(begun(0, "x", {"a": 1}), raw("step.stop", 0), raw("step.stop", 0), status="requires_action")],
        [("x", '{"a":1}')],
    ),
    "of the first preview": (
        [
            hop(
                raw("content.start", 0, content={"type": "function_call"}),
                raw("content.delta", 0, delta={"type": "function_call", "id": "x", "name": "x", "arguments": {"a": 1}}),
                raw("content.stop", 0),
                status="requires_action",
            )
        ],
        [("x", '{"a":1}')],
    ),
}


@pytest.mark.parametrize("name", ODD_CALLS)
def test_what_is_told_of_a_call_is_what_it_is(name: str) -> None:
    """Deltas and the turn agree on whose arguments are whose."""
    hops, calls = ODD_CALLS[name]
    done = read(*hops)

    assert calls == [(call.name, call.arguments) for call in done.turn.calls]
    assert calls == [(told, arguments or "{}") for told, arguments in done.heard.calls]


def test_what_is_told_of_a_text_is_what_it_is() -> None:
    """The input that is streamed back is not shown; steps that the end repeats are not shown twice."""
    spoken = raw("step.delta", 0, delta={"type": "text", "text": "Hello?"})
    steps = [{"type": "model_output", "content": [{"type": "text", "text": "b"}]}]
    done = read(
        hop(Thought("s"), raw("step.start", 0, step={"type": "user_input"}), spoken, raw("step.stop", 0), token="t"),
        hop(raw("step.delta", 0, delta={"type": "text", "text": "a"}), token="u"),
        hop("b", over={"steps": steps}),
    )

    assert ("ab", "ab") == (done.turn.text, done.heard.text)


def test_a_call_whose_arguments_are_no_json() -> None:
    """They are kept as they came: such a call is answered with an error, and not run."""
    turn = read(hop(Call("c1", "add", pieces=('{"a": ',)))).turn
    read_turn, _ = normalise(turn, knows_call=lambda _: False, max_calls=9)

    assert '{"a": ' == read_turn.calls[0].malformed


def test_what_goes_with_a_call_follows_it() -> None:
    """Each signature stays with its call, when ids are blank, repeated, or known from before."""
    calls = [Call("c1", "a", signature="A"), Call("c1", "b", signature="B"), Call("", "c", signature="C")]
    turn, _ = normalise(read(hop(*calls)).turn, knows_call=lambda name: name == "c1", max_calls=9)
    names = {call.id: call.name for call in turn.calls}
    signed = {part.call: json.loads(part.data)["signature"] for part in turn.parts if isinstance(part, OpaquePart)}

    assert 3 == len(names)
    assert ["a:A", "b:B", "c:C"] == [f"{names[call]}:{signed[call]}" for call in names]


def test_unknown_steps_and_contents_are_kept() -> None:
    """What the format may grow stands where it was, to be sent back as it is."""
    search = {"type": "google_search_call", "id": "g", "arguments": {"queries": ["x"]}, "signature": "s"}
    image = {"type": "image", "data": "AAAA", "mime_type": "image/png"}
    done = read(hop("a", Step(search), Step({"type": "model_output", "content": [image]}), "b"))

    assert same(
        (TextPart("a"), opaque(search), opaque({"type": "model_output", "content": [image]}), TextPart("b")),
        done.turn.parts,
    )
    assert "ab" == done.heard.text


def test_a_thought_without_a_signature_is_only_shown() -> None:
    """The format does not take an unsigned thought back."""
    assert (ReasoningPart("Hm."), TextPart("a")) == read(hop(Thought("", "Hm."), "a")).turn.parts


def test_characters_that_are_cut_in_two() -> None:
    """The halves of a character that two deltas bring are one; a half that stays alone is replaced."""
    done = read(hop("\ud83d", "\ude00 \ud83d", token="t"), hop("\ude00 \ud83d"))

    assert ("\U0001f600 \ufffd\ufffd \ufffd",) * 2 == (done.turn.text, done.heard.text)


@pytest.mark.parametrize(
    ("reported", "usage"),
    [
        ({}, Usage()),
        ({"total_input_tokens": 9, "total_output_tokens": 0}, Usage(9, None, None, 0, None, complete=True)),
        (
            {
                "total_input_tokens": 9,
                "total_cached_tokens": 4,
                "total_output_tokens": 3,
                "total_thought_tokens": 2,
                "total_tool_use_tokens": 7,
            },
            Usage(12, 4, None, 5, 2, complete=True),
        ),
        ({"total_input_tokens": 3, "total_cached_tokens": 4}, Usage(0, 4)),
        ({"total_input_tokens": "9", "total_output_tokens": None}, Usage()),
    ],
)
def test_usage_in_classes_that_do_not_overlap(reported: dict[str, Any], usage: Usage) -> None:
    """Cached input is taken out of the input, thoughts are added to the output; what is not told stays unknown."""
    assert usage == usage_of(reported)


def test_a_checkpoint_is_no_output() -> None:
    """A token in the middle of a text leaves the text whole."""
    done = read(hop("a", Checkpoint("ck1"), "b"))

    assert ((TextPart("ab"),), "ab") == (done.turn.parts, done.heard.text)
