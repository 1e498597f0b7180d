"""The Messages model: its settings, and whole calls over a network in memory."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing

from actors.models import Anthropic
from protocol.errors import (
    ContextOverflow,
    ModelAuthError,
    ModelError,
    ModelRateLimited,
    ModelRefused,
    ModelReplyError,
    ModelServerError,
    SpecError,
)
from protocol.model import ModelRequest, Profile, RequestSent
from protocol.turns import TextPart, ToolCall, Turn
from tests.actors.models._anthropic_bodies import BODIES
from tests.actors.models._anthropic_cases import HELLO as HELLO_TURN
from tests.actors.models._anthropic_cases import STREAMS
from tests.actors.models._anthropic_wire import HI, delta, opened, sent
from tests.actors.models._wire import HELLO, Heard, Network, answer, stream

KEY = "sk-very-secret"
ADDRESS = "http://127.0.0.1:8080/v1/messages"

MakeModel = Callable[..., Anthropic]


@pytest.fixture
async def make(network: Network) -> MakeModel:
    """Makes models whose network is `network`."""

    def made(**settings: Any) -> Anthropic:
        settings = {
            "base_url": "http://127.0.0.1:8080",
            "api_key": KEY,
            "retries": 0,
            "transport": network.transport(),
            **settings,
        }
        return Anthropic("m", **settings)

    return made


async def test_a_call(network: Network, make: MakeModel, autojump_clock: trio.testing.MockClock) -> None:
    """One POST, one turn; the key and the version are headers, and the cap is always sent."""
    network.server.replies = [stream(*HI)]
    heard = Heard()
    turn = await make(headers={"anthropic-beta": "x"}, extra_body={"top_k": 1}).turn(HELLO, heard)
    [request] = network.server.requests

    assert HELLO_TURN == turn
    assert "Hello" == heard.text
    assert (1, RequestSent()) == (heard.sent, heard.events[0])
    assert "POST /v1/messages HTTP/1.1" == request.line
    assert ("m", 8192, 1, True) == tuple(request.json[name] for name in ("model", "max_tokens", "top_k", "stream"))
    wanted = {"x-api-key": KEY, "anthropic-version": "2023-06-01", "anthropic-beta": "x"}
    assert wanted.items() <= request.headers.items()
    assert "authorization" not in request.headers


async def test_settings_reach_the_wire(
    network: Network, make: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """The version and the profile's cap are the caller's; so are the provider's own tools."""
    network.server.replies = [stream(*HI)]
    model = make(version="2026-10-21", profile=Profile(default_max_tokens=5), server_tools=[{"name": "web_search"}])
    await model.turn(ModelRequest(messages=HELLO.messages), Heard())
    [request] = network.server.requests

    assert ("2026-10-21", 5) == (request.headers["anthropic-version"], request.json["max_tokens"])
    assert [{"name": "web_search"}] == request.json["tools"]


@pytest.mark.parametrize("name", STREAMS)
async def test_every_stream_over_http(
    name: str, network: Network, make: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """The cases hold with HTTP's own chunks around them, and with a connection that just closes."""
    case = STREAMS[name]
    network.server.replies = [stream(*case.chunks), stream(*case.chunks, end="close")]
    model = make()

    assert case.turn == await model.turn(HELLO, Heard())
    assert case.turn == await model.turn(HELLO, Heard())


@pytest.mark.parametrize("name", BODIES)
async def test_a_whole_body_in_place_of_a_stream(
    name: str, network: Network, make: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """A server that does not stream is understood."""
    body, turn = BODIES[name]
    network.server.replies = [answer(200, body)]

    assert turn == await make().turn(HELLO, Heard())


@pytest.mark.parametrize(
    ("status", "error", "kind", "retryable"),
    [
        (400, {"type": "invalid_request_error", "message": "bad field"}, ModelRefused, False),
        (400, {"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8 maximum"}, ContextOverflow, False),
        (400, {"type": "invalid_request_error", "message": "input length and `max_tokens` exceed context limit"}, ContextOverflow, False),
        (401, {"type": "authentication_error", "message": "invalid x-api-key"}, ModelAuthError, False),
        (403, {"type": "permission_error", "message": "no"}, ModelAuthError, False),
        (404, {"type": "not_found_error", "message": "model: m"}, ModelRefused, False),
        (413, {"type": "request_too_large", "message": "too large"}, ModelRefused, False),
        (429, {"type": "rate_limit_error", "message": "slow down"}, ModelRateLimited, True),
        (500, {"type": "api_error", "message": "broke"}, ModelServerError, True),
        (529, {"type": "overloaded_error", "message": "Overloaded"}, ModelServerError, True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("wrapped", [True, False])
async def test_an_error_status(
    status: int,
    error: dict[str, str],
    kind: type[ModelRefused],
    retryable: bool,
    wrapped: bool,
    network: Network,
    make: MakeModel,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Both shapes of an error, with and without the outer type, are told in the server's own words."""
    network.server.replies = [answer(status, {"error": error, **({"type": "error"} if wrapped else {})})]
    with pytest.raises(ModelRefused, match=error["message"][:10]) as caught:
        await make().turn(HELLO, Heard())

    assert (kind, status, retryable) == (type(caught.value), caught.value.status, caught.value.retryable)
    assert caught.value.partial is None


async def test_an_overload_in_the_middle(
    network: Network, make: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """An error after the 200 is that error, and what had come is partial."""
    error = sent("error", error={"type": "overloaded_error", "message": "Overloaded"})
    network.server.replies = [stream(HI[0], opened(0, "text", text="He"), error, end="cut")]
    with pytest.raises(ModelServerError, match="Overloaded") as caught:
        await make().turn(HELLO, Heard())

    assert (529, True) == (caught.value.status, caught.value.retryable)
    assert Turn((TextPart("He"),), end="lost", response="m1") == caught.value.partial


async def test_a_lost_stream(network: Network, make: MakeModel, autojump_clock: trio.testing.MockClock) -> None:
    """A clean end in the middle is no answer; the open call is kept as partial."""
    call = opened(0, "tool_use", id="a", name="t") + delta(0, "input_json_delta", partial_json='{"n":')
    network.server.replies = [stream(HI[0], call, end="close")]
    with pytest.raises(ModelReplyError, match="neither a stop reason nor message_stop") as caught:
        await make().turn(HELLO, Heard())

    assert Turn((ToolCall("a", "t", '{"n":'),), end="lost", response="m1") == caught.value.partial
    assert caught.value.retryable


@pytest.mark.parametrize("end", ["cut", "hang", "close"])
async def test_a_break_after_the_stop_reason_costs_nothing(
    end: str, network: Network, make: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """The model has ended and said why: what breaks after it, or never comes, does not take the answer away."""
    told = sent("message_delta", delta={"stop_reason": "end_turn"})
    network.server.replies = [stream(*HI[:2], told, end=end)]

    assert HELLO_TURN == await make().turn(HELLO, Heard())
    assert trio.current_time() < 5.1


@pytest.mark.parametrize(
    ("base_url", "address"),
    [
        ("https://api.anthropic.com", "https://api.anthropic.com/v1/messages"),
        ("http://localhost:1234/", "http://localhost:1234/v1/messages"),
        ("http://localhost:1234/v1", "http://localhost:1234/v1/messages"),
        ("http://localhost:1234/v1/ ", "http://localhost:1234/v1/messages"),
        ("http://a.b/v1/messages", "http://a.b/v1/messages"),
        ("http://a.b/anthropic", "http://a.b/anthropic/v1/messages"),
        ("http://user:pw-of-user@a.b/v1?next=/v1", "http://a.b/v1/messages"),
    ],
)
def test_base_urls(base_url: str, address: str) -> None:
    """The path is added once, whatever of it stands there already."""
    assert f"<Anthropic 'm' at {address}>" == repr(Anthropic("m", base_url=base_url, api_key=KEY))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"model": " "}, "model must be the name of a model"),
        ({"base_url": "localhost:8080"}, "base_url must be an http or https address"),
        ({"api_key": "a\nb"}, "api_key: the value of 'x-api-key' holds characters"),
        ({"version": "a\nb"}, "the value of 'anthropic-version' holds characters"),
        ({"extra_body": {"system": "x"}}, "extra_body must not set system"),
        ({"server_tools": {"name": "x"}}, "server_tools must be a list"),
    ],
)
def test_settings_that_cannot_be_right_are_refused(settings: dict[str, Any], said: str) -> None:
    """At construction, naming the setting and what would be right."""
    with pytest.raises(SpecError, match=said):
        Anthropic(**{"model": "m", "base_url": "http://a.b", **settings})


async def test_the_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anthropic needs one: the error names the variable; a key from it, or a header of one's own, will do."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(SpecError, match=r"api\.anthropic\.com needs a key: .* ANTHROPIC_API_KEY"):
        Anthropic("m")
    Anthropic("m", headers={"Authorization": "Bearer x"})
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-the-environment\n")

    assert "sk-of-the-environment" not in repr(Anthropic("m"))


def test_the_profile() -> None:
    """Tools stay visible at Anthropic itself, else their blocks are flattened; there is always a cap."""
    own = Anthropic("claude-x", api_key=KEY)
    other = Anthropic("m", base_url="http://a.b")
    given = Anthropic("m", base_url="http://a.b", profile=Profile(max_output_tokens=64_000))
    usual = Profile(flatten_without_tools=True, default_max_tokens=8192, reports_sending=True)

    assert (True, True, 8192) == (
        own.profile.keeps_tools_when_off,
        own.profile.flatten_without_tools,
        own.profile.default_max_tokens,
    )
    assert usual == other.profile
    assert Profile(default_max_tokens=8192, max_output_tokens=64_000, reports_sending=True) == given.profile
    assert "anthropic:claude-x" == own.name


async def test_no_secret_leaves(
    network: Network, make: MakeModel, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither errors nor reprs nor the logs of the libraries below tell the key."""
    caplog.set_level(logging.DEBUG)
    echo = {"type": "error", "error": {"type": "authentication_error", "message": f"not {KEY}"}}
    network.server.replies = [answer(401, echo), stream(sent("error", error=echo["error"]))]
    model = make()
    told = [repr(model), repr(model.profile)]
    for _ in range(2):
        with pytest.raises(ModelError) as caught:
            await model.turn(HELLO, Heard())
        told += [str(caught.value), repr(caught.value)]
    everything = "\n".join(told) + caplog.text

    assert KEY not in everything
    assert "not ***" in everything


@pytest.mark.slow
def test_no_client_is_loaded_before_the_first_call() -> None:
    """A model is made without the cost of an HTTP client, and the package is not loaded with `actors`."""
    code = (
        "import sys, json, actors\n"
        "early = [name for name in sys.modules if name.startswith('actors.models.anthropic')]\n"
        "from actors.models import Anthropic\n"
        "Anthropic('m', base_url='http://127.0.0.1:1')\n"
        "print(json.dumps(early + sorted({'httpx', 'httpcore', 'h11'} & sys.modules.keys())))\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert [] == json.loads(shown)
