"""Interactions as a model: what a call sends, and what it comes to when all goes well."""

from __future__ import annotations

from typing import Any

import pytest

from actors import AgentSpec, open_runtime
from actors.models.gemini import GeminiInteractions
from protocol.errors import SpecError
from protocol.events import HopFinished, HopStarted
from protocol.model import HopBegan, HopEnded, ModelRequest, Profile, RequestSent, TextDelta, ToolDefinition
from protocol.turns import AssistantMessage, TextPart, ToolMessage, ToolResult, Unfinished
from protocol.usage import Usage
from tests.actors.models._wire import HELLO, Heard
from tests.actors.models.conftest import Meet
from tests.support.interactions import Call, Thought, hop, interactions_server

TWO = [hop("Once ", "upon ", token="tk1"), hop("a time.")]
INPUT = [{"type": "user_input", "content": [{"type": "text", "text": "Hello?"}]}]
FIRST = {"model": "gemini-x", "input": INPUT, "stream": True, "store": False}


async def test_a_decode_of_several_requests_is_one_call(meet: Meet) -> None:
    """Its hops are sent and told one by one, and are one turn; by default the input is sent with each."""
    server, heard = interactions_server(TWO), Heard()
    turn = await meet(server).turn(HELLO, heard)
    first, last = Usage(10, 0, None, 2, 0, complete=True), Usage(10, 0, None, 1, 0, complete=True)

    assert [FIRST, {**FIRST, "continuation_token": "tk1"}] == server.bodies
    assert [
        HopBegan(0),
        RequestSent(),
        TextDelta("Once "),
        TextDelta("upon "),
        HopEnded(0, "i1", "requires_continuation", first),
        HopBegan(1),
        TextDelta("a time."),
        HopEnded(1, "i2", "completed", last),
    ] == heard.events
    assert ((TextPart("Once upon a time."),), "stop", "completed") == (turn.parts, turn.finish, turn.raw_finish)
    assert (first + last, 10, 2, "i2", None) == (
        turn.usage,
        turn.context_tokens,
        len(turn.hops),
        turn.response,
        turn.unfinished,
    )


async def test_where_interactions_are_stored_a_hop_names_the_one_before(meet: Meet) -> None:
    """With `store` a hop carries the token and its owner, and no input; the answer is the same."""
    server = interactions_server(TWO)
    turn = await meet(server, extra_body={"store": True}).turn(HELLO, Heard())
    hop_body = {"model": "gemini-x", "stream": True, "store": True}

    assert {**hop_body, "continuation_token": "tk1", "previous_interaction_id": "i1"} == server.bodies[1]
    assert "Once upon a time." == turn.text


@pytest.mark.parametrize(("store", "owner"), [(False, None), (True, "i1")])
async def test_a_decode_that_is_not_to_go_on(meet: Meet, *, store: bool, owner: str | None) -> None:
    """With `automatic_continuation=False` there is one request; the turn is cut, and holds what resumes it."""
    server = interactions_server(TWO)
    request = ModelRequest(messages=HELLO.messages, automatic_continuation=False)
    turn = await meet(server, extra_body={"store": store}).turn(request, Heard())

    assert ("Once upon ", "length", "requires_continuation") == (turn.text, turn.finish, turn.raw_finish)
    assert (Unfinished("tk1", owner, ("i1",)), 1, ()) == (turn.unfinished, len(server.bodies), turn.hops)


async def test_only_the_provider_that_would_go_on_leaves_it_unfinished(meet: Meet) -> None:
    """A token beside another status resumes nothing."""
    turn = await meet(interactions_server([hop("a", token="t", status="incomplete")])).turn(HELLO, Heard())

    assert ("length", None) == (turn.finish, turn.unfinished)


@pytest.mark.parametrize("forms", [("json", "json"), ("events", "json"), ("json", "events")])
async def test_a_server_that_does_not_stream(meet: Meet, forms: tuple[Any, Any]) -> None:
    """Whole interactions in place of streams come to the same turn, and report the same text."""
    server, heard = (
        interactions_server([hop("Once ", token="tk1", form=forms[0]), hop("upon.", form=forms[1])]),
        Heard(),
    )
    turn = await meet(server).turn(HELLO, heard)

    assert ("Once upon.", "Once upon.", "stop", 2) == (turn.text, heard.text, turn.finish, len(turn.hops))


async def test_a_conversation_with_tools(meet: Meet) -> None:
    """Thoughts and signed calls go back as they came: a server that checks them is content."""
    server = interactions_server(
        [hop(Thought("s1", "Hm."), "Let me see.", Call("c1", "add", {"a": 1}, signature="s2"))], [hop("Four.")]
    )
    model = meet(server)
    tools = [ToolDefinition("add", "Adds.", {"type": "object", "properties": {}})]
    turn = await model.turn(ModelRequest(messages=HELLO.messages, tools=tools), Heard())
    result = ToolMessage((ToolResult("c1", "add", "ok", "4"),))
    messages = [*HELLO.messages, AssistantMessage(turn.parts), result]
    answer = await model.turn(ModelRequest(messages=messages, tools=tools), Heard())

    assert ("tool_calls", "Four.") == (turn.finish, answer.text)
    assert [
        *INPUT,
        {"type": "thought", "signature": "s1", "summary": [{"type": "text", "text": "Hm."}]},
        {"type": "model_output", "content": [{"type": "text", "text": "Let me see."}]},
        {"type": "function_call", "id": "c1", "name": "add", "arguments": {"a": 1}, "signature": "s2"},
    ] == server.bodies[1]["input"][:-1]


async def test_the_head_of_a_request(meet: Meet) -> None:
    """The key has a header of its own, and appears nowhere else; version, headers and profile are minded."""
    server = interactions_server(TWO)
    profile = Profile(takes_temperature=False)
    model = meet(server, version="v9", headers={"x-more": "1"}, profile=profile)
    await model.turn(ModelRequest(messages=HELLO.messages, temperature=0.5), Heard())
    sent = server.requests[0]

    assert ("POST /v1/v9/interactions HTTP/1.1", "1") == (sent.line, sent.headers["x-more"])
    assert "key-very-secret" == sent.headers["x-goog-api-key"]
    assert ("authorization" in sent.headers, "generation_config" in sent.json) == (False, False)
    assert "<GeminiInteractions 'gemini-x' at http://127.0.0.1:80/v1/v9/interactions>" == repr(model)
    assert "gemini:gemini-x" == model.name


def test_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Google needs a key, and its models keep tools that are off; other servers are taken to know neither."""
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SpecError, match="GEMINI_API_KEY or GOOGLE_API_KEY"):
        GeminiInteractions("gemini-x")
    with pytest.raises(SpecError, match="extra_body must not set input"):
        GeminiInteractions("gemini-x", api_key="k", extra_body={"input": "x"})
    own = GeminiInteractions("gemini-x", api_key="k").profile
    other = GeminiInteractions("gemini-x", base_url="http://127.0.0.1:80").profile

    assert ((True, True), (False, True)) == (
        (own.keeps_tools_when_off, own.reports_sending),
        (other.keeps_tools_when_off, other.reports_sending),
    )
    assert Profile(keeps_tools_when_off=True, reports_sending=True) == own


async def test_a_run_over_several_hops(meet: Meet) -> None:
    """In a run a decode of several hops is one step and one call, with its hops among the events."""
    server = interactions_server(
        [hop(Thought("s1"), token="t1"), hop("Let me see. ", Call("c1", "add", {"a": 1, "b": 3}, signature="s2"))],
        [hop("It is ", token="t2"), hop("four.")],
    )

    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    async with open_runtime() as runtime:
        agent = await runtime.spawn(AgentSpec(model=meet(server), tools=[add], max_llm_calls=2))
        async with agent.run("Add 1 and 3.") as run:
            events = [event async for event in run]
            result = await run.result()

    assert ("It is four.", True, 2) == (result.text, result.answered, len(result.steps))
    assert [0, 1, 0, 1] == [event.hop for event in events if isinstance(event, HopStarted)]
    assert ["i1", "i2", "i3", "i4"] == [event.interaction for event in events if isinstance(event, HopFinished)]
    assert ["function_call", "function_result"] == [step["type"] for step in server.bodies[3]["input"][-2:]]
    assert (40, True) == (result.usage.input_tokens, result.usage.complete)
