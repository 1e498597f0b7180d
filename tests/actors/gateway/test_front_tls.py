"""The front over TLS: the handshake is part of what has five seconds, and what is served is marked as secure."""

from __future__ import annotations

import json
import ssl
from typing import Any

import pytest
import trio
import trio.testing

from actors.gateway import DoorLimits
from tests.actors.gateway.raw import Client, a_client, a_gateway, command, dribble, head, parse_answer, upgrade

Clock = trio.testing.MockClock


@pytest.fixture(scope="module")
def authority() -> Any:
    import trustme

    return trustme.CA()


@pytest.fixture
def server_context(authority: Any) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    return context


@pytest.fixture
def client_context(authority: Any) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


async def secured(client: Client, context: ssl.SSLContext) -> Client:
    """The same connection with TLS spoken on it."""
    stream = trio.SSLStream(client.stream, context, server_hostname="localhost", https_compatible=True)
    await stream.do_handshake()
    return Client(stream)


async def test_tls(server_context: ssl.SSLContext, client_context: ssl.SSLContext, autojump_clock: Clock) -> None:
    """Pages, sessions and WebSockets over TLS: the origin is https, and the cookie is never sent without it."""
    async with a_gateway(ssl_context=server_context) as gateway:
        async with a_client(gateway) as client:
            page = await (await secured(client, client_context)).ask(head("/healthz"))
        async with a_client(gateway) as client:
            body = json.dumps({"ticket": gateway.ticket()}).encode()
            fields = (
                ("Origin", "https://localhost"),
                ("Content-Type", "application/json"),
                ("Content-Length", str(len(body))),
            )
            sent = head("/session", *fields, method="POST", body=body)
            session = await (await secured(client, client_context)).ask(sent)
        async with a_client(gateway) as client:
            inside = await secured(client, client_context)
            answer = await inside.upgrade()
            await inside.send(command(1, "hello"))
            await inside.more(1)
        address = gateway.address

    assert (200, b"ok", 101) == (page.status, page.body, answer.status)
    assert "Secure" in session.headers["set-cookie"].split("; ")
    assert "tester" == inside.messages[0]["result"]["principal"]
    assert address.startswith("https://127.0.0.1:")


@pytest.mark.parametrize(
    "pieces",
    [[], [b"\x16\x03\x01\x02\x00\x01"], [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", *[b"\0"] * 200]],
    ids=["silence", "half a hello", "a byte a second"],
)
async def test_tls_that_stalls(server_context: ssl.SSLContext, pieces: list[bytes], autojump_clock: Clock) -> None:
    """A handshake has the same five seconds; who speaks no TLS is not spoken to."""
    async with a_gateway(ssl_context=server_context) as gateway:
        begun = trio.current_time()
        async with a_client(gateway) as client, trio.open_nursery() as nursery:
            nursery.start_soon(dribble, client, tuple(pieces), 1.0)
            told = await client.all()
            took = trio.current_time() - begun
            nursery.cancel_scope.cancel()

    assert b"" == told
    assert 5 <= took <= 6


async def test_tls_that_is_none(server_context: ssl.SSLContext, autojump_clock: Clock) -> None:
    """Plain HTTP on a port of TLS ends at once, with no page and no token taken."""
    async with a_gateway(ssl_context=server_context) as gateway:
        begun = trio.current_time()
        async with a_client(gateway) as client:
            await client.send(upgrade())
            told = await client.all()
            took = trio.current_time() - begun

    assert b"HTTP" not in told
    assert took < 1


async def test_tls_and_head_share_the_deadline(
    server_context: ssl.SSLContext, client_context: ssl.SSLContext, autojump_clock: Clock
) -> None:
    """Three seconds for the handshake leave two for the head."""
    async with a_gateway(ssl_context=server_context) as gateway:
        begun = trio.current_time()
        async with a_client(gateway) as client:
            await trio.sleep(3)
            inside = await secured(client, client_context)
            answer = parse_answer(await inside.all())
            took = trio.current_time() - begun

    assert 408 == answer.status
    assert 5 <= took <= 6.1


async def test_tls_for_those_who_are_turned_away(
    server_context: ssl.SSLContext, client_context: ssl.SSLContext, autojump_clock: Clock
) -> None:
    """They are told over TLS, too."""
    limits = DoorLimits(connections=0)
    async with a_gateway(ssl_context=server_context, door_limits=limits) as gateway, a_client(gateway) as client:
        answer = await (await secured(client, client_context)).ask(head("/"))

    assert 503 == answer.status
