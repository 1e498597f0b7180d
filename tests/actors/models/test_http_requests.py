"""Requests to other places of a model's server."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio.testing

from actors.models.wire import Endpoint, HttpClient, parse
from protocol.errors import ModelAuthError, ModelRefused, ModelReplyError, ModelTimeout
from tests.actors.models._wire import Network, Pause, answer, raw

BASE = "http://127.0.0.1:8080/v1"


@pytest.fixture
async def client(network: Network) -> HttpClient:
    endpoint = Endpoint.of(BASE, "/chat/completions", secrets=["sk-secret"])
    return HttpClient(endpoint, {"authorization": "Bearer sk-secret"}, transport=network.transport())


async def test_a_place_is_read(network: Network, client: HttpClient, autojump_clock: trio.testing.MockClock) -> None:
    """With the model's headers, and without a body; the connection is shared."""
    network.server.replies = [answer(200, {"data": []}), answer(200, {"ok": True})]
    async with client.request("GET", "/models?limit=5") as reply:
        first = parse(await reply.read())
    async with client.request("GET", "/health", from_root=True) as reply:
        second = (reply.status, reply.headers["content-type"], parse(await reply.read()))

    assert ({"data": []}, (200, "application/json", {"ok": True})) == (first, second)
    assert ["GET /v1/models?limit=5 HTTP/1.1", "GET /health HTTP/1.1"] == [one.line for one in network.server.requests]
    [head, _] = [one.headers for one in network.server.requests]
    assert ("Bearer sk-secret", False) == (head["authorization"], "content-type" in head)
    assert 1 == network.server.connections


async def test_other_methods(network: Network, client: HttpClient, autojump_clock: trio.testing.MockClock) -> None:
    """Deleting has no answer but a status; posting has a body, and says when it was sent."""
    network.server.replies = [raw("HTTP/1.1 204 No Content\r\n\r\n"), answer(201, {"id": "i1"})]
    sent: list[float] = []
    async with client.request("DELETE", "/interactions/i1") as reply:
        deleted = (reply.status, await reply.read())
    async with client.request("POST", "/interactions/i1/cancel", body=b"{}", on_sent=lambda: sent.append(1)) as reply:
        posted = parse(await reply.read())

    assert ((204, b""), {"id": "i1"}, [1]) == (deleted, posted, sent)
    assert (b"{}", "application/json") == (
        network.server.requests[1].body,
        network.server.requests[1].headers["content-type"],
    )


async def test_what_goes_wrong_names_the_place(
    network: Network, client: HttpClient, autojump_clock: trio.testing.MockClock
) -> None:
    """The same errors as those of a model call, with the address that was asked, and without its query."""
    network.server.replies = [answer(404), answer(401), raw("nonsense\r\n\r\n"), raw(Pause(1000))]
    for kind in (ModelRefused, ModelAuthError, ModelReplyError, ModelTimeout):
        with pytest.raises(kind, match=f"{BASE}/models (?!.*secret)"):
            async with client.request("GET", "/models?key=sk-secret"):
                pass

    assert (0, 4) == (client.statistics().calls, len(network.server.requests))


@pytest.mark.parametrize(
    ("base", "path", "from_root", "url"),
    [
        ("http://a/v1", "/models", False, "http://a/v1/models"),
        ("http://a/v1/", "models", False, "http://a/v1/models"),
        ("http://a/v1/chat/completions", "/models", False, "http://a/v1/models"),
        ("http://a", "/models", False, "http://a/models"),
        ("http://a:8/x/v1", "/props", True, "http://a:8/props"),
        ("http://[::1]:8/v1", "/props", True, "http://[::1]:8/props"),
        ("http://u:p@a/v1?key=k", "/models?limit=1", False, "http://a/v1/models?key=k&limit=1"),
        ("http://a/v1?key=k", "/models", False, "http://a/v1/models?key=k"),
        ("http://a/v1", "//evil.test/x", False, "http://a/v1/evil.test/x"),
        ("http://a/v1", "http://evil.test/x", True, "http://a/http://evil.test/x"),
    ],
)
def test_where_a_path_leads(base: str, path: str, from_root: bool, url: str) -> None:
    """Below the address that was given, or below the server's root; never to another server."""
    place = Endpoint.of(base, "/chat/completions").at(path, from_root=from_root)

    assert (url, url.partition("?")[0]) == (place.url, place.address)


@pytest.mark.parametrize("make", [lambda: "/m:go?alt=sse", lambda: "/v1/m:go?alt=sse"])
def test_a_path_of_the_format_may_hold_a_query(make: Callable[[], str]) -> None:
    """It is asked with the query of the address, and is not shown."""
    path = make()
    place = Endpoint.of("https://a/v1?key=k", path)

    assert f"https://a/v1{path.partition('?')[0]}?key=k&alt=sse" == place.url
    assert f"https://a/v1{path.partition('?')[0]}" == place.address
