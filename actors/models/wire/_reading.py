"""From a request to a turn: what all wire formats have in common once their request is bytes and their reader stands.

A server may answer a streaming request with a whole JSON body, under any media type: what the first bytes are
decides. After a positive end nothing that breaks takes the turn away again; only usage may be missing.
"""

from __future__ import annotations

import re
from typing import Literal, Protocol, TypeAlias

from protocol.errors import ModelError, ModelReplyError
from protocol.model import ModelEmit, ModelEvent, RequestSent
from protocol.turns import Turn

from ._http import HttpClient
from ._reply import HttpReply
from ._sse import EventStreamDecoder, EventTooLargeError, ServerSentEvent

__all__ = ("ReplyReader", "read_head", "read_turn")

_TRAILING_SECONDS = 5.0
_STREAM_LINE = re.compile(rb"(data|event|id|retry)?:")
_TELLING_BYTES = 8

_Kind: TypeAlias = Literal["events", "json", "other"]


class ReplyReader(Protocol):
    """A wire format's way to read one reply."""

    @property
    def started(self) -> bool:
        """Whether anything has come."""
        ...

    @property
    def ended(self) -> bool:
        """Whether a positive end has come."""
        ...

    @property
    def done(self) -> bool:
        """Whether nothing follows."""
        ...

    def feed(self, event: ServerSentEvent) -> list[ModelEvent]:
        """Take an event of the stream."""
        ...

    def feed_body(self, body: bytes) -> list[ModelEvent]:
        """Take a whole reply."""
        ...

    def finish(self) -> Turn:
        """The whole turn; raises `ModelError` if there is none."""
        ...

    def lost(self) -> Turn:
        """What had come."""
        ...


async def read_turn(client: HttpClient, body: bytes, reader: ReplyReader, emit: ModelEmit) -> Turn:
    """Send `body` once and read the reply. Raises `ModelError`, with what had arrived in its `partial`."""
    try:
        return await _exchange(client, body, reader, emit)
    except ModelError as error:
        if reader.started and error.partial is None:
            error.partial = reader.lost()
        raise


async def _exchange(client: HttpClient, body: bytes, reader: ReplyReader, emit: ModelEmit) -> Turn:
    try:
        async with client.post(body, lambda: emit(RequestSent())) as reply:
            await _read(reply, reader, emit)
    except ModelError:
        if not reader.ended:
            raise
    return reader.finish()


async def read_head(reply: HttpReply) -> tuple[Literal["events", "json"], bytes]:
    """Say what the body is, and return what has been received of it. Raises `ModelReplyError` for anything else."""
    head = b""
    kind: _Kind | None = None
    while kind is None:
        chunk = await reply.receive()
        head += chunk
        kind = _kind_of(head, reply.content_type, whole=not chunk)
    if kind == "other":
        what = reply.content_type or "no content type"
        said = reply.endpoint.quote(head.decode("utf-8", "replace"), max_chars=200) or "an empty body"
        raise ModelReplyError(
            f"{reply.endpoint.address} answered {reply.status}, but with neither a stream nor JSON ({what}): {said}"
        )
    return kind, head


async def _read(reply: HttpReply, reader: ReplyReader, emit: ModelEmit) -> None:
    kind, head = await read_head(reply)
    if kind == "events":
        await _read_events(reply, head, reader, emit)
        return
    for event in reader.feed_body(await reply.read(head)):
        emit(event)


async def _read_events(reply: HttpReply, chunk: bytes, reader: ReplyReader, emit: ModelEmit) -> None:
    decoder = EventStreamDecoder()
    while chunk:
        try:
            events = decoder.feed(chunk)
        except EventTooLargeError as error:
            raise ModelReplyError(f"{reply.endpoint.address}: {error}") from error
        for event in events:
            for model_event in reader.feed(event):
                emit(model_event)
            if reader.done:
                return
        if reader.ended:
            reply.expect_end(within_seconds=_TRAILING_SECONDS)
        chunk = await reply.receive()


def _kind_of(head: bytes, content_type: str, *, whole: bool) -> _Kind | None:
    """What a body is by its first bytes; `None` as long as they do not tell."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start[:1] in {b"{", b"["}:
        return "json"
    if _STREAM_LINE.match(start) or (content_type == "text/event-stream" and start[:1] != b"<"):
        return "events"
    return None if len(start) < _TELLING_BYTES and not whole else "other"
