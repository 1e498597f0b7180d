"""The scripted model: for users' own tests, so it has to be as predictable as they are."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from actors.models import Scripted, call, reply
from protocol.errors import ModelError, ModelServerError
from protocol.model import CallDelta, ModelEvent, ModelRequest, Profile, RequestSent, TextDelta
from protocol.turns import TextPart, ToolCall, Turn, UserMessage
from protocol.usage import UNKNOWN_USAGE, Usage

REQUEST = ModelRequest(messages=[UserMessage("go")])


async def asked(model: Scripted, request: ModelRequest = REQUEST) -> tuple[Turn, list[ModelEvent]]:
    events: list[ModelEvent] = []
    return await model.turn(request, events.append), events


async def test_turns_come_in_order() -> None:
    """One for each call; a text is a turn that answers with it."""
    model = Scripted(["one", reply("two", call("add", {"a": 1}, id="c1"))])
    turns = [(await asked(model))[0] for _ in range(2)]

    assert Turn((TextPart("one"),), "stop", "stop") == turns[0]
    assert Turn((TextPart("two"), ToolCall("c1", "add", '{"a":1}')), "tool_calls", "tool_calls") == turns[1]


async def test_a_used_up_script_says_so() -> None:
    """The test that made one call too many is told."""
    model = Scripted(["one"])
    await asked(model)
    with pytest.raises(ModelError, match="the script has no further turn"):
        await asked(model)

    assert 2 == len(model.requests)


async def test_an_exception_in_the_script_is_raised() -> None:
    """The object that was given, where its turn would have been; then the script goes on."""
    error = ModelServerError("down", status=503)
    model = Scripted([error, "back"])
    with pytest.raises(ModelServerError) as caught:
        await asked(model)
    turn, _ = await asked(model)

    assert error is caught.value
    assert "back" == turn.text


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_function_is_asked_with_the_request(is_async: bool) -> None:
    """Sync or async, it sees what the model is asked and gives the turn."""

    def answer(request: ModelRequest) -> str:
        return f"{len(request.messages)} messages"

    async def answer_later(request: ModelRequest) -> str:
        await trio.lowlevel.checkpoint()
        return answer(request)

    model = Scripted(answer_later if is_async else answer)
    turn, _ = await asked(model)

    assert "1 messages" == turn.text
    assert [REQUEST] == model.requests


async def test_what_it_reports_on_the_way() -> None:
    """Sent first, then the text in one piece, then each call."""
    model = Scripted([reply("hm", call("add", {"a": 1}), call("look"))])
    _, events = await asked(model)

    assert [RequestSent(), TextDelta("hm"), CallDelta(0, '{"a":1}', "add"), CallDelta(1, "{}", "look")] == events


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (call("add"), ToolCall("", "add", "{}")),
        (call("add", {"a": [1]}, id="c1"), ToolCall("c1", "add", '{"a":[1]}')),
        (call("add", "not json"), ToolCall("", "add", "not json")),
    ],
)
def test_making_a_call(made: ToolCall, expected: ToolCall) -> None:
    """Arguments as a mapping, or the raw text that a bad model would send."""
    assert expected == made


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (reply("a"), ("a", "stop", UNKNOWN_USAGE)),
        (reply("", call("add")), ("", "tool_calls", UNKNOWN_USAGE)),
        (reply("a", finish="length", usage=Usage(1, 0, 0, 1, 0, True)), ("a", "length", Usage(1, 0, 0, 1, 0, True))),
    ],
)
def test_making_a_turn(made: Turn, expected: Any) -> None:
    """The finish reason is what a server would give, unless the test says another."""
    assert expected == (made.text, made.finish, made.usage)
    assert made.finish == made.raw_finish


def test_name_and_profile_are_ones_own() -> None:
    """What a test wants the loop to believe of its model."""
    profile = Profile(flatten_without_tools=True)
    model = Scripted([], name="mine", profile=profile)

    assert ("mine", profile) == (model.name, model.profile)
    assert ("scripted", True) == (Scripted([]).name, Scripted([]).profile.reports_sending)
