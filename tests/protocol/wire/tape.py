"""Recorded conversations: what each side sent, in order, with ids and times that are the same in every recording.

    python -m tests.protocol.wire.tape            record all conversations anew
    python -m tests.protocol.wire.tape NAME ...   record these

A transcript is kept as it is while it can be read: it stands for the clients and servers that are out there. Record one
anew, or add one, for what the protocol has learned since.
"""

from __future__ import annotations

import functools
import json
import re
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import attrs
import trio
import trio.testing
import trio_websocket

from actors.gateway import Template
from protocol.wire import NotStrictError, Role, strict_loads
from tests.actors.gateway.wired import Client, Hall, open_hall

FOLDER = Path(__file__).parent / "transcripts"
_ID = re.compile(r"\b([a-z]+)-[0-9a-f]{8}-\d+\b")
_DIGEST = re.compile(r"\b[0-9a-f]{32}\b")


@attrs.frozen
class Line:
    """One frame."""

    connection: int
    by: str
    """`client` or `server`."""
    text: str

    @property
    def messages(self) -> list[Any]:
        """What is in it; of a client, one message."""
        value = json.loads(self.text)
        return value if isinstance(value, list) else [value]


@attrs.define
class Tape:
    """What was said on all connections of a conversation, as it was heard by the clients."""

    lines: list[Line] = attrs.field(factory=list)
    connections: int = 0

    def record(self, client: Client) -> Client:
        """Record this client too."""
        self.connections += 1
        socket = Recorded(client.socket, self.connections, self)
        client.socket = cast("trio_websocket.WebSocketConnection", socket)
        return client

    def text(self) -> str:
        """The transcript: one JSON object for each frame."""
        return normalised("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in map(_row, self.lines)))


@attrs.define
class Recorded:
    """A WebSocket that keeps what goes over it."""

    socket: trio_websocket.WebSocketConnection
    number: int
    tape: Tape

    async def send_message(self, text: str) -> None:
        self.tape.lines.append(Line(self.number, "client", text))
        await self.socket.send_message(text)

    async def get_message(self) -> str:
        text = await self.socket.get_message()
        assert isinstance(text, str)
        self.tape.lines.append(Line(self.number, "server", text))
        return text

    def __getattr__(self, name: str) -> Any:
        return getattr(self.socket, name)


def _row(line: Line) -> dict[str, Any]:
    """The frame as a value, or as its text where it has none."""
    head = {"connection": line.connection, "from": line.by}
    try:
        return head | {"frame": strict_loads(line.text)}
    except NotStrictError:
        return head | {"text": line.text}


def normalised(text: str) -> str:
    """With ids, digests and times that do not depend on when it was recorded."""
    numbers: dict[str, str] = {}
    kinds: dict[str, int] = {}

    def stable(form: Callable[[re.Match[str], int], str], kind: str, found: re.Match[str]) -> str:
        if found[0] not in numbers:
            kinds[kind] = kinds.get(kind, 0) + 1
            numbers[found[0]] = form(found, kinds[kind])
        return numbers[found[0]]

    text = _ID.sub(lambda found: stable(lambda m, n: f"{m[1]}-00000000-{n}", found[1], found), text)
    text = _DIGEST.sub(lambda found: stable(lambda _, n: f"{n:032x}", "", found), text)
    return re.sub(r'("server_time": ")[^"]+', r"\g<1>2026-01-01T00:00:00+00:00", text)


def transcripts() -> list[Path]:
    """Every recorded conversation."""
    return sorted(FOLDER.glob("*.jsonl"))


def lines_of(path: Path) -> Iterator[Line]:
    """The frames of a recorded conversation."""
    for row in path.read_text(encoding="utf-8").splitlines():
        value = json.loads(row)
        text = value["text"] if "text" in value else json.dumps(value["frame"])
        yield Line(value["connection"], value["from"], text)


@attrs.define
class Scene:
    """Where a conversation takes place."""

    hall: Hall
    tape: Tape

    async def client(self, name: str = "ada", *roles: Role, hello: bool = True) -> Client:
        """A client that is recorded from its first command on."""
        client = self.tape.record(await self.hall.connect(name, *roles, hello=False))
        if hello:
            await client.ask("hello", client={"name": "transcripts", "version": "1"})
        return client


Conversation = Callable[[Scene], Awaitable[None]]


async def play(conversation: Conversation, **templates: Template) -> Tape:
    """Have a conversation with a gateway, in virtual time."""
    tape = Tape()
    async with open_hall(templates=templates or None) as hall:
        with trio.fail_after(3600):
            await conversation(Scene(hall, tape))
    return tape


def main(names: list[str]) -> None:
    """Record."""
    from tests.protocol.wire.conversations import CONVERSATIONS
    from tests.protocol.wire.stage import TEMPLATES

    for name in names or CONVERSATIONS:
        clock = trio.testing.MockClock(autojump_threshold=0)
        tape = trio.run(functools.partial(play, CONVERSATIONS[name], **TEMPLATES), clock=clock)
        (FOLDER / f"{name}.jsonl").write_text(tape.text(), encoding="utf-8")
        print(name, len(tape.lines))


if __name__ == "__main__":
    main(sys.argv[1:])
