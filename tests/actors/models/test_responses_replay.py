"""Responses: what the server told of its own items goes back as it came."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.models.openai._responses_reply import ResponsesReply
from actors.models.openai._responses_request import encode_request
from actors.models.wire._endpoint import Endpoint
from protocol.model import ModelRequest, Profile
from protocol.normalise import normalise
from protocol.turns import (
    AssistantMessage,
    Message,
    OpaquePart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    Turn,
    UserMessage,
    calls_of,
)
from tests.actors.models._responses_cases import called, ended, feed, finished, message, sent, thought

HERE = Endpoint.of("http://127.0.0.1:8080/v1", "/responses")
CLEAR = {"type": "reasoning", "id": "rs1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}
SEARCH = {"type": "web_search_call", "id": "ws1", "status": "completed", "action": {"query": "x"}}


def read(*output: dict[str, Any], max_calls: int = 9, used: tuple[str, ...] = (), **response: Any) -> Turn:
    """The turn of a reply with these items, as it is stored."""
    reader = ResponsesReply(HERE)
    reader.feed_body(json.dumps({"status": "completed", "output": output, **response}).encode())
    return normalise(reader.finish(), knows_call=used.__contains__, max_calls=max_calls)[0]


def answered(*turns: Turn | tuple[Part, ...]) -> list[Message]:
    """The history of turns whose calls have all been answered."""
    messages: list[Message] = [UserMessage("Hello?")]
    for turn in turns:
        parts = turn.parts if isinstance(turn, Turn) else turn
        results = tuple(ToolResult(call.id, call.name, "ok", "1") for call in calls_of(parts))
        messages += [AssistantMessage(parts), *([ToolMessage(results)] if results else [])]
    return messages


def replayed(*turns: Turn | tuple[Part, ...], outputs: bool = False, **settings: Any) -> list[dict[str, Any]]:
    """The items that the next request holds of these turns."""
    settings.setdefault("profile", Profile())
    body = json.loads(encode_request(ModelRequest(messages=answered(*turns)), model="m", **settings))
    items: list[dict[str, Any]] = body["input"][1:]
    return [item for item in items if outputs or item["type"] != "function_call_output"]


REFUSED = message(content=[{"type": "refusal", "refusal": "I cannot."}])


@pytest.mark.parametrize(
    "output",
    [
        [message("Hello")],
        [message("Hello", phase="final_answer", unknown={"a": [1, None, "é"]})],
        [message("Hello", "", " there")],
        [REFUSED],
        [
            message(
                content=[{"type": "output_text", "text": "x", "annotations": [{"type": "url_citation", "url": "u"}]}]
            )
        ],
        [message(content=[{"type": "output_image", "image": "i"}, {"type": "output_text", "text": "x"}])],
        [called("a", "t", '{"n": 1}')],
        [called("a", "t", '{"n":1}', namespace="x", status=None)],
        [called("a", "t", '{"n":1}'), called("b", "t", '{"n":2}', number="2")],
        [thought("hm"), message("Hello")],
        [thought(), message("Let me look."), thought(id="rs2"), called("a", "t", '{"n":1}')],
        [thought(), thought(id="rs2"), called("a", "t", '{"n":1}'), called("b", "t", '{"n":2}', number="2")],
        [thought(), SEARCH, message("Hello")],
        [{"type": "compaction", "id": "cmp1", "encrypted_content": "x"}, message("Hello")],
        [
            {"type": "shell_call", "id": "sh1", "call_id": "s", "action": {}},
            {"type": "shell_call_output", "id": "sho1", "call_id": "s", "output": []},
            message("Hello"),
        ],
    ],
)
def test_a_turn_goes_back_as_it_came(output: list[dict[str, Any]]) -> None:
    """All items, unchanged and in their order, with what nobody here knows."""
    turn = read(*output)

    assert output == replayed(turn)
    assert [] == [part for part in turn.parts if isinstance(part, TextPart) and not part.text]


@given(st.lists(st.sampled_from("mcrs"), max_size=8))
def test_any_order_of_items_goes_back_as_it_came(kinds: list[str]) -> None:
    """Whatever follows what: only reasoning at the very end, which belongs to nothing, is left out."""
    makers: dict[str, Callable[[int], dict[str, Any]]] = {
        "m": lambda n: message(f"text {n}", id=f"m{n}"),
        "c": lambda n: called(f"call{n}", "t", '{"n":1}', number=str(n)),
        "r": lambda n: thought("hm", id=f"rs{n}"),
        "s": lambda n: {**SEARCH, "id": f"ws{n}"},
    }
    output = [makers[kind](number) for number, kind in enumerate(kinds)]
    sent = list(output)
    while sent and sent[-1]["type"] == "reasoning":
        sent.pop()

    assert sent == replayed(read(*output))


def test_texts_and_arguments_are_stored_once() -> None:
    """What stands in the parts is not kept a second time."""
    turn = read(thought(), message("Hello" * 10), called("a", "t", '{"n":12345}'))
    kept = "".join([part.data for part in turn.parts if isinstance(part, OpaquePart)])

    assert ("Hello" in kept, "12345" in kept) == (False, False)


def test_a_program_may_change_text_and_arguments() -> None:
    """What the parts say is sent, in the items as they came."""
    turn = read(thought(), message("Hello"), called("a", "t", '{"n":1}'))
    parts: list[Part] = [TextPart("Bye") if isinstance(part, TextPart) else part for part in turn.parts]
    parts[-1] = ToolCall("a", "u", '{"n":2}')

    assert [thought(), message("Bye"), called("a", "u", '{"n":2}')] == replayed(tuple(parts))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["a"], [{"type": "message", "role": "assistant", "content": "a"}]),
        (["a", "b", "c"], [message("a", "b"), {"type": "message", "role": "assistant", "content": "c"}]),
    ],
)
def test_texts_that_do_not_fit_the_item_are_sent_all_the_same(texts: list[str], expected: list[dict[str, Any]]) -> None:
    """Too few: a message of its own; too many: one more message."""
    [shell, *_] = read(message("x", "y")).parts

    assert expected == replayed((shell, *map(TextPart, texts)))


def without(turn: Turn, *kinds: type, call: str = "") -> tuple[Part, ...]:
    return tuple(
        part for part in turn.parts if not isinstance(part, kinds) or (isinstance(part, ToolCall) and part.id != call)
    )


TWICE = [thought(), called("a", "t", '{"n":1}'), thought(id="rs2"), called("b", "t", '{"n":2}', number="2")]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (without(read(*TWICE), ToolCall, call="a"), TWICE[2:]),
        (without(read(*TWICE), ToolCall, call="b"), TWICE[:2]),
        (read(*TWICE, max_calls=1).parts, TWICE[:2]),
        ((*read(*TWICE).parts[:1], *read(*TWICE).parts[3:]), TWICE[2:]),
        (without(read(thought(), message("Hello")), TextPart), []),
        (
            (*without(read(thought(), message("Hello")), TextPart), *read(message("Bye", id="m2")).parts),
            [message("Bye", id="m2")],
        ),
        (without(read(thought(), message("Hello"), *TWICE[2:]), TextPart), TWICE[2:]),
        (without(read(message("Hello"), thought(id="rs2"), SEARCH)), [message("Hello"), thought(id="rs2"), SEARCH]),
    ],
)  # fmt: skip
def test_reasoning_goes_with_the_item_it_came_with(parts: tuple[Part, ...], expected: list[dict[str, Any]]) -> None:
    """PRV-02: without its item it would be refused in every later request."""
    assert expected == replayed(parts)


def test_reasoning_and_shells_are_of_their_own_turn_and_call() -> None:
    """Neither goes to the next turn's items, nor to a call with another id."""
    [kept, _, _] = read(thought(), message("Hello")).parts
    [shell, _] = read(called("a", "t")).parts

    assert [message("Hello")] == replayed((kept,), read(message("Hello")))
    assert [{"type": "function_call", "call_id": "b", "name": "t", "arguments": "{}"}] == replayed((
        shell,
        ToolCall("b", "t", "{}"),
    ))


def test_the_first_telling_of_an_item_stands() -> None:
    """Some servers encrypt it anew in each; what the first left open is filled in."""
    told_again = thought(id="rs9", encrypted="anew")
    first, _ = feed(finished(thought()), ended(told_again, message("Hello")))
    filled, _ = feed(finished(thought(encrypted=None)), ended(told_again, message("Hello")))

    assert [thought(), message("Hello")] == replayed(first.finish())
    assert [thought(encrypted="anew"), message("Hello")] == replayed(filled.finish())


def test_reasoning_that_was_never_told_whole_is_not_kept() -> None:
    """There is no item to send back."""
    reader, _ = feed(
        sent("response.reasoning_text.delta", item_id="rs1", output_index=0, delta="hm"),
        finished(message("Hello"), 1),
        ended(),
    )

    assert [ReasoningPart, OpaquePart, TextPart] == [type(part) for part in reader.finish().parts]


@pytest.mark.parametrize(
    ("last", "sent"),
    [
        (message("Hel", status="incomplete"), "Hel"),
        (message("Hel"), "Hel"),
        (called("a", "t", '{"n', status="incomplete"), "{}"),
        (called("a", "t", '{"n'), "{}"),
        (message("Hel", status="in_progress"), "Hel"),
    ],
)
def test_of_a_cut_reply_the_last_item_is_not_whole(last: dict[str, Any], sent: str) -> None:
    """Its reasoning and its id stay away, whatever the item says of itself; those before it are whole."""
    turn = read(thought(), message("First.", id="m0"), thought(id="rs2"), last, status="incomplete")
    [*before, cut] = replayed(turn)

    assert [thought(), message("First.", id="m0")] == before
    assert (last["type"], False, sent) == (cut["type"], "id" in cut, cut.get("content", cut.get("arguments")))


def test_a_call_that_is_not_whole_takes_its_reasoning_with_it() -> None:
    """An item that says of itself that it was cut is not what the reasoning led to."""
    turn = read(thought(), called("a", "t", '{"n', status="incomplete"))

    assert [{"type": "function_call", "call_id": "a", "name": "t", "arguments": "{}"}] == replayed(turn)


@pytest.mark.parametrize(
    ("settings", "goes"),
    [
        ({}, False),
        ({"profile": Profile(echoes_reasoning=True)}, True),
        ({"extra_body": {"store": True}}, True),
    ],
)
@pytest.mark.parametrize("item", [CLEAR, thought("hm", encrypted=None), thought("hm", encrypted="")])
def test_reasoning_in_clear_goes_back_only_where_it_is_wanted(
    item: dict[str, Any], settings: dict[str, Any], goes: bool
) -> None:
    """A server that stored nothing refuses it; without it the item goes by no id that it might be missed under."""
    call = called("a", "t", '{"n":1}')
    bare = {name: value for name, value in call.items() if name != "id"}

    assert ([item, call] if goes else [bare]) == replayed(read(item, call), **settings)


@pytest.mark.parametrize("type_", ["custom_tool_call", "computer_call", "local_shell_call"])
def test_an_item_that_waits_for_an_output_is_not_sent_alone(type_: str) -> None:
    """Nobody here answers it: a request with it would be refused for ever."""
    waiting = {"type": type_, "id": "x1", "call_id": "x", "name": "t", "input": "y"}

    assert [message("Hello")] == replayed(read(thought(), waiting, message("Hello")))


def test_items_of_other_formats_are_never_sent() -> None:
    """Nor is what cannot be read."""
    parts = (
        OpaquePart("openai-chat", '{"type":"message"}'),
        OpaquePart("anthropic-messages", json.dumps(thought())),
        OpaquePart("openai-responses", "{"),
        OpaquePart("openai-responses", "[3]"),
        OpaquePart("openai-other", json.dumps(SEARCH)),
        TextPart("Hello"),
    )

    assert [{"type": "message", "role": "assistant", "content": "Hello"}] == replayed(parts)


def test_ids_are_unique_in_a_request() -> None:
    """S3, S7: the vendor's id of a call is sent where it is new; items told under used ids go without."""
    first = read(thought(), called("call_0", "t", '{"n":1}'))
    second = read(thought(), called("call_0", "t", '{"n":2}'), used=("call_0",))
    third = read(message("Hello"))
    fresh = second.calls[0].id
    items = replayed(first, second, third, third, read(SEARCH), read(SEARCH), outputs=True)

    assert fresh != "call_0"
    assert [
        thought(),
        called("call_0", "t", '{"n":1}'),
        {"type": "function_call_output", "call_id": "call_0", "output": "1"},
        {name: value for name, value in called(fresh, "t", '{"n":2}').items() if name != "id"},
        {"type": "function_call_output", "call_id": fresh, "output": "1"},
        message("Hello"),
        {name: value for name, value in message("Hello").items() if name != "id"},
        SEARCH,
    ] == items


def test_the_vendors_id_of_a_call_is_sent() -> None:
    """Call and output have it, and no other call does."""
    parts = (ToolCall("a", "t", "{}", vendor_id="v"), ToolCall("v", "t", "{}"), ToolCall("b" * 65, "t", "{}"))
    sent = [(item["type"], item["call_id"]) for item in replayed(parts, outputs=True)]
    ids = ["v", "v-2", "b" * 32 + "-2"]

    assert [("function_call", id) for id in ids] + [("function_call_output", id) for id in ids] == sent


def test_a_malformed_call_is_sent_as_it_was_answered() -> None:
    """Its arguments are the empty object; its item keeps its place and id."""
    turn = read(thought(), called("a", "t", "n=1"))

    assert [thought(), called("a", "t", "{}")] == replayed(turn)
