"""What an attacker tries, one after the other, and what it gets; each leaves the server as it was."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import attrs
import pytest
import trio
import trio.testing

from actors.gateway import Gateway, Pace
from tests.actors.gateway.raw import (
    BEARER,
    OFFER,
    PING,
    TEXT,
    TOKEN,
    UPGRADE,
    Client,
    a_client,
    a_gateway,
    command,
    dial,
    dribble,
    frame,
    head,
    living,
    parse_answer,
    upgrade,
)

Clock = trio.testing.MockClock


def status(data: bytes) -> int:
    return parse_answer(data).status


async def request(client: Client, raw: bytes) -> int:
    return (await client.ask(raw)).status


async def foreign_origin(client: Client) -> int | str | None:
    """A page of another site lets the browser of a user connect, who is logged in here."""
    return await request(client, upgrade(BEARER, ("Origin", "https://evil.example")))


async def rebound_host(client: Client) -> int | str | None:
    """A page whose name has been pointed at this machine: to its browser, that is one origin."""
    return await request(client, upgrade(BEARER, ("Origin", "http://evil.example"), host="evil.example"))


async def no_token(client: Client) -> int | str | None:
    """Another user of this machine, or somebody in the network."""
    return await request(client, head("/ws", *UPGRADE, OFFER))


async def wrong_token(client: Client) -> int | str | None:
    """A guess."""
    return await request(client, upgrade(("Authorization", "Bearer token-of-the-tests-0002")))


async def token_in_the_query(client: Client) -> int | str | None:
    """What would stand in every log on the way."""
    answer = await client.ask(head(f"/ws?token={TOKEN}", *UPGRADE, OFFER))
    return "told again" if TOKEN in str(answer) else answer.status


async def oversized_head(client: Client) -> int | str | None:
    """16 MB of a header."""
    return await request(client, b"GET /ws HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 16_000_000)


async def slow_head(client: Client) -> int | str | None:
    """A byte a second, to hold a connection for nothing."""
    begun = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(dribble, client, [bytes([byte]) for byte in upgrade()], 1.0)
        data = await client.all()
        nursery.cancel_scope.cancel()
    return "for long" if trio.current_time() - begun > 7 else status(data)


async def no_head(client: Client) -> int | str | None:
    """A connection, and nothing at all."""
    return status(await client.all())


async def inside(client: Client, *frames: bytes) -> None:
    await client.upgrade()
    await client.send(command(1, "hello"), *frames)
    await client.more(5)


async def million_bytes(client: Client) -> int | str | None:
    """1 MB of `{},{},...`, which takes a parser 25 times as much."""
    await inside(client, frame(TEXT, b"[" + b"{}," * 350_000 + b"{}]"))
    return client.code


async def deep(client: Client) -> int | str | None:
    """Brackets without end, for a parser that recurses."""
    await inside(client, frame(TEXT, b"[" * 60_000))
    return client.messages[-1]["error"]["code"]  # type: ignore[no-any-return]


async def not_a_number(client: Client) -> int | str | None:
    """A number that is none, and would come out again where JSON is read strictly."""
    await inside(client, frame(TEXT, b'{"jsonrpc":"2.0","id":2,"method":"ping","params":{"x":NaN}}'))
    return client.messages[-1]["error"]["code"]  # type: ignore[no-any-return]


async def surrogate(client: Client) -> int | str | None:
    """Half a character, which nobody can send on."""
    await inside(client, frame(TEXT, b'{"jsonrpc":"2.0","id":2,"method":"ping","params":{"x":"\\ud800"}}'))
    return client.messages[-1]["error"]["code"]  # type: ignore[no-any-return]


async def surrogate_in_utf8(client: Client) -> int | str | None:
    """The same in bytes."""
    await inside(client, frame(TEXT, b'{"x":"\xed\xa0\x80"}'))
    return client.code


async def empty_fragments(client: Client) -> int | str | None:
    """Fragments without bytes, for ever: 6 bytes each that cost the server a hundred."""
    await client.upgrade()
    await client.send(frame(TEXT, fin=False), *[frame(0, fin=False) * 1000] * 100)
    await client.more(5)
    return client.code


async def pings(client: Client) -> int | str | None:
    """Pings, which have to be answered each."""
    await client.upgrade()
    await client.send(*[frame(PING, b"x" * 125) * 100] * 100)
    await client.more(5)
    return client.code


async def huge_length(client: Client) -> int | str | None:
    """A frame that says it has 4 EiB."""
    await client.upgrade()
    await client.send(frame(TEXT, announced=2**62))
    await client.more(5)
    return client.code


async def silent(client: Client) -> int | str | None:
    """A WebSocket, and no word."""
    await client.upgrade()
    await client.all()
    return client.code


async def plain_http(client: Client) -> int | str | None:
    """A form of another site that posts into the port."""
    raw = head("/ws", ("Origin", "https://evil.example"), ("Content-Length", "9"), method="POST", body=b"{} {} {} ")
    return await request(client, raw)


async def smuggled(client: Client) -> int | str | None:
    """Two lengths, of which one server reads one and another the other."""
    raw = head("/session", ("Content-Length", "0"), ("Transfer-Encoding", "chunked"), method="POST")
    return await request(client, raw.replace(b"Host", b"Content-Length: 44\r\nHost"))


ATTACKS: list[tuple[Callable[[Client], Awaitable[int | str | None]], int]] = [
    (foreign_origin, 403),
    (rebound_host, 421),
    (no_token, 401),
    (wrong_token, 401),
    (token_in_the_query, 401),
    (oversized_head, 431),
    (slow_head, 408),
    (no_head, 408),
    (million_bytes, 1009),
    (deep, -32700),
    (not_a_number, -32700),
    (surrogate, -32700),
    (surrogate_in_utf8, 1007),
    (empty_fragments, 1009),
    (pings, 4014),
    (huge_length, 1009),
    (silent, 4501),
    (plain_http, 405),
    (smuggled, 400),
]


@pytest.mark.parametrize(("attack", "expected"), ATTACKS, ids=[attack.__name__ for attack, _ in ATTACKS])
async def test_an_attack(
    attack: Callable[[Client], Awaitable[int | str | None]],
    expected: int,
    autojump_clock: Clock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Each is stopped with what it has earned, costs no other client anything, and puts no secret into a log."""
    with caplog.at_level(logging.DEBUG):
        async with a_gateway() as gateway, a_client(gateway, address="198.51.100.1") as other:
            await inside(other)
            async with a_client(gateway) as client:
                got = await attack(client)
            await other.send(command(2, "ping"))
            await other.more(1)

    assert expected == got
    assert {"jsonrpc": "2.0", "id": 2, "result": {}} == other.messages[-1]
    assert TOKEN not in caplog.text
    assert [] == [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_an_expired_ticket(autojump_clock: Clock) -> None:
    """A ticket out of somebody's history, after five minutes."""
    async with a_gateway() as gateway:
        body = b'{"ticket":"%s"}' % gateway.ticket().encode()
        fields = (
            ("Origin", "http://localhost"),
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(body))),
        )
        await trio.sleep(301)
        async with a_client(gateway) as client:
            got = await request(client, head("/session", *fields, method="POST", body=body))

    assert 401 == got


async def test_a_client_that_never_reads(autojump_clock: Clock) -> None:
    """Its answers fill the buffers of the system, and then its ten seconds run: it is dropped, and nobody waits for it."""
    async with a_gateway(pace=Pace(send_seconds=10)) as gateway, a_client(gateway, address="198.51.100.1") as other:
        await inside(other)
        before = living()
        begun = trio.current_time()
        async with trio.open_nursery() as nursery:
            client = dial(gateway, nursery, room=900)
            await client.send(upgrade(), command(1, "hello"))
            for id in range(2, 20):
                await client.send(command(id, "agent.list"))
                await trio.sleep(0.05)
            await other.send(command(2, "ping"))
            await other.more(1)
        took = trio.current_time() - begun

        assert {"jsonrpc": "2.0", "id": 2, "result": {}} == other.messages[-1]
        assert took <= 14
        assert before == living()


@attrs.frozen
class Flood:
    """How many of so many got in."""

    inside: int
    turned_away: int


async def flood(gateway: Gateway, count: int) -> Flood:
    async with trio.open_nursery() as nursery:
        clients = [dial(gateway, nursery) for _ in range(count)]
        for client in clients:
            await client.send(upgrade())
        for client in clients:
            await client.more(0.001)
        got = [bytes(client.got) for client in clients]
        nursery.cancel_scope.cancel()
    return Flood(sum(b" 101 " in data for data in got), sum(b" 503 " in data for data in got))


async def test_a_flood_of_one_address(autojump_clock: Clock) -> None:
    """So many connections of one address are served as one may have; those of others are, still."""
    async with a_gateway() as gateway:
        got = await flood(gateway, 300)
        async with a_client(gateway, address="198.51.100.1") as client:
            page = await request(client, head("/healthz"))

    assert Flood(inside=100, turned_away=200) == got
    assert 200 == page
