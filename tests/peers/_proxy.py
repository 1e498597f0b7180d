"""A TCP cable between a client and a server that breaks where a test says."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Sequence
from functools import partial

import attrs
import trio


@attrs.define(eq=False)
class Proxy:
    """Passes bytes on; a WebSocket's n-th connection breaks after the n-th number of bytes that come down."""

    target: int
    cuts: Sequence[int]
    port: int = 0
    connections: int = 0
    """How many asked for a WebSocket."""

    async def pass_on(self, client: trio.SocketStream) -> None:
        """One connection."""
        server = await trio.open_tcp_stream("127.0.0.1", self.target)
        try:
            with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                head = await client.receive_some(65_536)
                left = None
                if b"upgrade: websocket" in head.lower():
                    left = self.cuts[self.connections] if self.connections < len(self.cuts) else None
                    self.connections += 1
                await server.send_all(head)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._copy, client, server, None, nursery.cancel_scope)
                    nursery.start_soon(self._copy, server, client, left, nursery.cancel_scope)
        finally:
            await trio.aclose_forcefully(client)
            await trio.aclose_forcefully(server)

    async def _copy(
        self, source: trio.SocketStream, sink: trio.SocketStream, left: int | None, scope: trio.CancelScope
    ) -> None:
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while data := await source.receive_some(65_536):
                if left is not None and len(data) >= left:
                    await sink.send_all(data[:left])
                    break
                left = None if left is None else left - len(data)
                await sink.send_all(data)
        scope.cancel("one end is closed")


@contextlib.asynccontextmanager
async def open_proxy(target: int, *, cuts: Sequence[int] = ()) -> AsyncGenerator[Proxy, None]:
    """A cable to a port of this machine."""
    proxy = Proxy(target, cuts)
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    proxy.port = listeners[0].socket.getsockname()[1]
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(trio.serve_listeners, proxy.pass_on, listeners))
        yield proxy
        nursery.cancel_scope.cancel("the test is over")
