"""What the same deliveries cost with the WebSocket library alone: the least that a gateway on it could take.

Each client has a queue, and a writer that sends what is in it, as one frame in a window. Events are encoded once.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator

import attrs
import trio
import trio_websocket

__all__ = ("Windowed", "open_windowed")

HEADS = b'{"jsonrpc":"2.0","method":"events","params":{"events":['


@attrs.define(eq=False)
class _Client:
    queue: list[bytes] = attrs.field(factory=list)
    news: trio.Event = attrs.field(factory=trio.Event)


@attrs.define(eq=False)
class Windowed:
    """A server that sends everybody everything."""

    window_seconds: float
    clients: list[_Client] = attrs.field(factory=list)
    port: int = 0

    def emit(self, data: bytes) -> None:
        """Queue an event for all."""
        for client in self.clients:
            client.queue.append(data)
            client.news.set()

    async def serve(self, stream: trio.SocketStream) -> None:
        """Serve one client."""
        with contextlib.suppress(trio_websocket.ConnectionClosed, BaseExceptionGroup):
            async with trio.open_nursery() as nursery:
                request = await trio_websocket.wrap_server_stream(nursery, stream)
                socket = await request.accept(subprotocol="onward.v1")
                client = _Client()
                self.clients.append(client)
                nursery.start_soon(self._write, socket, client)
                while True:
                    await socket.get_message()
                    await socket.send_message('{"jsonrpc":"2.0","id":1,"result":{}}')

    async def _write(self, socket: trio_websocket.WebSocketConnection, client: _Client) -> None:
        while True:
            await client.news.wait()
            client.news = trio.Event()
            queue, client.queue = client.queue, []
            with trio.move_on_after(10):
                await socket.send_message((HEADS + b",".join(queue) + b"]}}").decode())
            await trio.sleep(self.window_seconds)


@contextlib.asynccontextmanager
async def open_windowed(window_seconds: float) -> AsyncGenerator[Windowed, None]:
    """Serve on any free port."""
    server = Windowed(window_seconds)
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    server.port = listeners[0].socket.getsockname()[1]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, server.serve, listeners)
        try:
            yield server
        finally:
            nursery.cancel_scope.cancel("done")
