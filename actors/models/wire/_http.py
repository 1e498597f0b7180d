"""The HTTP client of all models: the one module that names httpx, which is imported when the first call is made.

One cancel scope spans a call; its deadline moves as the call gets on (connect, first byte, silence), so a stream
costs no timer per chunk.

The pool of httpx 0.28 loses a slot when a request is cancelled while it waits for one, or when TLS fails behind a
proxy. So a limiter bounds the calls and the pool itself has no bound: nothing ever waits inside it.

A body is read through the generators of three libraries. They must end by their own end or by an exception that
comes from inside; a generator that is merely dropped leaves its connection to the garbage collector. `HttpReply`
sees to that: `release()` reads on for a moment, and then cancels the read.
"""

from __future__ import annotations

import functools
import math
import ssl
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

import attrs
import trio

from protocol.errors import ModelReplyError

from ._call_stages import CLOSE_SECONDS, Deadlines, Stages, Watch
from ._endpoint import Endpoint
from ._refusals import refusal_of_status
from ._transport_errors import broken, redirected, too_slow, unreachable

if TYPE_CHECKING:
    import httpx

    Transport: TypeAlias = httpx.AsyncBaseTransport

__all__ = ("Deadlines", "HttpClient", "HttpReply", "HttpStatistics")

_MAX_REPLY_BYTES = 64 * 1024 * 1024
_MAX_ERROR_BYTES = 64 * 1024
_ERROR_SECONDS = 5.0
_RELEASE_SECONDS = 0.1
# Below the 5 s after which common servers close an idle connection: a request sent into that moment would be lost.
_KEEPALIVE_SECONDS = 4.0


@attrs.frozen
class HttpStatistics:
    """What a client is doing."""

    calls: int
    """Calls that are under way."""
    waiting: int
    """Calls that wait for one of the connections."""
    max_connections: int


class HttpReply:
    """A reply whose head has come, and whose body has not been read."""

    def __init__(self, response: httpx.Response, watch: Watch, stages: Stages, endpoint: Endpoint) -> None:
        self._response = response
        self._chunks = response.aiter_bytes() if "content-encoding" in response.headers else response.aiter_raw()
        self._watch = watch
        self._stages = stages
        self.endpoint = endpoint
        self._bytes = 0

    @property
    def content_type(self) -> str:
        """The media type, in lower case, without parameters."""
        return str(self._response.headers.get("content-type", "")).partition(";")[0].strip().lower()

    def expect_end(self, *, within_seconds: float) -> None:
        """From now on wait no longer than this for each chunk: what matters has come."""
        self._watch.shorten_idle(within_seconds)

    async def receive(self) -> bytes:
        """Wait for the next bytes of the body; `b""` is its end. Raises `ModelError` if the connection breaks."""
        import httpx

        try:
            chunk = await anext(self._chunks, b"")
        except httpx.HTTPError as error:
            raise broken(self.endpoint, self._stages.reason or str(error), "while the reply came in") from error
        self._watch.note_bytes()
        self._bytes += len(chunk)
        if self._bytes > _MAX_REPLY_BYTES:
            raise ModelReplyError(f"{self.endpoint.address} sent a reply of more than {_MAX_REPLY_BYTES} bytes")
        return chunk

    async def read_error(self) -> bytes:
        """The beginning of an error's body: what of it comes soon, before it breaks or grows too long."""
        import httpx

        self._watch.scope.deadline = math.inf
        body = b""
        with trio.move_on_after(_ERROR_SECONDS):
            try:
                while len(body) < _MAX_ERROR_BYTES and (chunk := await anext(self._chunks, b"")):
                    body += chunk
            except httpx.HTTPError:
                pass  # the status says what is wrong; half a text is better than none
        return body[:_MAX_ERROR_BYTES]

    async def release(self, *, within_seconds: float = 0.0) -> None:
        """Let go of the connection: kept for the next call if the body ends within that time, else closed."""
        import httpx

        with trio.move_on_after(within_seconds) as scope:
            if within_seconds <= 0:
                scope.cancel("the rest is not wanted")
            try:
                while await anext(self._chunks, b""):
                    pass
            except httpx.HTTPError:
                pass  # it broke: it is closed
        await self._response.aclose()


class HttpClient:
    """Posts requests to one endpoint. The client behind it is made by the first call, and again after `aclose()`."""

    def __init__(
        self,
        endpoint: Endpoint,
        headers: Mapping[str, str],
        *,
        deadlines: Deadlines | None = None,
        max_connections: int = 32,
        transport: Transport | None = None,
    ) -> None:
        self.endpoint = endpoint
        self._headers = dict(headers)
        self._deadlines = deadlines or Deadlines()
        self._limiter = trio.CapacityLimiter(max_connections)
        self._transport = transport
        self._client: httpx.AsyncClient | None = None

    def statistics(self) -> HttpStatistics:
        """What the client is doing."""
        limiter = self._limiter.statistics()
        return HttpStatistics(limiter.borrowed_tokens, limiter.tasks_waiting, int(limiter.total_tokens))

    @asynccontextmanager
    async def post(self, body: bytes, on_sent: Callable[[], None]) -> AsyncGenerator[HttpReply]:
        """Post `body`; the reply's body is read inside the block, and its connection is let go with it.

        `on_sent` is called once, when a connection stands and the request is handed to it: whatever fails before
        was not sent. Raises `ModelError`; an error status is raised, not returned.
        """
        async with self._limiter:
            watch = Watch(self._deadlines)
            with watch.scope:
                watch.enter("connect")
                reply = await self._send(body, on_sent, watch)
                clean = False
                try:
                    yield reply
                    clean = True
                finally:
                    with trio.move_on_after(CLOSE_SECONDS, shield=True):
                        await reply.release(within_seconds=_RELEASE_SECONDS if clean else 0.0)
            if watch.scope.cancelled_caught:
                raise too_slow(self.endpoint, watch.stage, watch.seconds)

    async def aclose(self) -> None:
        """Close all connections; calls under way fail. Safe to call again."""
        client, self._client = self._client, None
        if client is not None:
            with trio.move_on_after(CLOSE_SECONDS, shield=True):
                await client.aclose()

    async def _send(self, body: bytes, on_sent: Callable[[], None], watch: Watch) -> HttpReply:
        import httpx

        stages = Stages(watch, on_sent)
        client = self._client = self._client or self._make_client()
        while True:
            request = client.build_request("POST", self.endpoint.url, content=body, extensions={"trace": stages.note})
            stages.reused = stages.connected = False
            try:
                response = await client.send(request, stream=True)
            except httpx.HTTPError as error:
                if stages.reused and isinstance(error, (httpx.RemoteProtocolError, httpx.ReadError)):
                    continue  # each time round costs an idle connection: there is an end to it
                reason = stages.reason or str(error)
                if stages.sent:
                    raise broken(self.endpoint, reason, "before the reply began") from error
                raise unreachable(self.endpoint, reason) from error
            break
        stages.note_sent()  # a transport that reports no stages has sent it all the same
        reply = HttpReply(response, watch, stages, self.endpoint)
        if response.status_code == 200:
            return reply
        try:
            if response.has_redirect_location:
                raise redirected(self.endpoint, response.status_code, response.headers["location"])
            raise refusal_of_status(self.endpoint, response.status_code, await reply.read_error())
        finally:
            with trio.move_on_after(CLOSE_SECONDS, shield=True):
                await reply.release()

    def _make_client(self) -> httpx.AsyncClient:
        import httpx

        endpoint = self.endpoint
        return httpx.AsyncClient(
            # A stream is shown as it comes: compression would hold it back.
            headers={"accept-encoding": "identity", "content-type": "application/json", **self._headers},
            timeout=httpx.Timeout(None),  # the call's own deadlines are watched in `post()`
            limits=httpx.Limits(
                max_connections=None,  # the limiter is the bound
                max_keepalive_connections=int(self._limiter.total_tokens),
                keepalive_expiry=_KEEPALIVE_SECONDS,
            ),
            verify=_tls_context() if endpoint.secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            trust_env=not endpoint.loopback,
            transport=self._transport,
        )


@functools.cache
def _tls_context() -> ssl.SSLContext:
    import httpx

    # Reading the certificates takes longer than all else a client does, so all clients share them.
    return httpx.create_ssl_context()
