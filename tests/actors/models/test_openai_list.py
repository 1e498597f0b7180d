"""The list of a server's models: one GET, no key that was not given, and whatever comes is a list or an error."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from actors.models.openai import ListedModel, list_models
from protocol.errors import ModelAuthError, ModelError, ModelRefused, ModelReplyError, ModelTimeout, ModelUnreachable
from tests.actors.models._wire import Network, Pause, answer, raw, stream

BASE = "http://127.0.0.1:8080/v1"


async def listed(network: Network, **settings: Any) -> tuple[ListedModel, ...]:
    return await list_models(BASE, transport=network.transport(), **settings)


async def test_models_are_listed(
    network: Network, monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    """In the server's order, with what it calls their owner; what is no entry is passed over. Connections are closed."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    entries = [{"id": "a", "owned_by": "vllm"}, {"id": "b"}, None, {"id": 3}, {"owned_by": "x"}]
    network.server.replies = [answer(200, {"object": "list", "data": entries})]
    models = await listed(network)
    [request] = network.server.requests

    assert (ListedModel("a", "vllm"), ListedModel("b", "")) == models
    assert ("GET /v1/models HTTP/1.1", b"") == (request.line, request.body)
    assert "authorization" not in request.headers
    assert (1, 1) == (network.server.connections, network.closed)


async def test_a_given_key_is_sent(network: Network, autojump_clock: trio.testing.MockClock) -> None:
    """To the address beside it."""
    network.server.replies = [answer(200, {"data": []})]

    assert () == await listed(network, api_key="sk-given")
    assert "Bearer sk-given" == network.server.requests[0].headers["authorization"]


@pytest.mark.parametrize(
    ("reply", "kind", "said"),
    [
        (answer(401, {"error": {"message": "no key"}}), ModelAuthError, "401"),
        (answer(404, "Not here"), ModelRefused, "404"),
        (answer(301, headers=["location: http://169.254.169.254/"]), ModelRefused, "redirects are not followed"),
        (answer(200, "<html>"), ModelReplyError, "answered with no list of models"),
        (answer(200, {"data": {}}), ModelReplyError, "answered with no list of models"),
        (answer(200, "[" * 100_000), ModelReplyError, "answered with no list of models"),
        (answer(200, b"\xff\xfe"), ModelReplyError, "answered with no list of models"),
        (answer(200, " " * 17_000_000), ModelReplyError, "more than 16777216 bytes"),
        (raw(), ModelError, "broke"),
        (stream("{", Pause(99)), ModelTimeout, "idle_timeout_seconds"),
        (raw(Pause(99)), ModelTimeout, "first_byte_timeout_seconds"),
    ],
)
async def test_what_is_no_list_is_an_error(
    reply: Any, kind: type[ModelError], said: str, network: Network, autojump_clock: trio.testing.MockClock
) -> None:
    """Whatever listens there, the error says what came, and nothing is followed or waited for without end."""
    network.server.replies = [reply]
    with pytest.raises(kind, match=said):
        await listed(network, first_byte_timeout_seconds=5.0, idle_timeout_seconds=5.0)

    assert 1 == len(network.server.requests)
    assert trio.current_time() < 6


async def test_nothing_that_listens(network: Network, autojump_clock: trio.testing.MockClock) -> None:
    """Nothing was sent."""
    network.refuse = True
    with pytest.raises(ModelUnreachable, match=f"cannot connect to {BASE}/models"):
        await listed(network)
