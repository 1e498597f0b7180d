"""The Responses model: its settings, and whole calls over a network in memory."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
import trio.testing

from actors.models import OpenAIResponses as Exported
from actors.models.openai import OpenAIResponses
from protocol.errors import ContextOverflow, ModelAuthError, ModelReplyError, ModelServerError, SpecError
from protocol.model import ModelRequest, Profile, RequestSent
from protocol.outcome import outcome_of
from protocol.turns import AssistantMessage, TextPart, ToolCall, ToolMessage, ToolResult, Turn, UserMessage
from tests.actors.models._responses_cases import (
    BODIES,
    HI,
    STREAMS,
    added,
    arguments,
    bare,
    called,
    ended,
    finished,
    message,
    sent,
    text,
    thought,
)
from tests.actors.models._responses_cases import HELLO as HELLO_TURN
from tests.actors.models._wire import HELLO, Heard, Network, answer, stream

KEY = "sk-very-secret"
ADDRESS = "http://127.0.0.1:8080/v1/responses"


def make(network: Network, model: str = "m", **settings: Any) -> OpenAIResponses:
    settings.setdefault("base_url", "http://127.0.0.1:8080/v1")
    return OpenAIResponses(model, **{"api_key": KEY, "retries": 0, "transport": network.transport(), **settings})


async def test_a_call(network: Network, autojump_clock: trio.testing.MockClock) -> None:
    """One POST, one turn; `RequestSent` comes once and first, deltas as they arrive."""
    network.server.replies = [stream(*HI)]
    heard = Heard()
    turn = await make(network).turn(HELLO, heard)
    [request] = network.server.requests

    assert HELLO_TURN == bare(turn)
    assert ("Hello", 1, RequestSent()) == (heard.text, heard.sent, heard.events[0])
    assert "POST /v1/responses HTTP/1.1" == request.line
    assert ("m", [{"type": "message", "role": "user", "content": "Hello?"}]) == (
        request.json["model"],
        request.json["input"],
    )
    assert f"Bearer {KEY}" == request.headers["authorization"]


@pytest.mark.parametrize("name", STREAMS)
async def test_every_stream_over_http(name: str, network: Network, autojump_clock: trio.testing.MockClock) -> None:
    """The cases hold with HTTP's own chunks around them, and with a connection that just closes."""
    case = STREAMS[name]
    network.server.replies = [stream(*case.chunks), stream(*case.chunks, end="close")]
    model = make(network)

    assert case.turn == bare(await model.turn(HELLO, Heard()))
    assert case.turn == bare(await model.turn(HELLO, Heard()))


@pytest.mark.parametrize("name", BODIES)
async def test_a_whole_body_in_place_of_a_stream(
    name: str, network: Network, autojump_clock: trio.testing.MockClock
) -> None:
    """A server that does not stream is understood."""
    body, turn = BODIES[name]
    network.server.replies = [answer(200, body)]

    assert turn == bare(await make(network).turn(HELLO, Heard()))


async def test_a_lost_stream(network: Network, autojump_clock: trio.testing.MockClock) -> None:
    """SSE-12: a clean end in the middle is no answer; text and open call are kept as partial."""
    network.server.replies = [
        stream(*HI[:5], added(called("a", "t"), 1), arguments('{"n":', index=1), end="close"),
        stream(*HI[:5], end="cut"),
    ]
    model = make(network)
    with pytest.raises(ModelReplyError, match="ended in the middle of the reply") as caught:
        await model.turn(HELLO, Heard())
    expected = Turn((TextPart("Hel"), ToolCall("a", "t", '{"n":')), end="lost", response="r1")

    assert (expected, True) == (caught.value.partial, caught.value.retryable)


async def test_what_breaks_after_the_end_takes_nothing_away(
    network: Network, autojump_clock: trio.testing.MockClock
) -> None:
    """Behind the terminal event nothing is waited for."""
    network.server.replies = [stream(*HI, end="cut"), stream(*HI, end="hang")]
    model = make(network)
    began = trio.current_time()

    assert HELLO_TURN == bare(await model.turn(HELLO, Heard()))
    assert HELLO_TURN == bare(await model.turn(HELLO, Heard()))
    assert trio.current_time() - began < 1


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_failed_response(streamed: bool, network: Network, autojump_clock: trio.testing.MockClock) -> None:
    """HTP-15: not an empty success; what had come, and what it cost, is partial."""
    usage = {"input_tokens": 3, "output_tokens": 2}
    failed = {"status": "failed", "error": {"code": "server_error", "message": "broke"}, "usage": usage, "output": []}
    steps = [text("Hel"), sent("response.failed", response=failed)]
    network.server.replies = [stream(*steps) if streamed else answer(200, failed)]
    with pytest.raises(ModelServerError, match="broke") as caught:
        await make(network).turn(HELLO, Heard())

    assert caught.value.partial is not None
    assert ("Hel" if streamed else "", 5, "lost") == (
        caught.value.partial.text,
        caught.value.partial.usage.total_tokens,
        caught.value.partial.end,
    )


@pytest.mark.parametrize(
    ("status", "error", "kind", "said"),
    [
        (401, {"message": "Bad key", "type": "invalid_request_error", "code": "invalid_api_key"}, ModelAuthError, "api_key"),
        (400, {"message": "too long", "code": "context_length_exceeded"}, ContextOverflow, "too long"),
    ],
)  # fmt: skip
async def test_a_refusal(
    status: int, error: Any, kind: type[Exception], said: str, network: Network, autojump_clock: trio.testing.MockClock
) -> None:
    """The errors of all models over HTTP."""
    network.server.replies = [answer(status, {"error": error})]
    with pytest.raises(kind, match=said):
        await make(network).turn(HELLO, Heard())


CALL = called("a", "t", '{"n":1}')


@pytest.mark.parametrize(
    ("output", "used", "cap", "finish"),
    [
        (message("Hel"), 3, 3, "length"),
        (message("Hel"), 4, 3, "length"),
        (message("Hel"), 2, 3, "stop"),
        (message("Hel"), None, 3, "stop"),
        (message("Hel"), 3, None, "stop"),
        (CALL, 3, 3, "tool_calls"),
        ({**CALL, "arguments": '{"n'}, 3, 3, "length"),
        ({**CALL, "arguments": ""}, 3, 3, "length"),
        ({**CALL, "arguments": '{"n'}, 2, 3, "tool_calls"),
    ],
)
@pytest.mark.parametrize("by", ["request", "options", "extra", "profile"])
async def test_a_reply_that_used_up_the_cap_is_cut(
    by: str,
    output: dict[str, Any],
    used: int | None,
    cap: int | None,
    finish: str,
    network: Network,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Some servers call it completed all the same; whole calls are whole, whoever set the cap."""
    network.server.replies = [stream(ended(output, usage={"input_tokens": 1, "output_tokens": used}))]
    caps = {} if cap is None else {"max_output_tokens": cap}
    model = make(
        network,
        extra_body=caps if by == "extra" else None,
        profile=Profile(default_max_tokens=cap) if by == "profile" else None,
    )
    request = ModelRequest(
        messages=HELLO.messages,
        max_tokens=cap if by == "request" else None,
        provider_options=caps if by == "options" else None,
    )
    turn = await model.turn(request, Heard())

    assert (finish, "completed") == (turn.finish, turn.raw_finish)
    assert (finish == "length") == outcome_of(turn, cap if by == "request" else None).cut


async def test_openais_own_word_is_believed(network: Network, autojump_clock: trio.testing.MockClock) -> None:
    """It says `incomplete` where the cap cut: an answer that just fits is an answer."""
    model = make(network, base_url="http://api.openai.com/v1")
    network.server.replies = [stream(ended(message("Hel"), usage={"input_tokens": 1, "output_tokens": 3}))]

    assert "stop" == (await model.turn(ModelRequest(messages=HELLO.messages, max_tokens=3), Heard())).finish


@pytest.mark.parametrize(
    ("model", "settings", "asked"),
    [
        ("gpt-6", {}, True),
        ("o4-mini", {}, True),
        ("gpt-5.1-codex", {}, True),
        ("gpt-4o", {}, False),
        ("gpt-4.1-mini", {}, False),
        ("gpt-5-chat-latest", {}, False),
        ("ft:gpt-4o:x", {}, False),
        ("gpt-4o", {"encrypted_reasoning": True}, True),
        ("gpt-6", {"encrypted_reasoning": False}, False),
        ("gpt-6", {"base_url": "http://127.0.0.1:8080/v1"}, False),
        ("gpt-6", {"base_url": "http://127.0.0.1:8080/v1", "encrypted_reasoning": True}, True),
    ],
)
async def test_who_is_asked_for_encrypted_reasoning(
    model: str, settings: dict[str, Any], asked: bool, network: Network, autojump_clock: trio.testing.MockClock
) -> None:
    """OpenAI's own models that reason, and others where the program says so."""
    network.server.replies = [stream(*HI)]
    await make(network, model, **{"base_url": "http://api.openai.com/v1", **settings}).turn(HELLO, Heard())
    [request] = network.server.requests

    assert (["reasoning.encrypted_content"] if asked else None) == request.json.get("include")


async def test_a_tool_loop_sends_everything_back(network: Network, autojump_clock: trio.testing.MockClock) -> None:
    """The second request holds the first turn's items as they came, and nothing is stored at the server."""
    call = called("a", "t", '{"n":1}')
    network.server.replies = [stream(finished(thought()), finished(call, 1), ended(thought(), call)), stream(*HI)]
    model = make(network, "gpt-6", base_url="http://api.openai.com/v1")
    turn = await model.turn(HELLO, Heard())
    results = ToolMessage((ToolResult("a", "t", "ok", "1"),))
    await model.turn(ModelRequest(messages=[UserMessage("Hello?"), AssistantMessage(turn.parts), results]), Heard())
    second = network.server.requests[1].json

    assert [thought(), call, {"type": "function_call_output", "call_id": "a", "output": "1"}] == second["input"][1:]
    assert second["store"] is False


def test_settings() -> None:
    """OpenAI's own keep tools visible; what was set is shown without secrets, and what cannot be is refused."""
    own = OpenAIResponses("gpt-6", api_key=KEY)
    other = Exported("m", base_url="http://127.0.0.1:8080/v1/responses", api_key=KEY)

    assert (True, False) == (own.profile.keeps_tools_when_off, other.profile.keeps_tools_when_off)
    assert ("openai:m", f"<OpenAIResponses 'm' at {ADDRESS}>") == (other.name, repr(other))
    assert KEY not in repr(vars(other))
    with pytest.raises(SpecError, match="extra_body must not set input"):
        OpenAIResponses("m", api_key=KEY, extra_body={"input": []})
    with pytest.raises(SpecError, match="needs a key"):
        OpenAIResponses("m", api_key="")


def test_later_changes_of_the_callers_do_not_reach_the_model() -> None:
    """The fields that are laid over each request are a copy."""
    inner = [1]
    model = OpenAIResponses("m", api_key=KEY, extra_body={"x": inner})
    inner.append(2)

    assert [1] == json.loads(model._encode(HELLO))["x"]
