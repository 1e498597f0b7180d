"""A server of the tests' own, in which every byte and every silence is chosen, in memory or on a real socket."""

from __future__ import annotations

import json
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias

import attrs
import httpcore
import httpx
import trio
import trio.testing

from protocol.model import CallDelta, ModelEvent, ModelRequest, ReasoningDelta, RequestSent, TextDelta
from protocol.turns import UserMessage

HELLO = ModelRequest(messages=[UserMessage("Hello?")])


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> str:
    """One event of a Chat Completions stream."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return event({"id": "r1", "choices": [choice], **more})


def event(value: Any) -> str:
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n"


def piece(**entry: Any) -> str:
    """One event with one fragment of a tool call."""
    return pieces(entry)


def pieces(*entries: dict[str, Any]) -> str:
    made = []
    for entry in entries:
        function = {key: entry.pop(key) for key in ("name", "arguments") if key in entry}
        made.append({**entry, "function": function})
    return chunk({"tool_calls": made})


DONE = "data: [DONE]\n\n"
STOP = chunk(finish="stop") + DONE
HI = [chunk({"role": "assistant", "content": "He"}), chunk({"content": "llo"}), STOP]


@attrs.frozen
class Request:
    """What the client sent."""

    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@attrs.frozen
class Pause:
    """Silence in the middle of a reply."""

    seconds: float


Step: TypeAlias = str | bytes | Pause
Reply: TypeAlias = Callable[["Server", trio.abc.Stream], Awaitable[bool]]
"""Writes one reply; says whether the connection is kept."""


def stream(*steps: Step, end: str = "done", content_type: str | None = "text/event-stream") -> Reply:
    """A streamed reply; each step is one chunk. `end`: done | close | cut | reset | hang.

    `close` has no framing, so that its end is clean; `cut` breaks off between two chunks.
    """
    framed = end != "close"

    async def write(server: Server, connection: trio.abc.Stream) -> bool:
        framing = "transfer-encoding: chunked" if framed else "connection: close"
        kind = f"content-type: {content_type}\r\n" if content_type else ""
        await connection.send_all(f"HTTP/1.1 200 OK\r\n{kind}{framing}\r\n\r\n".encode())
        for step in steps:
            if isinstance(step, Pause):
                await trio.sleep(step.seconds)
                continue
            data = step.encode() if isinstance(step, str) else step
            await connection.send_all(b"%x\r\n%s\r\n" % (len(data), data) if framed else data)
        if end == "done":
            await connection.send_all(b"0\r\n\r\n")
            return True
        if end == "reset":
            assert isinstance(connection, trio.SocketStream)
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if end == "hang":
            await server.wait_gone(connection)
        return False

    return write


def answer(status: int, body: Any = "", headers: Iterable[str] = (), content_type: str = "application/json") -> Reply:
    """A whole reply with a length."""
    data = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()

    async def write(_server: Server, connection: trio.abc.Stream) -> bool:
        head = [f"HTTP/1.1 {status} X", f"content-type: {content_type}", f"content-length: {len(data)}", *headers]
        await connection.send_all("\r\n".join(head).encode() + b"\r\n\r\n" + data)
        return True

    return write


def raw(*steps: Step) -> Reply:
    """Whatever bytes, and then the end."""

    async def write(_server: Server, connection: trio.abc.Stream) -> bool:
        for step in steps:
            if isinstance(step, Pause):
                await trio.sleep(step.seconds)
            else:
                await connection.send_all(step.encode() if isinstance(step, str) else step)
        return False

    return write


@attrs.define(eq=False)
class Server:
    """Answers requests with its `replies`, in turn."""

    replies: list[Reply] = attrs.field(factory=list)
    make_reply: Callable[[], Reply] | None = None
    """Makes each reply, in place of `replies`."""
    requests: list[Request] = attrs.field(factory=list)
    connections: int = 0
    """Connections that were opened."""
    gone: list[float] = attrs.field(factory=list)
    """When clients closed a connection while a reply hung."""

    async def serve(self, connection: trio.abc.Stream) -> None:
        self.connections += 1
        try:
            while await self._serve_one(connection):
                pass
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            await trio.aclose_forcefully(connection)

    async def _serve_one(self, connection: trio.abc.Stream) -> bool:
        data = b""
        while b"\r\n\r\n" not in data:
            more = await connection.receive_some()
            if not more:
                return False
            data += more
        head, _, body = bytes(data).partition(b"\r\n\r\n")
        line, *rest = head.decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (header.partition(": ") for header in rest)}
        while len(body) < int(headers.get("content-length", "0")):
            body += await connection.receive_some()
        request = Request(line, headers, body)
        self.requests.append(request)
        return await self.reply_to(request)(self, connection)

    def reply_to(self, request: Request) -> Reply:
        """What a request is answered with; for servers that look at it."""
        return self.make_reply() if self.make_reply is not None else self.replies.pop(0)

    async def wait_gone(self, connection: trio.abc.Stream) -> None:
        while await connection.receive_some():
            pass
        self.gone.append(trio.current_time())


class MemoryStream(httpcore.AsyncNetworkStream):
    def __init__(self, stream: trio.abc.Stream, network: Network) -> None:
        self._stream = stream
        self._network = network
        self._closed = False

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            return bytes(await self._stream.receive_some(max_bytes))
        except (trio.ClosedResourceError, trio.BrokenResourceError) as error:
            raise httpcore.ReadError(str(error)) from error

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        try:
            await self._stream.send_all(buffer)
        except (trio.ClosedResourceError, trio.BrokenResourceError) as error:
            raise httpcore.WriteError(str(error)) from error

    async def aclose(self) -> None:
        self._network.closed += not self._closed
        self._closed = True
        await trio.aclose_forcefully(self._stream)
        self._network.on_close()

    def get_extra_info(self, info: str) -> Any:
        return False if info == "is_readable" else None


@attrs.define(eq=False)
class Network(httpcore.AsyncNetworkBackend):
    """Connects every address to `server`, in memory, so that time is virtual."""

    nursery: trio.Nursery
    server: Server = attrs.field(factory=Server)
    connect_seconds: float = 0.0
    refuse: bool = False
    closed: int = 0
    on_close: Callable[[], None] = lambda: None

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        await trio.sleep(self.connect_seconds)
        if self.refuse:
            raise httpcore.ConnectError("[Errno 111] Connection refused")
        ours, theirs = trio.testing.memory_stream_pair()
        self.nursery.start_soon(self.server.serve, theirs)
        return MemoryStream(ours, self)

    def transport(self, *, max_connections: int = 100) -> httpx.AsyncHTTPTransport:
        transport = httpx.AsyncHTTPTransport(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), trust_env=False)
        transport._pool = httpcore.AsyncConnectionPool(network_backend=self, max_connections=max_connections)
        return transport


@attrs.define(eq=False)
class Heard:
    """What a model emitted."""

    events: list[ModelEvent] = attrs.field(factory=list)

    def __call__(self, event: ModelEvent) -> None:
        self.events.append(event)

    @property
    def sent(self) -> int:
        return sum(isinstance(event, RequestSent) for event in self.events)

    @property
    def text(self) -> str:
        return "".join([event.text for event in self.events if isinstance(event, TextDelta)])

    @property
    def reasoning(self) -> str:
        return "".join([event.text for event in self.events if isinstance(event, ReasoningDelta)])

    @property
    def calls(self) -> list[tuple[str, str]]:
        """Name and arguments of each call, put together by the rules that deltas follow."""
        made: list[tuple[str, str]] = []
        for event in self.events:
            if isinstance(event, CallDelta):
                if event.index == len(made):
                    assert event.name
                    made.append((event.name, event.arguments))
                else:
                    assert not event.name
                    name, arguments = made[event.index]
                    made[event.index] = (name, arguments + event.arguments)
        return made
