"""Nothing is left: of connections that are dropped in every way, by the thousand; and of streams that fail at any point."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing
from hypothesis import example, given, settings
from hypothesis import strategies as st

from actors.gateway import DoorLimits, Gateway
from tests.actors.gateway.raw import (
    TEXT,
    Client,
    SocketLike,
    a_client,
    a_gateway,
    close,
    command,
    frame,
    living,
    upgrade,
)

MANY = DoorLimits(handshakes_per_second=100_000, handshakes_burst=100_000)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def without_data(client: Client) -> None:
    """Connects, and goes."""


async def half_a_head(client: Client) -> None:
    """Goes in the middle of the request."""
    await client.send(upgrade()[:40])


async def after_the_upgrade(client: Client) -> None:
    """Is let in, and goes without a word."""
    await client.upgrade()


async def in_a_frame(client: Client) -> None:
    """Goes in the middle of a command."""
    await client.upgrade()
    await client.send(command(1, "hello"), command(2, "ping")[:-3])


async def in_an_answer(client: Client) -> None:
    """Goes while it is being answered."""
    await client.upgrade()
    await client.send(command(1, "hello"), *[command(id, "agent.list") for id in range(2, 20)])


async def after_a_close(client: Client) -> None:
    """Goes as one should."""
    await client.upgrade()
    await client.send(command(1, "hello"), close(1000))
    await client.all()


WAYS: list[Callable[[Client], Awaitable[None]]] = [
    without_data,
    half_a_head,
    after_the_upgrade,
    in_a_frame,
    in_an_answer,
    after_a_close,
]


async def drop(gateway: Gateway, way: Callable[[Client], Awaitable[None]], *, reset: bool) -> None:
    """One connection over TCP, ended by a FIN or by a reset."""
    async with await trio.open_tcp_stream("127.0.0.1", gateway.addresses[0][1]) as stream:
        await way(Client(stream))
        if reset:
            stream.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_LINGER, struct.pack("ii", 1, 0))


async def drop_many(count: int) -> None:
    async with a_gateway(door_limits=MANY) as gateway:
        for way in WAYS:  # once, for what is only made once
            await drop(gateway, way, reset=False)
        assert gateway.front is not None
        await settle(gateway)
        before = living(), open_files()
        for _ in range(count // 20):
            async with trio.open_nursery() as nursery:
                for at in range(20):
                    nursery.start_soon(functools.partial(drop, gateway, WAYS[at % 6], reset=at % 4 == 3))
        await settle(gateway)
        after = living(), open_files()
        left = dict(gateway.connections), dict(gateway.front.crowd.by_address)

    assert before == after
    assert ({}, {}) == left


async def settle(gateway: Gateway) -> None:
    """Wait until the gateway has noticed that nobody is there."""
    assert gateway.front is not None
    with trio.fail_after(20):
        while gateway.front.crowd.by_address:  # noqa: ASYNC110  nobody says when the last connection ends
            await trio.sleep(0.01)
        await trio.testing.wait_all_tasks_blocked(0.01)


async def test_connections_that_are_dropped() -> None:
    """Dropped in six ways, each by FIN and by reset, they leave no task and no socket."""
    await drop_many(60)


@pytest.mark.slow
async def test_connections_that_are_dropped_by_the_thousand() -> None:
    """The same a thousand times; `ONWARD_SWEEP=full` makes it five thousand."""
    await drop_many(5_000 if os.environ.get("ONWARD_SWEEP") == "full" else 1_000)


@attrs.frozen
class Faults:
    """How a stream misbehaves."""

    piece: int = 65_536
    """The most bytes that are received at once."""
    cut_after: int | None = None
    """After so many bytes that were received the stream is at its end."""
    stall_after: int | None = None
    """After so many bytes that were received nothing comes any more."""
    fail_send: int | None = None
    """This send fails."""
    stall_send: int | None = None
    """This send does not end."""


@attrs.define(eq=False)
class Faulty(SocketLike):
    """The server's side of a connection, with faults."""

    faults: Faults = attrs.field(factory=Faults)
    _received: int = 0
    _sent: int = 0
    _closed: trio.Event = attrs.field(factory=trio.Event)

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        if self.faults.cut_after is not None and self._received >= self.faults.cut_after:
            await trio.lowlevel.checkpoint()
            return b""
        if self.faults.stall_after is not None and self._received >= self.faults.stall_after:
            await self._closed.wait()
            raise trio.ClosedResourceError
        data = await super().receive_some(min(max_bytes or 65_536, self.faults.piece))
        self._received += len(data)
        return data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        self._sent += 1
        if self._sent == self.faults.fail_send:
            raise trio.BrokenResourceError
        if self._sent == self.faults.stall_send:
            await self._closed.wait()
            raise trio.ClosedResourceError
        await super().send_all(data)

    async def send_eof(self) -> None:
        if self.faults.fail_send is not None and self._sent >= self.faults.fail_send:
            raise trio.BrokenResourceError
        await super().send_eof()

    async def aclose(self) -> None:
        self._closed.set()
        await super().aclose()


CONVERSATION = [
    upgrade(),
    command(1, "hello"),
    command(2, "agent.list"),
    frame(TEXT, b'{"jsonrpc":', fin=False),
    frame(9, b"ping"),
    frame(0, b'"2.0","id":3,"method":"ping"}'),
    frame(TEXT, b"no JSON"),
    close(1000),
]
SIZE = sum(len(part) for part in CONVERSATION)


def maybe(most: int) -> st.SearchStrategy[int | None]:
    return st.none() | st.integers(1, most)


faults = st.builds(
    Faults,
    piece=st.sampled_from([1, 2, 3, 7, 64, 65_536]),
    cut_after=maybe(SIZE),
    stall_after=maybe(SIZE),
    fail_send=maybe(6),
    stall_send=maybe(6),
)


@settings(max_examples=60, deadline=None)
@example(Faults(stall_send=1), CONVERSATION)
@example(Faults(fail_send=1), CONVERSATION)
@example(Faults(stall_send=2), CONVERSATION)
@example(Faults(piece=1), CONVERSATION)
@given(faults, st.sampled_from([[], CONVERSATION[:3], CONVERSATION[:-1], CONVERSATION, [*CONVERSATION, b"\xff" * 9]]))
def test_streams_that_fail(faulty: Faults, sent: list[bytes]) -> None:
    """Wherever a stream is cut, stalls or fails, its connection ends by itself and the server goes on without a trace."""
    trio.run(converse, faulty, sent, clock=trio.testing.MockClock(autojump_threshold=0))


async def converse(faulty: Faults, sent: list[bytes]) -> None:
    noted = Notes()
    logger = logging.getLogger("onward")
    logger.addHandler(noted)
    try:
        async with a_gateway() as gateway:
            assert gateway.front is not None
            before = living()
            ours, theirs = trio.testing.memory_stream_pair()
            with trio.fail_after(120):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(gateway.front.serve, Faulty(theirs, faults=faulty), "192.0.2.1")
                    for part in sent:
                        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                            await ours.send_all(part)
                            await trio.sleep(0.1)
            await trio.testing.wait_all_tasks_blocked()
            after = living()
            left = {**gateway.connections, **gateway.front.crowd.by_address, **gateway.front.crowd.by_principal}
            async with a_client(gateway) as client:
                answer = await client.upgrade()
    finally:
        logger.removeHandler(noted)

    assert before == after
    assert {} == left
    assert 101 == answer.status
    assert [] == noted.errors


class Notes(logging.Handler):
    """Keeps what is logged as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.errors: list[Any] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.errors.append((record.getMessage(), record.exc_info))
