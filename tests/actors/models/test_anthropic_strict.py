"""Messages requests: the rules of a strict server hold for every valid history."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.models.anthropic._messages_request import encode_request
from protocol.history import first_fault
from protocol.model import ModelRequest, Profile, Resume, ResumeStrategy, ToolDefinition
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
    ToolStatus,
    UserMessage,
)
from tests.actors.models._anthropic_cases import FOUND, SEARCH, opaque
from tests.actors.models._anthropic_wire import faults_of

TOOL = ToolDefinition("t", "Do it.", {"type": "object", "properties": {}})


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


IDS = st.sampled_from(["toolu_1", "call-2", "functions.t:0", "a b", "é", "x" * 70])
TEXTS = st.sampled_from(["", " ", "\n\n", "x", "é\u2028", "a\ud800"])
SPOKEN: st.SearchStrategy[Part] = st.one_of(
    TEXTS.map(TextPart),
    st.builds(ReasoningPart, TEXTS, st.sampled_from([None, "s", "anthropic-messages:s"])),
    st.sampled_from([
        opaque(SEARCH),
        opaque(FOUND),
        opaque({"type": "redacted_thinking", "data": "x"}),
        opaque({"type": "text", "citations": [{}]}),
        OpaquePart("elsewhere", '{"type":"text","text":""}'),
        OpaquePart("anthropic-messages", "[]"),
    ]),
)
STATUSES: st.SearchStrategy[ToolStatus] = st.sampled_from(["ok", "error", "timed_out", "denied", "not_run"])


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Histories made of valid exchanges, in which anything else may be missing, blank or doubled."""
    made: list[Message] = []
    ids: list[str] = draw(st.lists(IDS, unique=True, max_size=5))
    for _ in range(draw(st.integers(0, 6))):
        parts = draw(st.lists(SPOKEN, max_size=4))
        calls = [ids.pop() for _ in range(draw(st.integers(0, len(ids))))]
        for call in calls:
            name = draw(st.sampled_from(["t", "no.such tool", "", "x" * 300]))
            arguments = draw(st.sampled_from(["{}", '{"q":"\\ud800"}', "", "[1]"]))
            parts.insert(draw(st.integers(0, len(parts))), ToolCall(call, name, arguments))
        speaks = draw(st.booleans())
        if calls or speaks:
            made.append(AssistantMessage(tuple(parts), draw(st.booleans())))
        if calls:
            asked = [part.id for part in parts if isinstance(part, ToolCall)]
            made.append(ToolMessage(tuple(ToolResult(call, "t", draw(STATUSES), draw(TEXTS)) for call in asked)))
        made += [UserMessage(draw(TEXTS)) for _ in range(draw(st.integers(0, 2)))]
    return made


@pytest.mark.slow
@given(conversations(), st.one_of(st.none(), TEXTS), st.sampled_from(["user_turn", "exact_prefix", "resend", None]), st.lists(SPOKEN, max_size=3))  # fmt: skip
def test_a_strict_server_takes_every_valid_history(
    conversation: list[Message], tail: str | None, strategy: ResumeStrategy | None, parts: list[Part]
) -> None:
    """Roles alternate, results lead and answer all calls, nothing is empty, ids are of the pattern and alone."""
    resume = Resume(tuple(parts), strategy) if strategy else None
    request = ModelRequest(messages=conversation, tail=tail, resume=resume, tools=[TOOL])
    sent = json.loads(encode_request(request, model="m", profile=Profile(default_max_tokens=100)))
    faults = faults_of(sent)
    if strategy in {"exact_prefix", "resend"}:
        allowed = "the last message is an assistant one"
        ends = f"message {len(sent['messages']) - 1} ends in thinking"
        faults = [fault for fault in faults if fault != allowed and not (strategy == "resend" and fault == ends)]
    empty = ["the first message is no user message"] if not sent["messages"] else []

    assert first_fault(conversation) is None
    assert empty == faults
    if strategy == "exact_prefix" and sent["messages"] and sent["messages"][-1]["role"] == "assistant":
        last = sent["messages"][-1]["content"][-1]
        assert last.get("text", "x") == last.get("text", "x").rstrip()


def test_the_judge_refuses() -> None:
    """What the property relies on: each fault is found."""

    def judged(*messages: tuple[str, list[dict[str, Any]]]) -> list[str]:
        return faults_of({
            "max_tokens": 1,
            "messages": [{"role": role, "content": blocks} for role, blocks in messages],
        })

    use = {"type": "tool_use", "id": "a", "name": "t", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": "1"}

    assert [] == judged(("user", [said("x")]), ("assistant", [use]), ("user", [result, said("y")]))
    assert ["message 2 answers ['a'], asked were ['a']"] == judged(
        ("user", [said("x")]), ("assistant", [use]), ("user", [said("y"), result])
    )
    assert ["roles do not alternate"] == judged(("user", [said("x")]), ("user", [said("y")]))
    assert ["message 0: an empty block of text"] == judged(("user", [said(" ")]))
    assert 3 == len(judged(("assistant", [use])))
