"""The HTTP client of all models: the one module that names httpx, which is imported when the first call is made.

One cancel scope spans a request; its deadline moves as the request gets on (connect, first byte, silence), so a
stream costs no timer per chunk.

The pool of httpx 0.28 loses a slot when a request is cancelled while it waits for one, or when TLS fails behind a
proxy. So a limiter bounds the calls and the pool itself has no bound: nothing ever waits inside it.
"""

from __future__ import annotations

import functools
import ssl
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import trio

from protocol.errors import ModelError, SpecError

from ._call_stages import CLOSE_SECONDS, Deadlines, Stages, Watch
from ._endpoint import Endpoint
from ._policy import CallPolicy
from ._refusals import refusal_of_status
from ._reply import HttpReply, RawReply
from ._transport_errors import broken, closed, misspoken, redirected, too_slow, unreachable

if TYPE_CHECKING:
    import httpx

    Transport: TypeAlias = httpx.AsyncBaseTransport

__all__ = ("HttpClient", "HttpStatistics")

_RELEASE_SECONDS = 0.1
# Below the 5 s after which common servers close an idle connection: a request sent into that moment would be lost.
_KEEPALIVE_SECONDS = 4.0


def _ignore() -> None:
    pass


@attrs.frozen
class HttpStatistics:
    """What a client is doing."""

    calls: int
    """Requests that are under way."""
    waiting: int
    """Requests that wait for one of the connections."""
    max_connections: int


class HttpClient:
    """Sends requests to one server. The client behind it is made by the first call, and again after `aclose()`."""

    def __init__(
        self,
        endpoint: Endpoint,
        headers: Mapping[str, str],
        *,
        deadlines: Deadlines | None = None,
        policy: CallPolicy | None = None,
        max_connections: int = 32,
        transport: Transport | None = None,
        proxy: str | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.policy = policy or CallPolicy()
        self._headers = dict(headers)
        self._body_headers = {} if "content-type" in headers else {"content-type": "application/json"}
        self._deadlines = deadlines or Deadlines()
        self._limiter = trio.CapacityLimiter(max_connections)
        self._transport = transport
        self._proxy = proxy
        self._tls = tls
        self._client: httpx.AsyncClient | None = None

    def statistics(self) -> HttpStatistics:
        """What the client is doing."""
        limiter = self._limiter.statistics()
        return HttpStatistics(limiter.borrowed_tokens, limiter.tasks_waiting, int(limiter.total_tokens))

    def post(self, body: bytes, on_sent: Callable[[], None] = _ignore) -> AbstractAsyncContextManager[HttpReply]:
        """Post `body` to the endpoint, as `request()` does."""
        return self._exchange("POST", self.endpoint, body, on_sent)

    def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        from_root: bool = False,
        on_sent: Callable[[], None] = _ignore,
    ) -> AbstractAsyncContextManager[HttpReply]:
        """Make one request to `path` of the same server, with the same headers, deadlines and bounds. No retries.

        The reply's body is read inside the block, and its connection is let go with it. `path` is below the address
        that was given, or below the server's root; see `Endpoint.at()`. `on_sent` is called once, when a connection
        stands and the request is handed to it: whatever fails before was not sent. Raises `ModelError`; a status
        other than success is raised, not returned.
        """
        return self._exchange(method, self.endpoint.at(path, from_root=from_root), body, on_sent)

    @asynccontextmanager
    async def _exchange(
        self, method: str, endpoint: Endpoint, body: bytes | None, on_sent: Callable[[], None]
    ) -> AsyncGenerator[HttpReply]:
        async with self._limiter:
            watch = Watch(self._deadlines)
            with watch.scope:
                watch.enter("connect")
                reply = await self._send(method, endpoint, body, Stages(watch, on_sent), watch)
                clean = False
                try:
                    yield reply
                    clean = True
                finally:
                    with trio.move_on_after(CLOSE_SECONDS, shield=True):
                        await reply.release(within_seconds=_RELEASE_SECONDS if clean else 0.0)
            if watch.scope.cancelled_caught:
                raise too_slow(endpoint, *watch.exceeded)

    async def aclose(self) -> None:
        """Close all connections; requests under way fail, and are not repeated. Safe to call again."""
        client, self._client = self._client, None
        if client is not None:
            with trio.move_on_after(CLOSE_SECONDS, shield=True):
                await client.aclose()

    async def _send(
        self, method: str, endpoint: Endpoint, body: bytes | None, stages: Stages, watch: Watch
    ) -> HttpReply:
        import httpx

        client = self._client = self._client or self._make_client()
        failure = functools.partial(self._failure, client, endpoint, stages)
        while True:
            request = client.build_request(
                method,
                endpoint.url,
                content=body,
                headers=None if body is None else self._body_headers,
                extensions={"trace": stages.note},
            )
            if body is not None:
                request.stream = _one_piece_type()(body)
            stages.reused = stages.connected = False
            try:
                response = await client.send(request, stream=True)
            except httpx.HTTPError as error:
                died = isinstance(error, httpx.ReadError) or _closed(error)
                if died and stages.reused and self._client is client:
                    continue  # each time round costs an idle connection: there is an end to it
                if not stages.sent:
                    reason = stages.reason or str(error)
                    refused = isinstance(error, httpx.ProxyError)
                    raise unreachable(endpoint, reason, refused_by_proxy=refused) from error
                raise failure(error, "before the reply began") from error
            break
        stages.note_sent()  # a transport that reports no stages has sent it all the same
        reply = HttpReply(self._raw(response, failure), watch, endpoint)
        if response.is_success and self._client is client:
            return reply
        try:
            if self._client is not client:  # a pool that has been closed would keep the connection
                raise closed(endpoint, "before the reply began")
            if response.has_redirect_location:
                raise redirected(endpoint, response.status_code, response.headers["location"])
            raise refusal_of_status(endpoint, response.status_code, await reply.read_error(), response.headers)
        finally:
            with trio.move_on_after(CLOSE_SECONDS, shield=True):
                await reply.release()

    def _raw(self, response: httpx.Response, failure: Callable[[Exception, str], ModelError]) -> RawReply:
        import httpx

        stream: Any = response.stream  # `aiter_raw()` would cost as much as reading a delta does
        return RawReply(
            status=response.status_code,
            headers=response.headers,
            chunks=aiter(stream),
            close=response.aclose,
            failures=httpx.HTTPError,
            as_error=lambda error: failure(error, "while the reply came in"),
        )

    def _failure(
        self, client: httpx.AsyncClient, endpoint: Endpoint, stages: Stages, error: Exception, when: str
    ) -> ModelError:
        """What a request that was sent failed with."""
        import httpx

        reason = stages.reason or str(error)
        if self._client is not client:
            return closed(endpoint, when)
        if isinstance(error, httpx.RemoteProtocolError) and not _closed(error):
            return misspoken(endpoint, reason)
        return broken(endpoint, reason, when)

    def _make_client(self) -> httpx.AsyncClient:
        import httpx

        endpoint = self.endpoint
        tls = self._tls or (_tls_context() if endpoint.secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        proxy = None
        if self._proxy is not None:
            proxy_tls = (self._tls or _tls_context()) if self._proxy.startswith("https") else None
            proxy = httpx.Proxy(self._proxy, ssl_context=proxy_tls)
        try:
            return httpx.AsyncClient(
                # A stream is shown as it comes: compression would hold it back.
                headers={"accept-encoding": "identity", **self._headers},
                # None are kept: calls have nothing to do with each other.
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
                timeout=httpx.Timeout(None),  # the call's own deadlines are watched in `_exchange()`
                limits=httpx.Limits(
                    max_connections=None,  # the limiter is the bound
                    max_keepalive_connections=int(self._limiter.total_tokens),
                    keepalive_expiry=_KEEPALIVE_SECONDS,
                ),
                verify=tls,
                trust_env=not endpoint.loopback,
                proxy=proxy,
                transport=self._transport,
            )
        except (ValueError, httpx.InvalidURL, ImportError) as error:
            # Its own text may show what stands in the address.
            raise SpecError(
                f"the proxy for {endpoint.address} cannot be used: {type(error).__name__}. Look at the environment"
                " variables HTTP_PROXY, HTTPS_PROXY and ALL_PROXY: an address such as http://127.0.0.1:3128 is right;"
                " socks5:// needs the package socksio"
            ) from None


def _closed(error: Exception) -> bool:
    """Whether it was the end of the connection that broke HTTP's rules, and not what came over it."""
    return any(word in str(error) for word in ("disconnected", "peer closed", "ConnectionClosed"))


class _Piece:
    def __init__(self, piece: bytes) -> None:
        self._pieces = [piece]

    async def __anext__(self) -> bytes:
        if not self._pieces:
            raise StopAsyncIteration
        return self._pieces.pop()

    def __aiter__(self) -> _Piece:
        return self


@functools.cache
def _one_piece_type() -> Callable[[bytes], httpx.AsyncByteStream]:
    """A body without a generator: a request that fails while it is sent would leave that to the garbage collector."""
    import httpx

    class OnePiece(httpx.AsyncByteStream):
        def __init__(self, body: bytes) -> None:
            self._body = body

        def __aiter__(self) -> _Piece:  # pyright: ignore[reportIncompatibleMethodOverride]
            return _Piece(self._body)

    return OnePiece


@functools.cache
def _tls_context() -> ssl.SSLContext:
    import httpx

    # Reading the certificates takes longer than all else a client does, so all clients share them.
    return httpx.create_ssl_context()
