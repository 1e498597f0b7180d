"""A reply in hand: its body is read piece by piece, never beyond a bound, and let go of in the end.

A body is read through the generators of three libraries. They must end by their own end or by an exception that
comes from inside; a generator that is merely dropped leaves its connection to the garbage collector. `release()` sees
to that: it reads on for a moment, and then cancels the read.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager

import attrs
import trio

from protocol.errors import ModelError, ModelReplyError

from ._call_stages import Watch
from ._endpoint import Endpoint
from ._inflate import Inflater, NotCompressedError

__all__ = ("HttpReply", "RawReply")

_MAX_REPLY_BYTES = 128 * 1024 * 1024
_MAX_BODY_BYTES = 16 * 1024 * 1024
_MAX_ERROR_BYTES = 64 * 1024
_ERROR_SECONDS = 5.0


@attrs.frozen(kw_only=True)
class RawReply:
    """What the HTTP library below gives of a reply whose head has come."""

    status: int
    headers: Mapping[str, str]
    """With names in lower case."""
    chunks: AsyncIterator[bytes]
    close: Callable[[], Awaitable[None]]
    failures: type[Exception]
    """What reading raises when the connection breaks."""
    as_error: Callable[[Exception], ModelError]
    """What such a failure is called here."""


class HttpReply:
    """A reply whose head has come, and whose body has not been read."""

    def __init__(self, raw: RawReply, watch: Watch, endpoint: Endpoint) -> None:
        self._raw = raw
        self._next = raw.chunks.__anext__
        self._failures = raw.failures
        self._note_bytes = watch.note_bytes
        self._watch = watch
        self._encoding = raw.headers.get("content-encoding", "").strip().lower()
        self._encoded = self._encoding not in {"", "identity"}
        self._inflater = Inflater() if self._encoding in {"gzip", "x-gzip", "deflate"} else None
        self._bytes = 0
        self.endpoint = endpoint

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._raw.status

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; look them up in lower case."""
        return self._raw.headers

    @property
    def content_type(self) -> str:
        """The media type, in lower case, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def expect_end(self, *, within_seconds: float) -> None:
        """From now on wait no longer than this for each chunk: what matters has come."""
        self._watch.shorten_idle(within_seconds)

    @contextmanager
    def paused(self) -> Generator[None]:
        """Time that is spent inside is the reader's: the server is not taken to be silent."""
        self._watch.pause()
        try:
            yield
        finally:
            self._watch.enter("idle")

    async def receive(self) -> bytes:
        """Wait for the next bytes of the body; `b""` is its end. Raises `ModelError` if the connection breaks."""
        return await (self._receive_decoded() if self._encoded else self._receive_raw())

    async def read(self, head: bytes = b"") -> bytes:
        """The whole body, of at most 16 MiB; `head` is what has been received of it. Raises `ModelError`."""
        parts = [head]
        size = len(head)
        while chunk := await self.receive():
            parts.append(chunk)
            size += len(chunk)
            if size > _MAX_BODY_BYTES:
                raise self._too_long("body", _MAX_BODY_BYTES)
        return b"".join(parts)

    async def read_error(self) -> bytes:
        """The beginning of an error's body: what of it comes soon, before it breaks or grows too long."""
        self._watch.pause()
        body = b""
        with trio.move_on_after(_ERROR_SECONDS):
            try:
                while len(body) < _MAX_ERROR_BYTES and (chunk := await self.receive()):
                    self._watch.pause()
                    body += chunk
            except ModelError:
                pass  # the status says what is wrong; half a text is better than none
        return body[:_MAX_ERROR_BYTES]

    async def release(self, *, within_seconds: float = 0.0) -> None:
        """Let go of the connection: kept for the next call if the body ends within that time, else closed."""
        with trio.move_on_after(within_seconds) as scope:
            if within_seconds <= 0:
                scope.cancel("the rest is not wanted")
            try:
                async for _ in self._raw.chunks:
                    pass
            except self._failures:
                pass  # it broke: it is closed
        await self._raw.close()

    async def _receive_raw(self) -> bytes:
        try:
            chunk = await self._next()
        except StopAsyncIteration:
            return b""
        except self._failures as error:
            raise self._raw.as_error(error) from error
        self._note_bytes()
        self._count(chunk)
        return chunk

    async def _receive_decoded(self) -> bytes:
        if self._inflater is None:
            raise ModelReplyError(
                f"{self.endpoint.address} sent its reply with content-encoding {self.endpoint.quote(self._encoding)!r},"
                " although it was asked not to: only gzip and deflate can be read"
            )
        try:
            while not (piece := self._inflater.pull()):
                chunk = await self._receive_raw()
                if not chunk:
                    return b""
                self._inflater.push(chunk)
        except NotCompressedError as error:
            raise ModelReplyError(f"{self.endpoint.address} sent broken {self._encoding}: {error}") from error
        await trio.lowlevel.checkpoint()  # a few bytes may hold thousands of pieces
        self._count(piece)
        return piece

    def _count(self, piece: bytes) -> None:
        self._bytes += len(piece)
        if self._bytes > _MAX_REPLY_BYTES:
            raise self._too_long("reply", _MAX_REPLY_BYTES)

    def _too_long(self, what: str, most: int) -> ModelReplyError:
        return ModelReplyError(f"{self.endpoint.address} sent a {what} of more than {most} bytes")
