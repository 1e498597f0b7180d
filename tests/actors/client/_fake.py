"""A server that says what a test wants: for faults that the real one does not have."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import attrs
import trio
import trio_websocket

from protocol.wire import SUBPROTOCOL
from tests.actors.client._cable import Cable

WELCOME: dict[str, Any] = {
    "connection": "c-1",
    "server_time": "2026-01-01T00:00:00Z",
    "heartbeat_seconds": 20.0,
    "limits": {},
    "capabilities": {},
    "principal": "ada",
    "roles": ["observe"],
}
SNAPSHOT: dict[str, Any] = {
    "state": "idle",
    "run": None,
    "step_number": 0,
    "counters": None,
    "usage": None,
    "history": [],
    "children": [],
}


def attached(*, epoch: str = "e1", head: int = 0, recovered: bool = True, snapshot: bool = False) -> dict[str, Any]:
    """The reply to an attach."""
    reply = {"epoch": epoch, "head": head, "oldest": 1, "recovered": recovered, "open_requests": []}
    return {**reply, "snapshot": SNAPSHOT} if snapshot else reply


def text(number: int, *, n: int = 1) -> dict[str, Any]:
    """A delta, or several merged to one."""
    return {"type": "content_delta", "run": "r", "message": "m", "text": f"<{number}>" * n, "n": n}


@attrs.define(eq=False)
class FakeConnection:
    """The server's side of one connection."""

    socket: trio_websocket.WebSocketConnection
    commands: list[dict[str, Any]] = attrs.field(factory=list)
    """All that came, hello left out."""

    async def send(self, *messages: Any) -> None:
        """Send one frame."""
        value = messages[0] if len(messages) == 1 else list(messages)
        await self.socket.send_message(value if isinstance(value, (str, bytes)) else json.dumps(value))

    async def command(self, method: str = "") -> dict[str, Any]:
        """The next command; it must be this one if one is named."""
        command: dict[str, Any] = json.loads(await self.socket.get_message())
        if command["id"] != "hello":
            self.commands.append(command)
        if method and command["method"] != method:
            raise AssertionError(f"{command['method']} came, not {method}")
        return command

    async def welcome(self, **changes: Any) -> None:
        """Let the client in."""
        await self.reply(await self.command("hello"), {**WELCOME, **changes})

    async def reply(self, command: Mapping[str, Any], result: Any) -> None:
        await self.send({"jsonrpc": "2.0", "id": command["id"], "result": result})

    async def refuse(self, command: Mapping[str, Any], word: str, **data: Any) -> None:
        error = {"code": -32010, "message": "not so", "data": {"code": word, "retryable": False, **data}}
        await self.send({"jsonrpc": "2.0", "id": command["id"], "error": error})

    async def events(self, seq: int, *events: Any, agent: str = "a", epoch: str = "e1") -> None:
        params = {"agent": agent, "epoch": epoch, "seq": seq, "events": events}
        await self.send({"jsonrpc": "2.0", "method": "events", "params": params})

    async def heartbeat(self, **heads: int) -> None:
        await self.send({"jsonrpc": "2.0", "method": "heartbeat", "params": {"heads": heads}})

    async def close(self, code: int) -> None:
        await self.socket.aclose(code, "because")

    async def wait(self) -> None:
        """Keep it open, and take what comes."""
        while True:
            await self.command()


Behaviour = Callable[[FakeConnection], Awaitable[None]]


@attrs.define(eq=False)
class FakeServer:
    """Serves the n-th connection by the n-th behaviour, all further ones by the last."""

    behaviours: tuple[Behaviour, ...]
    connections: list[FakeConnection] = attrs.field(factory=list)

    async def serve(self, stream: trio.abc.Stream) -> None:
        async with trio.open_nursery() as nursery:
            request = await trio_websocket.wrap_server_stream(nursery, stream)
            with contextlib.suppress(trio_websocket.ConnectionClosed):  # the client has gone
                connection = FakeConnection(await request.accept(subprotocol=SUBPROTOCOL))
                self.connections.append(connection)
                await self.behaviours[min(len(self.connections), len(self.behaviours)) - 1](connection)
            nursery.cancel_scope.cancel("it is over")
        await trio.aclose_forcefully(stream)


def cable_to_fake(nursery: trio.Nursery, *behaviours: Behaviour) -> tuple[Cable, FakeServer]:
    """A cable to a server that behaves so."""
    server = FakeServer(behaviours)
    return Cable(server.serve, nursery), server
