"""The generateContent model: its settings, and whole calls over a network in memory."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import trio.testing

from actors.models import Gemini
from protocol.errors import ModelAuthError, ModelReplyError, SpecError
from protocol.model import ModelRequest, Profile, RequestSent, ToolDefinition
from protocol.turns import AssistantMessage, Message, TextPart, ToolCall, ToolMessage, ToolResult, Turn, UserMessage
from tests.actors.models._gemini import call, chunk, reply, text
from tests.actors.models._wire import HELLO, Heard, Network, answer, stream

KEY = "very-secret-key"
HOST = "http://127.0.0.1:8080"
PATH = "/v1beta/models/gemini-2.5-x:streamGenerateContent"
WHOLE = Turn((TextPart("Hello"),), "stop", "STOP", response="r1")
STREAM = (chunk(text("He")), chunk(text("llo"), finish="STOP"))


def model_at(network: Network, model: str = "gemini-2.5-x", **settings: Any) -> Gemini:
    return Gemini(model, **{"base_url": HOST, "api_key": KEY, "transport": network.transport(), **settings})


async def test_a_call(network: Network, autojump_clock: trio.testing.MockClock) -> None:
    """One POST with the key in its own header, one turn; `RequestSent` comes once and first."""
    network.server.replies = [stream(*STREAM)]
    heard = Heard()
    turn = await model_at(network).turn(HELLO, heard)
    [request] = network.server.requests

    assert WHOLE == turn
    assert ("Hello", 1, RequestSent()) == (heard.text, heard.sent, heard.events[0])
    assert f"POST {PATH}?alt=sse HTTP/1.1" == request.line
    assert {"contents": [{"role": "user", "parts": [text("Hello?")]}]} == request.json
    assert (KEY, False) == (request.headers["x-goog-api-key"], "authorization" in request.headers)


async def test_a_body_in_place_of_a_stream(network: Network, autojump_clock: trio.testing.MockClock) -> None:
    """A whole reply, or the list that the method answers without `alt=sse`."""
    network.server.replies = [
        answer(200, reply(text("Hello"), finish="STOP")),
        answer(200, [reply(text("He")), reply(text("llo"), finish="STOP")]),
    ]
    model = model_at(network)

    assert [WHOLE, WHOLE] == [await model.turn(HELLO, Heard()) for _ in range(2)]


async def test_a_connection_that_just_closes(network: Network, autojump_clock: trio.testing.MockClock) -> None:
    """With a finish reason the turn stands; without one the reply is lost, and what came is partial."""
    network.server.replies = [stream(*STREAM, end="cut"), stream(STREAM[0], end="close")]
    model = model_at(network)

    assert WHOLE == await model.turn(HELLO, Heard())
    with pytest.raises(ModelReplyError, match="without a finish reason") as caught:
        await model.turn(HELLO, Heard())
    assert caught.value.retryable
    assert Turn((TextPart("He"),), end="lost", response="r1") == caught.value.partial


@pytest.mark.parametrize(
    ("name", "signature"),
    [
        ("gemini-2.5-x", ""),
        ("gemini-3-x", "skip_thought_signature_validator"),
        ("publishers/google/models/gemini-10-x", "skip_thought_signature_validator"),
        ("x", ""),
    ],
)
async def test_a_tool_round(
    name: str, signature: str, network: Network, autojump_clock: trio.testing.MockClock
) -> None:
    """The settings of the model reach the request: its own fields, and the marks that a strict model wants."""
    network.server.replies = [stream(*STREAM)]
    model = model_at(network, name, extra_body={"generationConfig": {"topK": 1}})
    tool = ToolDefinition("t", "Does it.", {"type": "object"})
    messages: list[Message] = [
        UserMessage("Go."),
        AssistantMessage((ToolCall("a", "t", "{}"),)),
        ToolMessage((ToolResult("a", "t", "ok", "1"),)),
    ]
    await model.turn(ModelRequest(messages=messages, tools=[tool], max_tokens=5), Heard())
    [request] = network.server.requests

    assert {"maxOutputTokens": 5, "topK": 1} == request.json["generationConfig"]
    assert [call("t", signature=signature)] == request.json["contents"][1]["parts"]


@pytest.mark.parametrize(
    ("settings", "address"),
    [
        ({}, f"{HOST}/v1beta/models/m:streamGenerateContent?alt=sse"),
        ({"version": "v1"}, f"{HOST}/v1/models/m:streamGenerateContent?alt=sse"),
        ({"base_url": f"{HOST}/v1beta/"}, f"{HOST}/v1beta/models/m:streamGenerateContent?alt=sse"),
        ({"base_url": f"{HOST}/proxy?a=b"}, f"{HOST}/proxy/v1beta/models/m:streamGenerateContent?a=b&alt=sse"),
        (
            {"base_url": f"{HOST}/v1beta/models/m:streamGenerateContent?alt=sse"},
            f"{HOST}/v1beta/models/m:streamGenerateContent?alt=sse",
        ),
        ({"model": "tunedModels/m"}, f"{HOST}/v1beta/tunedModels/m:streamGenerateContent?alt=sse"),
        ({"model": "a b?c#d\ud800"}, f"{HOST}/v1beta/models/a%20b%3Fc%23d%3F:streamGenerateContent?alt=sse"),
    ],
)
def test_the_address(settings: dict[str, Any], address: str) -> None:
    """Version, model and query stand where the API has them; what errors show has no query."""
    made = Gemini(**{"model": "m", "base_url": HOST, **settings})._client.endpoint

    assert address == made.url
    assert address.partition("?")[0] == made.address


@pytest.mark.parametrize(
    ("variables", "key"),
    [
        ({"GEMINI_API_KEY": "first-key", "GOOGLE_API_KEY": "second-key"}, "first-key"),
        ({"GOOGLE_API_KEY": "second-key"}, "second-key"),
    ],
)
def test_the_key_from_the_environment(variables: dict[str, str], key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`GEMINI_API_KEY`, then `GOOGLE_API_KEY`, and to Google's own host alone."""
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    own, other = Gemini("m"), Gemini("m", base_url=HOST)

    assert key == own._client._headers["x-goog-api-key"]
    assert "x-goog-api-key" not in other._client._headers


def test_google_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Said before the first call; no key is needed elsewhere."""
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    with pytest.raises(SpecError, match="generativelanguage.googleapis.com needs a key: .*GEMINI_API_KEY or GOOGLE"):
        Gemini("m")

    assert "gemini:m" == Gemini("m", base_url=HOST).name


async def test_a_refused_key_is_not_shown(network: Network, autojump_clock: trio.testing.MockClock) -> None:
    """The error says what to do, and neither it nor the model shows the key."""
    network.server.replies = [
        answer(403, {"error": {"code": 403, "message": f"no {KEY}", "status": "PERMISSION_DENIED"}})
    ]
    model = model_at(network)
    with pytest.raises(ModelAuthError, match=r"403 .*no \*\*\*.*api_key") as caught:
        await model.turn(HELLO, Heard())

    assert KEY not in f"{caught.value!r}{model!r}{model._client.endpoint!r}"


def test_the_profile() -> None:
    """Tools that are off stay visible to Google's own models; a profile that is given holds."""
    own = Gemini("m", api_key=KEY)
    other = Gemini("m", base_url=HOST)
    given = Gemini("m", api_key=KEY, profile=Profile(takes_temperature=False))

    assert [True, False, False] == [model.profile.keeps_tools_when_off for model in (own, other, given)]
    assert (True, False) == (own.profile.reports_sending, given.profile.takes_temperature)


@pytest.mark.parametrize("name", ["contents", "tools", "toolConfig", "systemInstruction"])
def test_extra_fields_that_cannot_be_are_refused_at_once(name: str) -> None:
    """What the request says itself cannot be set beside it."""
    with pytest.raises(SpecError, match=f"extra_body must not set {name}"):
        Gemini("m", base_url=HOST, extra_body={name: []})


def test_it_is_imported_on_first_use() -> None:
    """`import actors` loads neither the format nor an HTTP client."""
    script = (
        "import sys, actors.models\n"
        "print('actors.models.gemini' in sys.modules)\n"
        "from actors.models import Gemini\n"
        "print(Gemini.__name__, 'httpx' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert ["False", "Gemini False"] == done.stdout.splitlines()
