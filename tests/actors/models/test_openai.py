"""The Chat Completions model: its settings, and whole calls over a network in memory."""

from __future__ import annotations

import gzip
import json
import logging
import subprocess
import sys
from typing import Any

import pytest
import trio
import trio.testing

from actors.models.openai import OpenAIChat
from protocol.errors import (
    ContextOverflow,
    ModelError,
    ModelReplyError,
    ModelServerError,
    SpecError,
)
from protocol.model import ModelRequest, Profile, RequestSent
from protocol.turns import TextPart, ToolCall, Turn
from tests.actors.models._cases import BODIES, STREAMS
from tests.actors.models._cases import HELLO as HELLO_TURN
from tests.actors.models._wire import HELLO, HI, STOP, Heard, Network, answer, chunk, event, piece, stream
from tests.actors.models.conftest import MakeModel

KEY = "sk-very-secret"
ADDRESS = "http://127.0.0.1:8080/v1/chat/completions"


async def test_a_call(network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock) -> None:
    """One POST, one turn; `RequestSent` comes once and first, deltas as they arrive."""
    network.server.replies = [stream(*HI)]
    heard = Heard()
    turn = await make_model(headers={"X-Title": "test"}).turn(HELLO, heard)
    [request] = network.server.requests

    assert HELLO_TURN == turn
    assert "Hello" == heard.text
    assert (1, RequestSent()) == (heard.sent, heard.events[0])
    assert "POST /v1/chat/completions HTTP/1.1" == request.line
    assert ("m", [{"role": "user", "content": "Hello?"}]) == (request.json["model"], request.json["messages"])
    wanted = {"authorization": f"Bearer {KEY}", "x-title": "test", "content-type": "application/json"}
    assert wanted.items() <= request.headers.items()


@pytest.mark.parametrize("name", STREAMS)
async def test_every_stream_over_http(
    name: str, network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """The public cases hold with HTTP's own chunks around them, and with a connection that just closes."""
    case = STREAMS[name]
    network.server.replies = [stream(*case.chunks), stream(*case.chunks, end="close")]
    model = make_model()

    assert case.turn == await model.turn(HELLO, Heard())
    assert case.turn == await model.turn(HELLO, Heard())


@pytest.mark.parametrize("content_type", ["application/json", "application/json; charset=utf-8", "text/plain"])
@pytest.mark.parametrize("name", BODIES)
async def test_a_whole_body_in_place_of_a_stream(
    name: str,
    content_type: str,
    network: Network,
    make_model: MakeModel,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A server that does not stream is understood, whatever it calls its JSON."""
    body, turn = BODIES[name]
    network.server.replies = [answer(200, body, content_type=content_type)]

    assert turn == await make_model().turn(HELLO, Heard())


@pytest.mark.parametrize("content_type", ["text/plain", "application/octet-stream", "application/json", None])
@pytest.mark.parametrize("start", ["", ": ping\n\n", "event: message\n", "\ufeff", "\r\n\r\n"])
async def test_a_stream_under_another_name(
    start: str,
    content_type: str | None,
    network: Network,
    make_model: MakeModel,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """What a body is, its first bytes say, however they are cut."""
    data = "".join([start, *HI]).encode()
    steps = [data[index : index + 1] for index in range(20)] + [data[20:]]
    network.server.replies = [stream(*steps, content_type=content_type)]

    assert HELLO_TURN == await make_model().turn(HELLO, Heard())


@pytest.mark.parametrize(
    ("body", "content_type", "said"),
    [
        ("<html><body>Welcome</body></html>", "text/html", "(text/html): <html><body>Welcome</body></html>"),
        ("Ollama is running", "text/plain", "(text/plain): Ollama is running"),
        ("OK", "text/plain", "(text/plain): OK"),
        ("", "application/json", "(application/json): an empty body"),
        ("x" * 5000, "text/plain", "(text/plain): " + "x" * 200 + "..."),
    ],
)
async def test_neither_a_stream_nor_json(
    body: str,
    content_type: str,
    said: str,
    network: Network,
    make_model: MakeModel,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """HTP-15: a 200 that is no reply of a model names the address, and shows what came."""
    network.server.replies = [answer(200, body, content_type=content_type)]
    with pytest.raises(ModelReplyError) as caught:
        await make_model().turn(HELLO, Heard())

    assert f"{ADDRESS} answered 200, but with neither a stream nor JSON {said}" == str(caught.value)
    assert caught.value.partial is None


@pytest.mark.parametrize("streamed", [False, True])
async def test_an_error_in_a_200(
    streamed: bool, network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """HTP-15: not an empty success; the status in the body counts, and what had come is partial."""
    error = {"error": {"code": 502, "message": "provider down"}}
    network.server.replies = [stream(HI[0], event(error)) if streamed else answer(200, error)]
    with pytest.raises(ModelServerError, match="provider down") as caught:
        await make_model().turn(HELLO, Heard())
    parts = (TextPart("He"),) if streamed else ()

    assert (502, True) == (caught.value.status, caught.value.retryable)
    assert caught.value.partial is not None
    assert (parts, "lost") == (caught.value.partial.parts, caught.value.partial.end)


async def test_a_lost_stream(network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock) -> None:
    """SSE-12: a clean end in the middle is no answer; text and open call are kept as partial."""
    network.server.replies = [stream(HI[0], piece(index=0, id="a", name="t", arguments='{"n":'), end="close")]
    with pytest.raises(ModelReplyError, match="ended in the middle of the reply") as caught:
        await make_model().turn(HELLO, Heard())
    expected = Turn((TextPart("He"), ToolCall("a", "t", '{"n":')), end="lost", response="r1")

    assert (expected, True) == (caught.value.partial, caught.value.retryable)


async def test_a_broken_stream(network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock) -> None:
    """A connection that breaks is told apart from a reply that is wrong."""
    network.server.replies = [stream(HI[0], end="cut")]
    with pytest.raises(ModelError, match=f"the connection to {ADDRESS} broke while the reply came in") as caught:
        await make_model().turn(HELLO, Heard())

    assert (ModelError, True) == (type(caught.value), caught.value.retryable)
    assert Turn((TextPart("He"),), end="lost", response="r1") == caught.value.partial


@pytest.mark.parametrize("end", ["cut", "hang", "close"])
async def test_a_break_after_the_end_costs_nothing(
    end: str, network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """A finish reason is a positive end: what breaks after it, or never comes, does not take the answer away."""
    network.server.replies = [stream(*HI[:2], chunk(finish="stop"), end=end)]
    turn = await make_model().turn(HELLO, Heard())

    assert HELLO_TURN == turn
    assert trio.current_time() < 5.1


async def test_usage_after_the_finish_reason_is_waited_for(
    network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """The end is not the finish reason: usage comes behind it."""
    usage = event({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}})
    network.server.replies = [stream(*HI[:2], chunk(finish="stop"), usage, end="close")]
    turn = await make_model().turn(HELLO, Heard())

    assert (3, 2) == (turn.usage.input_tokens, turn.usage.output_tokens)


async def test_a_compressed_reply(
    network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """None is asked for, and one that comes all the same is read."""
    body = gzip.compress("".join(HI).encode())
    network.server.replies = [answer(200, body, ["content-encoding: gzip"], "text/event-stream")]

    assert HELLO_TURN == await make_model().turn(HELLO, Heard())
    assert "identity" == network.server.requests[0].headers["accept-encoding"]


async def test_a_context_overflow_is_told_apart(
    network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """HTP-09: it has a class of its own, and nothing is sent again."""
    error = {"error": {"code": "context_length_exceeded", "message": "maximum context length"}}
    network.server.replies = [answer(400, error)]
    with pytest.raises(ContextOverflow, match="maximum context length"):
        await make_model().turn(HELLO, Heard())

    assert 1 == len(network.server.requests)


@pytest.mark.parametrize("reply", [answer(400), answer(202), stream(event({"choices": 3}), STOP.replace("stop", "x"))])
async def test_odd_replies_do_not_crash(
    reply: Any, network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """HTP-08: whatever comes is a turn or a `ModelError`."""
    network.server.replies = [reply]
    try:
        turn = await make_model().turn(HELLO, Heard())
    except ModelError:
        turn = Turn()

    assert () == turn.parts


async def test_the_tools_of_a_request_are_sent(
    network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """Settings of the model and of the request come together on the wire."""
    network.server.replies = [stream(*HI)]
    model = make_model(extra_body={"seed": 7}, max_tokens_field="max_completion_tokens")
    await model.turn(ModelRequest(messages=HELLO.messages, max_tokens=5), Heard())
    sent = network.server.requests[0].json

    assert (7, 5) == (sent["seed"], sent["max_completion_tokens"])


@pytest.mark.parametrize(
    ("base_url", "address"),
    [
        ("http://localhost:1234/v1/", "http://localhost:1234/v1/chat/completions"),
        ("https://[::1]:8443/v1", "https://[::1]:8443/v1/chat/completions"),
        ("HTTP://Example.com", "http://example.com/chat/completions"),
        ("http://a.b/v1/chat/completions", "http://a.b/v1/chat/completions"),
        ("http://user:pw-of-user@a.b/v1?api-version=1#x", "http://a.b/v1/chat/completions"),
        (" https://a.b/v1\n", "https://a.b/v1/chat/completions"),
    ],
)
def test_base_urls(base_url: str, address: str) -> None:
    """The path is added once; what is shown holds neither user nor query."""
    assert f"<OpenAIChat 'm' at {address}>" == repr(OpenAIChat("m", base_url=base_url))


@pytest.mark.parametrize(
    "base_url",
    [
        "",
        "localhost:8080/v1",
        "127.0.0.1:8080",
        "ftp://a.b/v1",
        "http://",
        "http:///v1",
        "http://a.b:x/v1",
        "http://a b/v1",
    ],
)
def test_an_address_that_cannot_be_is_refused(base_url: str) -> None:
    """The error shows it, and one that would be right."""
    with pytest.raises(SpecError, match=r"such as http://127\.0\.0\.1:8080/v1; it is ") as caught:
        OpenAIChat("m", base_url=base_url)

    assert repr(base_url) in str(caught.value)


@pytest.mark.parametrize("base_url", ["ftp://me:pw-of-mine@a.b", "me:pw-of-mine@a.b/v1", "http://me:pw-of-mine@/v1"])
def test_a_refused_address_shows_no_password(base_url: str) -> None:
    """Not even the error of a wrong address tells a password."""
    with pytest.raises(SpecError) as caught:
        OpenAIChat("m", base_url=base_url)

    assert "pw-of-mine" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"model": " "}, "model must be the name of a model"),
        ({"max_connections": 0}, "max_connections must be at least 1; it is 0"),
        ({"connect_timeout_seconds": 0}, "connect_timeout_seconds must be more than 0; it is 0"),
        ({"idle_timeout_seconds": -1.0}, "idle_timeout_seconds must be more than 0; it is -1.0"),
        ({"api_key": "a\nb"}, "api_key: the value of 'authorization' holds characters"),
        ({"headers": {"x": "a\r\nb: c"}}, "headers: the value of 'x' holds characters"),
        ({"headers": {"x y": "a"}}, "headers: 'x y' is no name of an HTTP header"),
        ({"extra_body": {"messages": []}}, "extra_body must not set messages"),
    ],
)
def test_settings_that_cannot_be_right_are_refused(settings: dict[str, Any], said: str) -> None:
    """At construction, naming the setting, what it was and what would be right; values of headers are not shown."""
    with pytest.raises(SpecError, match=said) as caught:
        OpenAIChat(**{"model": "m", "base_url": "http://a.b", **settings})

    assert "b: c" not in str(caught.value)


def test_openai_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is sent, the error names the variable; a key from it, or a header of one's own, will do."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(SpecError, match=r"api\.openai\.com needs a key: .* OPENAI_API_KEY"):
        OpenAIChat("m")
    OpenAIChat("m", headers={"Authorization": "Bearer x"})
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment\n")

    assert "sk-of-the-environment" not in repr(OpenAIChat("m"))


async def test_which_key_is_sent(
    monkeypatch: pytest.MonkeyPatch,
    network: Network,
    make_model: MakeModel,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The environment's never leaves for an address of somebody else's; a given header wins over a given key."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment\n")
    network.server.replies = [stream(*HI) for _ in range(4)]
    await make_model(api_key=None).turn(HELLO, Heard())
    await make_model().turn(HELLO, Heard())
    await make_model(headers={"Authorization": "Token x"}).turn(HELLO, Heard())
    await make_model(api_key="").turn(HELLO, Heard())
    sent = [request.headers.get("authorization") for request in network.server.requests]

    assert [None, f"Bearer {KEY}", "Token x", None] == sent


async def test_a_user_in_the_address_is_sent_as_such(
    network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """User and password of the address are sent as basic authentication, and the query as it stands."""
    network.server.replies = [stream(*HI)]
    model = make_model(api_key=None, base_url="http://me:p%40ss@127.0.0.1:8080/v1?api-version=1")
    await model.turn(HELLO, Heard())
    [request] = network.server.requests

    assert "Basic bWU6cEBzcw==" == request.headers["authorization"]
    assert "POST /v1/chat/completions?api-version=1 HTTP/1.1" == request.line


def test_the_profile() -> None:
    """Tools stay visible where that is proven, at OpenAI itself; sending is always reported."""
    own = OpenAIChat("gpt-x", api_key=KEY)
    other = OpenAIChat("m", base_url="http://a.b")
    given = OpenAIChat("m", base_url="http://a.b", profile=Profile(max_calls_per_turn=3))

    assert Profile(keeps_tools_when_off=True, reports_sending=True) == own.profile
    assert Profile(reports_sending=True) == other.profile
    assert Profile(max_calls_per_turn=3, reports_sending=True) == given.profile
    assert "openai:gpt-x" == own.name


async def test_no_secret_leaves_by_another_way(
    network: Network,
    make_model: MakeModel,
    autojump_clock: trio.testing.MockClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Neither errors nor reprs nor the logs of the libraries below tell the key, a header or a password."""
    caplog.set_level(logging.DEBUG)
    echo = {"error": {"message": f"{KEY} and hidden-value and pw-of-mine"}}
    network.server.replies = [
        answer(401, echo),
        answer(200, f"{KEY} hidden-value pw-of-mine", content_type="text/plain"),
        stream(event(echo)),
        stream(f"data: {KEY} hidden-value pw-of-mine\n\n"),
    ]
    model = make_model(base_url="http://me:pw-of-mine@127.0.0.1:8080/v1", headers={"x-token": "Key hidden-value"})
    told = [repr(model), repr(model.statistics()), repr(model.profile)]
    for _ in range(4):
        with pytest.raises(ModelError) as caught:
            await model.turn(HELLO, Heard())
        told += [str(caught.value), repr(caught.value)]
    everything = "\n".join(told) + caplog.text

    assert [] == [secret for secret in (KEY, "hidden-value", "pw-of-mine") if secret in everything]
    assert "*** and *** and ***" in everything


@pytest.mark.slow
def test_no_client_is_loaded_before_the_first_call() -> None:
    """A model is made without the cost of an HTTP client."""
    code = (
        "import sys, json\n"
        "from actors.models.openai import OpenAIChat\n"
        "OpenAIChat('m', base_url='http://127.0.0.1:1')\n"
        "print(json.dumps(sorted({'httpx', 'httpcore', 'h11'} & sys.modules.keys())))\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert [] == json.loads(shown)
