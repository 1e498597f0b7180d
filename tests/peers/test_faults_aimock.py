"""Models against a server that fails as real ones do: the same faults are the same errors in every wire format."""

from __future__ import annotations

from typing import Any, TypeAlias

import pytest
import trio

from actors.models import Gemini, OpenAIChat
from actors.models.wire import HttpModel
from protocol.errors import ModelError, ModelRateLimited, ModelReplyError, ModelServerError
from protocol.model import ModelEvent, ModelRequest, TextDelta
from protocol.turns import UserMessage
from tests.peers._aimock import TEXT, AimockServer, fault

pytestmark = pytest.mark.peer

Format: TypeAlias = type[Gemini] | type[OpenAIChat]
both = pytest.mark.parametrize("kind", [Gemini, OpenAIChat])


def model_at(server: AimockServer, kind: Format, **settings: Any) -> HttpModel:
    base_url = server.url if kind is Gemini else server.base_url
    return kind("gemini-2.5-flash", base_url=base_url, api_key="any-key", **settings)


async def failing(model: HttpModel, word: str = "greet") -> tuple[ModelError, str]:
    """Call the model; return the error, and the text that had been reported."""
    events: list[ModelEvent] = []
    with trio.fail_after(30), pytest.raises(ModelError) as caught:
        await model.turn(ModelRequest(messages=[UserMessage(word)]), events.append)
    await model.aclose()
    return caught.value, "".join([event.text for event in events if isinstance(event, TextDelta)])


@both
async def test_a_rate_limit(kind: Format, aimock_server: AimockServer) -> None:
    """429 is worth another try, and nothing of an answer has come."""
    error, text = await failing(model_at(aimock_server, kind, headers=fault("ratelimit")))

    assert isinstance(error, ModelRateLimited)
    assert (429, True, None, "") == (error.status, error.retryable, error.partial, text)


@both
@pytest.mark.parametrize("asked", ["drop", "refuse"])
async def test_a_server_that_fails(kind: Format, asked: str, aimock_server: AimockServer) -> None:
    """5xx is the server's fault, told in its own words, and worth another try."""
    settings = {"headers": fault("drop")} if asked == "drop" else {}
    error, _ = await failing(model_at(aimock_server, kind, **settings), "greet" if asked == "drop" else "refuse")
    status, said = (500, "Internal Server Error") if asked == "drop" else (503, "too busy")

    assert isinstance(error, ModelServerError)
    assert (status, True, None) == (error.status, error.retryable, error.partial)
    assert said in str(error)


@both
async def test_a_connection_that_is_dropped(kind: Format, aimock_server: AimockServer) -> None:
    """An end before the reply is a connection that broke: worth another try, and no answer."""
    error, text = await failing(model_at(aimock_server, kind, headers=fault("disconnect")))

    assert type(error) is ModelError
    assert (True, None, "") == (error.retryable, error.partial, text)
    assert "broke before the reply began" in str(error)


@both
async def test_a_reply_that_is_cut(kind: Format, aimock_server: AimockServer) -> None:
    """What had come is partial, and never passes for an answer."""
    error, text = await failing(model_at(aimock_server, kind), "break")

    assert error.retryable
    assert error.partial is not None
    assert ("lost", text) == (error.partial.end, error.partial.text)
    assert TEXT.startswith(text)
    assert 0 < len(text) < len(TEXT)


@both
async def test_a_reply_that_is_no_json(kind: Format, aimock_server: AimockServer) -> None:
    """Status 200 does not make an answer of it; the error shows what came."""
    error, text = await failing(model_at(aimock_server, kind, headers=fault("malformed")))

    assert isinstance(error, ModelReplyError)
    assert (False, "") == (error.retryable, text)
    assert "{malformed json" in str(error)


@both
async def test_a_model_is_of_use_after_a_fault(kind: Format, aimock_server: AimockServer) -> None:
    """A broken reply takes no connection with it."""
    model = model_at(aimock_server, kind, max_connections=1)
    with trio.fail_after(30):
        for _ in range(2):
            with pytest.raises(ModelError):
                await model.turn(ModelRequest(messages=[UserMessage("break")]), lambda _: None)
        turn = await model.turn(ModelRequest(messages=[UserMessage("greet")]), lambda _: None)
        await model.aclose()

    assert (TEXT, "stop") == (turn.text, turn.finish)
