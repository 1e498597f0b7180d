"""Opening a gateway and closing it: what is refused at start, who is let in, and how clients are told that it ends."""

from __future__ import annotations

import logging
import socket as sockets

import pytest
import trio
import trio.testing

from actors import open_runtime
from actors.gateway import Access, Gateway, Pace, Principal, open_gateway
from actors.gateway._door import Admitted
from actors.gateway._watched import WatchedStream
from protocol.errors import SpecError
from tests.actors.gateway.raw import (
    OFFER,
    TEXT,
    TOKEN,
    UPGRADE,
    Client,
    a_client,
    a_gateway,
    access,
    command,
    dial,
    frame,
    head,
    parse_answer,
    upgrade,
)

Clock = trio.testing.MockClock


async def test_a_token_of_its_own(autojump_clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """Without tokens one is made: it lets in, others do not, and it is shown nowhere."""
    with caplog.at_level(logging.DEBUG, logger="onward"):
        async with a_gateway(tokens=None) as gateway, a_gateway(tokens=None) as other:
            assert gateway.token is not None
            assert other.token is not None
            told = []
            for token in (gateway.token, other.token):
                async with a_client(gateway) as client:
                    told.append((await client.upgrade(("Authorization", f"Bearer {token}"))).status)

    assert [101, 401] == told
    assert len(gateway.token) >= 32
    assert gateway.token not in f"{gateway!r}{gateway.access!r}{gateway.front!r}{caplog.text}"


async def test_tokens_that_are_given(autojump_clock: Clock) -> None:
    """With tokens none is made."""
    async with a_gateway() as gateway:
        assert gateway.token is None


async def test_open_to_all(autojump_clock: Clock) -> None:
    """No credential is asked for; pages of other origins stay out."""
    async with a_gateway(tokens=None, open_to_all=True) as gateway:
        token = gateway.token
        async with a_client(gateway) as client:
            near = await client.ask_upgrade()
        async with a_client(gateway) as client:
            far = await client.ask(upgrade(("Origin", "https://evil.example")))

    assert (None, 101, 403) == (token, near.status, far.status)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.0.2.1", "example.org", "localhost.example.org"])
@pytest.mark.parametrize("open_to_all", [False, True])
async def test_an_address_that_others_reach(host: str, open_to_all: bool) -> None:
    """It needs tokens, and none of them is let go without: it is refused before anything listens."""
    async with open_runtime() as runtime:
        with pytest.raises(SpecError, match="can be reached by others"):
            async with open_gateway(runtime, host=host, port=0, open_to_all=open_to_all):
                pass
        if open_to_all:
            with pytest.raises(SpecError, match="can be reached by others"):
                async with open_gateway(runtime, host=host, port=0, open_to_all=True, tokens=access()):
                    pass


async def test_an_address_that_others_reach_with_tokens() -> None:
    """With tokens it is listened on."""
    async with a_gateway(host="0.0.0.0") as gateway:
        assert gateway.address.startswith("http://0.0.0.0:")


async def test_tokens_and_open_to_all() -> None:
    """One contradicts the other."""
    with pytest.raises(SpecError, match="not both"):
        async with a_gateway(open_to_all=True):
            pass


async def test_a_port_in_use() -> None:
    """It is named, with what to do; nothing is left listening."""
    async with a_gateway() as gateway:
        port = gateway.addresses[0][1]
        with pytest.raises(
            SpecError, match=f"port {port} of '127.0.0.1' cannot be listened on: Address already in use"
        ):
            async with a_gateway(port=port):
                pass


async def test_an_address_of_somebody_else() -> None:
    """It is named, and why it cannot be listened on."""
    with pytest.raises(SpecError, match="port 0 of '192.0.2.1' cannot be listened on: Cannot assign"):
        async with a_gateway(host="192.0.2.1"):
            pass


@pytest.mark.parametrize("port", [-1, 65_536, 70_000])
async def test_a_port_that_is_none(port: int) -> None:
    """The system would take another one in its place, without a word."""
    with pytest.raises(SpecError, match=f"port={port} is none"):
        async with a_gateway(port=port):
            pass


@pytest.mark.parametrize("setting", [{"hosts": ["a:1"]}, {"origins": ["a"]}])
async def test_a_setting_that_is_wrong(setting: dict[str, list[str]]) -> None:
    """It is told before anything listens."""
    with pytest.raises(SpecError, match="one is"):
        async with a_gateway(**setting):
            pass


async def test_what_fails_inside_comes_out_as_itself(autojump_clock: Clock) -> None:
    """An error of the block is in no group, and the gateway is closed before it comes out."""
    with pytest.raises(ZeroDivisionError):
        async with a_gateway() as gateway:
            1 / 0  # noqa: B018

    assert not gateway.ready


async def test_it_listens_when_the_block_begins() -> None:
    """A client that connects at once, over TCP, is served; its socket sends at once, and is kept alive."""
    async with open_runtime() as runtime, open_gateway(runtime, port=0, tokens=access()) as gateway:
        assert gateway.front is not None
        served, options = gateway.front.upgrade, []

        async def look(stream: WatchedStream, admitted: Admitted) -> None:
            assert isinstance(stream.stream, trio.SocketStream)
            for level, option in (
                (sockets.SOL_SOCKET, sockets.SO_KEEPALIVE),
                (sockets.IPPROTO_TCP, sockets.TCP_NODELAY),
            ):
                options.append(bool(stream.stream.getsockopt(level, option)))
            await served(stream, admitted)

        gateway.front.upgrade = look
        async with await trio.open_tcp_stream("127.0.0.1", gateway.addresses[0][1]) as stream:
            client = Client(stream)
            answer = await client.upgrade()
            counted = dict(gateway.front.crowd.by_address)
        async with await trio.open_tcp_stream("127.0.0.1", gateway.addresses[0][1]) as stream:
            page = await Client(stream).ask(head("/healthz", host=gateway.address.removeprefix("http://")))

    assert (101, 200) == (answer.status, page.status)
    assert [True, True] == options
    assert {"127.0.0.1": 1} == counted


async def test_localhost_has_two_addresses() -> None:
    """Where a name has several and any free port is asked for, each of the ports is its own."""
    async with a_gateway(host="localhost") as gateway:
        told = []
        for host, port in gateway.addresses:
            async with await trio.open_tcp_stream(host, port) as stream:
                told.append((await Client(stream).ask(head("/healthz", host=f"localhost:{port}"))).status)

    assert [200] * len(gateway.addresses) == told


async def test_the_port_closes_at_once() -> None:
    """Once it is being closed nobody gets in any more, while those inside are still being told."""
    async with a_gateway() as gateway:
        port = gateway.addresses[0][1]
        gateway.close()
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(OSError, match="all attempts to connect"):
            await trio.open_tcp_stream("127.0.0.1", port)

    assert not gateway.ready


# Closing


async def connect(gateway: Gateway, nursery: trio.Nursery) -> Client:
    """A client that has said hello."""
    client = dial(gateway, nursery)
    await client.upgrade()
    await client.send(command(1, "hello"))
    await client.more(0.1)
    return client


async def follow(client: Client, ends: list[float]) -> None:
    """Answer the close frame, as a client does; and note when it came."""
    while client.code is None and (data := await client.stream.receive_some(65_536)):
        client.got += data
    ends.append(trio.current_time())
    await client.send(b"\x88\x80\x00\x00\x00\x00")
    await client.all()


@pytest.mark.parametrize(("restarting", "code"), [(False, 1001), (True, 1012)])
@pytest.mark.parametrize("count", [1, 100])
async def test_clients_are_told(restarting: bool, code: int, count: int, autojump_clock: Clock) -> None:
    """Each gets 1001, or 1012 where the server comes back; one after the other, and within ten seconds."""
    ends: list[float] = []
    async with trio.open_nursery() as nursery:
        async with a_gateway(restarting=restarting) as gateway:
            clients = [await connect(gateway, nursery) for _ in range(count)]
            for client in clients:
                nursery.start_soon(follow, client, ends)
            begun = trio.current_time()
        took = trio.current_time() - begun

    assert [code] * count == [client.code for client in clients]
    assert count == len(set(ends))
    assert took <= 2
    assert {} == gateway.connections


async def test_a_client_that_does_not_answer(autojump_clock: Clock) -> None:
    """It is told, and TCP is dropped: the end waits for nobody for ever."""
    async with trio.open_nursery() as nursery:
        async with a_gateway() as gateway:
            silent = await connect(gateway, nursery)
            await dial(gateway, nursery, room=600).send(upgrade(), *[command(id, "ping") for id in range(20)])
            half = dial(gateway, nursery)
            await half.send(upgrade()[:30])
            begun = trio.current_time()
        took = trio.current_time() - begun
        await silent.all()

    assert 1001 == silent.code
    assert took <= 7


async def test_a_cancel_tells_clients_too() -> None:
    """Whoever cancels the block around it, each client is told before it ends: here over TCP."""
    clients: list[Client] = []
    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            async with a_gateway() as gateway:
                client = Client(await trio.open_tcp_stream("127.0.0.1", gateway.addresses[0][1]))
                clients.append(client)
                await client.upgrade()
                nursery.start_soon(follow, client, [])
                scope.cancel()
                await trio.sleep_forever()
    for client in clients:
        await client.stream.aclose()

    assert scope.cancelled_caught
    assert [1001] == [client.code for client in clients]


async def test_what_is_told_arrives() -> None:
    """A reason is not lost over what a client is still sending: a socket that is closed with unread bytes is reset."""
    async with a_gateway() as gateway:
        told = []
        for sent in (frame(TEXT, b"x" * 200_000), frame(3) + b"x" * 200_000, frame(TEXT, b"\xff" * 60_000) * 3):
            async with await trio.open_tcp_stream("127.0.0.1", gateway.addresses[0][1]) as stream:
                client = Client(stream)
                await client.upgrade()
                await client.send(sent)
                await client.all()
                told.append(client.code)
        async with await trio.open_tcp_stream("127.0.0.1", gateway.addresses[0][1]) as stream:
            answer = await Client(stream).ask(b"GET / HTTP/1.1\r\nX: " + b"x" * 200_000)

    assert [1009, 1002, 1007] == told
    assert 431 == answer.status


async def test_who_comes_while_it_closes(autojump_clock: Clock) -> None:
    """A request that is only being made then is 503."""
    async with trio.open_nursery() as nursery:
        async with a_gateway() as gateway:
            inside = await connect(gateway, nursery)
            late = dial(gateway, nursery)
            await late.send(upgrade()[:30])
            gateway.close()
            await trio.testing.wait_all_tasks_blocked()
            await late.send(upgrade()[30:])
            answer = parse_answer(await late.all())
        await inside.all()

    assert (503, "1") == (answer.status, answer.headers["retry-after"])


# Revoked


async def test_who_is_revoked_goes_at_its_next_heartbeat(autojump_clock: Clock) -> None:
    """4501 within the time between two heartbeats, by a token or by a cookie; others stay."""
    known = Access.of({TOKEN: Principal("tester"), "token-of-the-tests-0002": Principal("other")})
    async with a_gateway(tokens=known, pace=Pace(heartbeat_seconds=20)) as gateway, trio.open_nursery() as nursery:
        mine = await connect(gateway, nursery)
        theirs = dial(gateway, nursery)
        await theirs.upgrade(("Authorization", "Bearer token-of-the-tests-0002"))
        await theirs.send(command(1, "hello"))
        known.revoke("tester")
        begun = trio.current_time()
        with trio.fail_after(25):
            await mine.all()
        took = trio.current_time() - begun
        await theirs.more(1)
        nursery.cancel_scope.cancel()

    assert (4501, None) == (mine.code, theirs.code)
    assert took <= 22


async def test_an_upgrade_without_a_credential_is_refused_even_so(autojump_clock: Clock) -> None:
    """A gateway whose tokens are none lets nobody in but by a ticket."""
    async with a_gateway(tokens=Access()) as gateway, a_client(gateway) as client:
        answer = await client.ask(head("/ws", *UPGRADE, OFFER))

    assert 401 == answer.status
