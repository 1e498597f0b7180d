"""The generateContent model against aimock, and what the format says where aimock says otherwise."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from actors.models.gemini import Gemini
from protocol.model import ModelEvent, ModelRequest, ReasoningDelta, RequestSent, TextDelta, ToolDefinition
from protocol.normalise import normalise
from protocol.turns import AssistantMessage, Message, ToolMessage, ToolResult, UserMessage
from tests.peers._aimock import ANSWER, CALLS, TEXT, THOUGHT, AimockServer

pytestmark = pytest.mark.peer

PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = tuple([ToolDefinition(name, f"Calls {name}.", PATH) for name, _ in CALLS])


def model_at(server: AimockServer, **settings: Any) -> Gemini:
    return Gemini("gemini-2.5-flash", base_url=server.url, **{"api_key": "any-key", **settings})


async def test_plain_text(aimock_server: AimockServer) -> None:
    """Thoughts and text are streamed, characters are whole, and usage is reported."""
    model = model_at(aimock_server)
    events: list[ModelEvent] = []
    with trio.fail_after(30):
        turn = await model.turn(ModelRequest(messages=[UserMessage("greet")], system="Be exact."), events.append)
        await model.aclose()
    texts = [event.text for event in events if isinstance(event, TextDelta)]
    thoughts = [event.text for event in events if isinstance(event, ReasoningDelta)]

    assert (TEXT, "stop", "STOP", "complete") == (turn.text, turn.finish, turn.raw_finish, turn.end)
    assert (TEXT, THOUGHT) == ("".join(texts), "".join(thoughts))
    assert len(texts) > 3
    assert [RequestSent()] == [event for event in events if isinstance(event, RequestSent)]
    assert (7, 5, True) == (turn.usage.input_tokens, turn.usage.output_tokens, turn.usage.complete)


async def test_tool_calls_to_the_final_answer(aimock_server: AimockServer) -> None:
    """Two calls side by side are a turn of tool calls, by their presence; their results lead to the answer."""
    model = model_at(aimock_server)
    messages: list[Message] = [UserMessage("look")]
    with trio.fail_after(30):
        turn = await model.turn(ModelRequest(messages=messages, tools=TOOLS), lambda _: None)
        read, arguments = normalise(turn, knows_call=lambda _: False, max_calls=128)
        results = tuple([ToolResult(call.id, call.name, "ok", "One file.") for call in read.calls])
        messages += [AssistantMessage(read.parts), ToolMessage(results)]
        last = await model.turn(ModelRequest(messages=messages, tools=TOOLS), lambda _: None)
        await model.aclose()

    assert ("tool_calls", ()) == (turn.finish, tuple([call.id for call in turn.calls if call.id]))
    assert list(CALLS) == [(call.name, json.loads(call.arguments)) for call in turn.calls]
    assert [given for _, given in CALLS] == [arguments[call.id] for call in read.calls]
    assert (ANSWER, "stop", ()) == (last.text, last.finish, last.calls)


@pytest.mark.parametrize(
    ("word", "finish", "raw"), [("cut", "length", "MAX_TOKENS"), ("filter", "content_filter", "SAFETY")]
)
async def test_other_ends(word: str, finish: str, raw: str, aimock_server: AimockServer) -> None:
    """A token limit and a filter are told from an answer."""
    model = model_at(aimock_server)
    with trio.fail_after(30):
        turn = await model.turn(ModelRequest(messages=[UserMessage(word)]), lambda _: None)
        await model.aclose()

    assert (TEXT, finish, raw, "complete") == (turn.text, turn.finish, turn.raw_finish, turn.end)
