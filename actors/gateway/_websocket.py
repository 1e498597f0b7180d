"""From an upgrade to the end of its WebSocket: the library's part of a connection, and nothing of it outside."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import trio
import trio_websocket
from wsproto.utilities import LocalProtocolError

from protocol.ids import new_id
from protocol.wire import SUBPROTOCOL, CloseCode

from ..logs import bound, get_logger
from ._commands import dispatch
from ._connection import Connection
from ._door import Admitted
from ._metrics import closed_by
from ._session import Session
from ._watched import WatchedStream

if TYPE_CHECKING:
    from ._server import Gateway

__all__ = ("serve_websocket",)

_CLOSE_SECONDS = 1.0
logger = get_logger(__name__)


async def serve_websocket(gateway: Gateway, stream: WatchedStream, admitted: Admitted) -> None:
    """Answer an upgrade and serve the WebSocket. Returns with the stream closed."""
    try:
        async with trio.open_nursery() as nursery:
            with trio.fail_after(gateway.pace.send_seconds):
                request = await trio_websocket.wrap_server_stream(
                    nursery, stream, max_message_size=gateway.limits.message_bytes
                )
                socket = await request.accept(subprotocol=SUBPROTOCOL if admitted.subprotocol else None)
            stream.refusal = functools.partial(_refusal, socket)
            if admitted.subprotocol:
                await _connect(gateway, stream, socket, admitted, nursery)
            else:
                with trio.move_on_after(_CLOSE_SECONDS):
                    await socket.aclose(CloseCode.VERSION, f"offer the subprotocol {SUBPROTOCOL}")
            nursery.cancel_scope.cancel("the connection is closed")
    except* LocalProtocolError:
        pass  # the library answers a ping that comes behind its own close frame, and fails
    except* (trio_websocket.ConnectionClosed, trio.TooSlowError):
        pass  # the client has gone in the middle of the upgrade, or does not read its answer
    finally:
        await stream.aclose()


async def _connect(
    gateway: Gateway,
    stream: WatchedStream,
    socket: trio_websocket.WebSocketConnection,
    admitted: Admitted,
    nursery: trio.Nursery,
) -> None:
    session = Session(new_id("c"), admitted.principal, gateway.limits)
    connection = Connection(
        socket,
        session,
        functools.partial(dispatch, gateway),
        gateway.pace,
        stream.aclose,
        admitted.still,
        gateway.window,
    )
    gateway.connections[session.id] = connection
    with bound(connection=session.id):
        logger.info("connection opened", principal=admitted.principal.name)
        try:
            await connection.serve(nursery)
        finally:
            by = closed_by(connection.left, socket.closed)
            gateway.gone(session.id, by)
            logger.info("connection closed", principal=admitted.principal.name, by=by[0], code=by[1])


def _refusal(socket: trio_websocket.WebSocketConnection) -> tuple[int, str] | None:
    closed = socket.closed
    return None if closed is None else (closed.code, closed.reason or "")
