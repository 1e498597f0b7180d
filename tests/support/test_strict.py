"""The strict model refuses each thing that the strictest servers refuse, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from actors.models.scripted import Scripted, call, reply
from protocol.errors import ModelRefused
from protocol.model import ModelEvent, ModelRequest, Profile, RequestSent, ToolDefinition
from protocol.turns import (
    AssistantMessage,
    Message,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)

from .strict import StrictModel, request_faults

USER = UserMessage("go")
DONE = AssistantMessage((TextPart("done"),))
TOOL = ToolDefinition("t", "A tool.", {"type": "object"})
FLAT = Profile(flatten_without_tools=True)


def calling(*ids: str, arguments: str = "{}") -> AssistantMessage:
    return AssistantMessage(tuple(ToolCall(id, "t", arguments) for id in ids))


def results(*ids: str, text: str = "1") -> ToolMessage:
    return ToolMessage(tuple(ToolResult(id, "t", "ok", text, True) for id in ids))


def faults(messages: Sequence[Message], profile: Profile | None = None, **fields: Any) -> list[str]:
    return request_faults(ModelRequest(messages=messages, **{"tools": (TOOL,), **fields}), profile or Profile())


@pytest.mark.parametrize(
    "messages",
    [
        [USER],
        [USER, DONE, USER],
        [USER, calling("a"), results("a")],
        [USER, calling("a", "b"), results("a", "b"), USER],
        [USER, AssistantMessage((TextPart("hm"), ToolCall("a", "t", '{"x": [1]}'))), results("a"), DONE, USER],
    ],
)
def test_a_whole_conversation_passes(messages: list[Message]) -> None:
    """Nothing is refused in which every call has its result and nothing is empty."""
    assert [] == faults(messages)


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        ([], "no message"),
        ([USER, calling("a")], "the calls ['a'] have no results"),
        ([USER, calling("a"), USER, results("a")], "comes before the results of ['a']"),
        ([USER, calling("a"), results()], "answers []"),
        ([USER, calling("a", "b"), results("b", "a")], "answers ['b', 'a']"),
        ([USER, calling("a"), results("a", "a")], "answers ['a', 'a']"),
        ([USER, results("ghost")], "answers ['ghost']"),
        ([USER, calling("a"), results("a"), results("a")], "answers ['a']"),
        ([USER, calling(""), results("")], "empty or repeated call id"),
        ([USER, calling("a", "a"), results("a", "a")], "empty or repeated call id 'a'"),
        ([USER, calling("a"), results("a"), calling("a"), results("a")], "empty or repeated call id 'a'"),
        ([USER, AssistantMessage(()), USER], "neither text nor calls"),
        ([USER, AssistantMessage((ReasoningPart("hm"),)), USER], "neither text nor calls"),
        ([USER, AssistantMessage((TextPart(" \n"),)), USER], "neither text nor calls"),
        ([USER, AssistantMessage((TextPart(""), ToolCall("a", "t", "{}"))), results("a")], "empty block of text"),
        ([UserMessage("  ")], "message 0 is empty"),
        ([USER, calling("a", arguments="[1]"), results("a")], "no JSON object: '[1]'"),
        ([USER, calling("a", arguments=""), results("a")], "no JSON object: ''"),
        ([USER, calling("a", arguments='{"x": NaN}'), results("a")], "no JSON object"),
        ([USER, calling(*map(str, range(129))), results(*map(str, range(129)))], "129 calls"),
        ([USER, DONE], "the last message is an assistant one"),
        ([UserMessage("\ud800")], "no strict JSON in UTF-8"),
        ([USER, calling("a"), results("a", text="\udfff")], "no strict JSON in UTF-8"),
    ],
)
def test_what_is_refused(messages: list[Message], told: str) -> None:
    """Each broken conversation is refused, with what is wrong with it."""
    found = faults(messages)

    assert told in "; ".join(found)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"tools": (TOOL, TOOL)}, "offered more than once"),
        ({"tools": (), "tool_choice": "required"}, "a tool is required, but none is offered"),
        ({"tools": (), "profile": FLAT}, "tool blocks without tool definitions"),
        ({"system": "\ud800"}, "no strict JSON in UTF-8"),
        ({"tail": ""}, "message 3 is empty"),
        ({"temperature": float("nan")}, "no strict JSON in UTF-8"),
        ({"tools": (ToolDefinition("t", "", {"default": float("inf")}),)}, "no strict JSON in UTF-8"),
    ],
)
def test_what_is_refused_beside_the_messages(fields: dict[str, Any], told: str) -> None:
    """Tools, tail, system prompt and settings are looked at too."""
    found = faults([USER, calling("a"), results("a")], **fields)

    assert told in "; ".join(found)


def test_128_calls_of_one_turn_pass() -> None:
    """The bound is 128 calls of one turn, itself included."""
    ids = [str(number) for number in range(128)]

    assert [] == faults([USER, calling(*ids), results(*ids)])


async def test_a_refusal_is_kept_and_the_script_does_not_move() -> None:
    """A refused request is answered with 400 and costs no turn of the script."""
    model = StrictModel(["one"])
    sent: list[ModelEvent] = []
    with pytest.raises(ModelRefused) as caught:
        await model.turn(ModelRequest(messages=[USER, calling("a")], tail="now"), sent.append)
    turn = await model.turn(ModelRequest(messages=[USER]), sent.append)

    assert caught.value.status == 400
    assert ["request 1: message 2 comes before the results of ['a']"] == model.faults
    assert RequestSent() == sent[0]
    assert "one" == turn.text


async def test_it_stands_before_any_model() -> None:
    """Name and profile are those of the model behind it, and every request is kept as it was."""
    inner = Scripted([reply("hm", call("t", {}, id="a"))], name="inner", profile=FLAT)
    model = StrictModel(inner)
    messages: list[Message] = [USER]
    turn = await model.turn(ModelRequest(messages=messages, tail="now", tools=(TOOL,)), lambda _event: None)
    messages.append(DONE)

    assert ("inner", FLAT) == (model.name, model.profile)
    assert (call("t", {}, id="a"),) == turn.calls
    assert (USER, UserMessage("now")) == model.asked[0].conversation
    assert ["go", "now"] == model.asked[0].texts
    assert model.asked[0].tools_on
