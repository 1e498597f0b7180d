"""A cable between a client and a gateway, in memory: it can be cut at any byte, stalled, and trickle."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable

import attrs
import trio
import trio.testing

from actors.client import Client, ClientPace, connect
from tests.actors.gateway.wired import Hall

Serve = Callable[[trio.abc.Stream], Awaitable[None]]
"""What stands at the other end."""
URL = "ws://localhost"


@attrs.define(eq=False)
class End(trio.abc.Stream):
    """The client's end of one connection."""

    stream: trio.abc.Stream
    down_left: int | None
    """How many bytes come through to the client until it is cut; `None`: all."""
    up_left: int | None
    """How many bytes come through to the server until it is cut; `None`: all."""
    most: int
    """How many bytes come at a time."""
    stalled: trio.Event | None = None
    """Set when what was stalled goes on."""
    lossy: bool = False
    """The next that comes down is lost, and the connection with it."""

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        if self.stalled is not None:
            await self.stalled.wait()
        room = min(self.most, max_bytes or self.most, self.most if self.down_left is None else self.down_left)
        if room <= 0:
            await self.cut()
            raise trio.BrokenResourceError("cut")
        data = bytes(await self.stream.receive_some(room))
        if self.lossy:
            await self.cut()
            raise trio.BrokenResourceError("cut")
        if self.down_left is not None:
            self.down_left -= len(data)
        return data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        if self.stalled is not None:
            await self.stalled.wait()
        if self.up_left is not None and len(data) > self.up_left:
            await self.stream.send_all(data[: self.up_left])
            await self.cut()
            raise trio.BrokenResourceError("cut")
        if self.up_left is not None:
            self.up_left -= len(data)
        await self.stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self.stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self.stream.aclose()

    async def cut(self) -> None:
        """Both ends see it break."""
        await trio.aclose_forcefully(self.stream)


@attrs.define(eq=False)
class Cable:
    """Opens connections: the n-th with the n-th of the faults, the later ones without any."""

    serve: Serve
    nursery: trio.Nursery
    down: list[int | None] = attrs.field(factory=list)
    up: list[int | None] = attrs.field(factory=list)
    most: int = 65_536
    unplugged: bool = False
    """No connection can be made."""
    ends: list[End] = attrs.field(factory=list)
    tried_at: list[float] = attrs.field(factory=list)

    async def open(self) -> trio.abc.Stream:
        self.tried_at.append(trio.current_time())
        await trio.lowlevel.checkpoint()
        if self.unplugged:
            raise OSError("the cable is not plugged in")
        mine, theirs = trio.testing.memory_stream_pair()
        self.nursery.start_soon(self.serve, theirs)
        number = len(self.ends)
        down = self.down[number] if number < len(self.down) else None
        up = self.up[number] if number < len(self.up) else None
        self.ends.append(End(mine, down, up, self.most))
        return self.ends[-1]

    async def cut(self) -> None:
        """Cut the connection that there is."""
        await self.ends[-1].cut()


def cable_to(hall: Hall) -> Cable:
    """A cable to a hall's gateway."""
    front = hall.gateway.front
    assert front is not None

    async def serve(stream: trio.abc.Stream) -> None:
        await front.serve(stream, "127.0.0.1")

    return Cable(serve, hall.nursery)


@contextlib.asynccontextmanager
async def client_of(
    cable: Cable,
    *,
    token: str | None = None,
    pace: ClientPace | None = None,
    chance: Callable[[], float] = lambda: 1.0,
) -> AsyncGenerator[Client, None]:
    """A client at the end of a cable; its waits are as long as they can be."""
    async with connect(URL, token=token, pace=pace, open_stream=cable.open, chance=chance) as client:
        yield client
