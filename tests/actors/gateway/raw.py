"""The client's side of the wire by hand: heads, frames, and what comes back; over memory, so that time is virtual."""

from __future__ import annotations

import contextlib
import json
import struct
from collections.abc import AsyncGenerator, Iterable
from typing import Any

import attrs
import trio
import trio.testing

from actors import open_runtime
from actors.gateway import Access, Gateway, Principal, open_gateway

TOKEN = "token-of-the-tests-0001"
KEY = "AAECAwQFBgcICQoLDA0ODw=="
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
ELSEWHERE = "203.0.113.9"


def access() -> Access:
    """One token, of somebody who may do all."""
    return Access.of({TOKEN: Principal("tester")})


@contextlib.asynccontextmanager
async def a_gateway(**options: Any) -> AsyncGenerator[Gateway]:
    """A gateway in front of an empty runtime; it knows `TOKEN`."""
    given = {"tokens": access(), "port": 0, **options}
    async with open_runtime() as runtime, open_gateway(runtime, **given) as gateway:
        await trio.testing.wait_all_tasks_blocked()
        yield gateway


def head(
    path: str = "/ws",
    *headers: tuple[str, str],
    method: str = "GET",
    host: str | None = "localhost",
    body: bytes = b"",
) -> bytes:
    """A request as it stands on the wire."""
    lines = [f"{method} {path} HTTP/1.1", *([f"Host: {host}"] if host is not None else [])]
    lines += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


UPGRADE = (
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", KEY),
)
OFFER = ("Sec-WebSocket-Protocol", "onward.v1")
BEARER = ("Authorization", f"Bearer {TOKEN}")


def upgrade(*headers: tuple[str, str], host: str = "localhost") -> bytes:
    """An upgrade that is in order."""
    return head("/ws", *UPGRADE, OFFER, *(headers or (BEARER,)), host=host)


def frame(
    opcode: int,
    payload: bytes = b"",
    *,
    fin: bool = True,
    rsv: int = 0,
    masked: bool = True,
    announced: int | None = None,
    size: int | None = None,
) -> bytes:
    """A frame; `announced` is the length that it states, `size` the bytes it states it in (1, 2 or 8)."""
    length = len(payload) if announced is None else announced
    size = size or (1 if length < 126 else 2 if length < 65_536 else 8)
    mask_bit = 0x80 if masked else 0
    first = bytes([(0x80 if fin else 0) | rsv << 4 | opcode])
    if size == 1:
        lengths = bytes([mask_bit | length])
    elif size == 2:
        lengths = bytes([mask_bit | 126]) + struct.pack("!H", length)
    else:
        lengths = bytes([mask_bit | 127]) + struct.pack("!Q", length)
    key = b"\x01\x02\x03\x04"
    if not masked:
        return first + lengths + payload
    return first + lengths + key + bytes(byte ^ key[at % 4] for at, byte in enumerate(payload))


def command(id: int, method: str, **params: Any) -> bytes:
    """A command in a frame of its own."""
    return frame(TEXT, json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode())


def close(code: int | None = None, reason: bytes = b"") -> bytes:
    """A close frame."""
    return frame(CLOSE, b"" if code is None else struct.pack("!H", code) + reason)


@attrs.frozen
class Answer:
    """An HTTP response."""

    status: int
    headers: dict[str, str]
    body: bytes


def parse_answer(data: bytes) -> Answer:
    """A response, and what follows it as its body."""
    top, _, body = data.partition(b"\r\n\r\n")
    first, *lines = top.decode("ascii").split("\r\n")
    pairs = [line.partition(": ") for line in lines]
    return Answer(int(first.split()[1]), {name.lower(): value for name, _, value in pairs}, body)


@attrs.frozen
class Frame:
    """A frame of the server."""

    opcode: int
    payload: bytes

    @property
    def code(self) -> int | None:
        """Of a close frame."""
        return int.from_bytes(self.payload[:2]) if self.opcode == CLOSE and self.payload else None

    @property
    def messages(self) -> list[dict[str, Any]]:
        """What a text frame holds."""
        value = json.loads(self.payload)
        return value if isinstance(value, list) else [value]


def parse_frames(data: bytes) -> Iterable[Frame]:
    """The whole frames in what a server has sent."""
    while len(data) >= 2:
        length, at = data[1] & 0x7F, 2
        if length == 126:
            length, at = int.from_bytes(data[2:4]), 4
        elif length == 127:
            length, at = int.from_bytes(data[2:10]), 10
        if len(data) < at + length:
            return
        assert not data[1] & 0x80, "a server masks nothing"
        yield Frame(data[0] & 0x0F, data[at : at + length])
        data = data[at + length :]


@attrs.define(eq=False)
class Client:
    """One connection, from the client's side."""

    stream: trio.abc.Stream
    got: bytearray = attrs.field(factory=bytearray)

    async def send(self, *data: bytes) -> None:
        """Send this, as far as the server still takes it."""
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            for part in data:
                await self.stream.send_all(part)

    async def more(self, seconds: float) -> bytes:
        """What comes within some seconds, or until the server closes."""
        with trio.move_on_after(seconds):
            await self.all()
        return bytes(self.got)

    async def all(self) -> bytes:
        """What comes until the server closes."""
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while data := await self.stream.receive_some(65_536):
                self.got += data
        return bytes(self.got)

    async def ask(self, request: bytes) -> Answer:
        """Send a request, and read the response to its end."""
        await self.send(request)
        return parse_answer(await self.all())

    async def upgrade(self, *headers: tuple[str, str]) -> Answer:
        """Open a WebSocket, with these headers in place of the token."""
        return await self.ask_upgrade(*(headers or (BEARER,)))

    async def ask_upgrade(self, *headers: tuple[str, str]) -> Answer:
        """Ask for a WebSocket with these headers alone: the answer, and `got` begins behind it."""
        await self.send(head("/ws", *UPGRADE, OFFER, *headers))
        while b"\r\n\r\n" not in self.got:
            data = await self.stream.receive_some(65_536)
            assert data, bytes(self.got)
            self.got += data
        top, _, rest = bytes(self.got).partition(b"\r\n\r\n")
        self.got[:] = rest
        return parse_answer(top + b"\r\n\r\n")

    @property
    def frames(self) -> list[Frame]:
        """What has come since the upgrade."""
        return list(parse_frames(bytes(self.got)))

    @property
    def code(self) -> int | None:
        """The close code that has come; 1005 for a close frame without one; `None` for none."""
        codes = [frame.code or 1005 for frame in self.frames if frame.opcode == CLOSE]
        return codes[-1] if codes else None

    @property
    def messages(self) -> list[dict[str, Any]]:
        """All that the text frames hold."""
        return [message for frame in self.frames if frame.opcode == TEXT for message in frame.messages]


@attrs.define(eq=False)
class SocketLike(trio.abc.HalfCloseableStream):
    """A stream of memory that is cancelled as a socket is: before it has taken anything, or not at all."""

    inner: trio.StapledStream[Any, Any]

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await trio.lowlevel.checkpoint_if_cancelled()
        with trio.CancelScope(shield=True):
            await self.inner.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self.inner.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        await self.inner.send_eof()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        return bytes(await self.inner.receive_some(max_bytes))

    async def aclose(self) -> None:
        await self.inner.aclose()


@attrs.define(eq=False)
class Choked(SocketLike):
    """A stream whose other end reads no more than `room` bytes: what does not fit waits."""

    room: int = 0
    _closed: trio.Event = attrs.field(factory=trio.Event)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        self.room -= len(data)
        if self.room < 0:
            await self._closed.wait()
            raise trio.ClosedResourceError
        await super().send_all(data)

    async def aclose(self) -> None:
        self._closed.set()
        await super().aclose()


def dial(gateway: Gateway, nursery: trio.Nursery, *, address: str = ELSEWHERE, room: int | None = None) -> Client:
    """A connection to a gateway from this address; its client reads no more than `room` bytes."""
    assert gateway.front is not None
    ours, theirs = trio.testing.memory_stream_pair()
    stream = SocketLike(theirs) if room is None else Choked(theirs, room=room)
    nursery.start_soon(gateway.front.serve, stream, address)
    return Client(ours)


@contextlib.asynccontextmanager
async def a_client(gateway: Gateway, *, address: str = ELSEWHERE) -> AsyncGenerator[Client]:
    """A connection that is dropped at the end; then the server has nothing of it left."""
    before = living()
    async with trio.open_nursery() as nursery:
        client = dial(gateway, nursery, address=address)
        try:
            yield client
        finally:
            await trio.aclose_forcefully(client.stream)
    with trio.fail_after(60):
        while living() > before:  # noqa: ASYNC110  nobody says when the last task ends
            await trio.sleep(0.1)


async def dribble(client: Client, pieces: Iterable[bytes], every_seconds: float) -> None:
    """Send one piece after the other, with a pause behind each."""
    for piece in pieces:
        await client.send(piece)
        await trio.sleep(every_seconds)


def living() -> int:
    """How many tasks there are."""
    return trio.lowlevel.current_statistics().tasks_living
