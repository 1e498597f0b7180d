"""Servers that are not to be trusted, on real sockets: certificates, redirects, hasty answers, endless replies."""

from __future__ import annotations

import ssl
import tracemalloc
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme

from actors.models.wire import EventStreamDecoder, HttpClient
from protocol.errors import ModelError, ModelRateLimited, ModelRefused, ModelUnreachable
from protocol.model import ModelRequest
from protocol.turns import UserMessage
from tests.actors.models._cases import HELLO as HELLO_TURN
from tests.actors.models._wire import HELLO, HI, Heard, Server, answer, raw, stream
from tests.actors.models.conftest import Open, model_at

LONG = ModelRequest(messages=[UserMessage("x" * 20_000_000)])


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def bundle(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that makes the authority a trusted one."""
    path = tmp_path_factory.mktemp("tls") / "authority.pem"
    authority.cert_pem.write_to_path(str(path))
    return path


def server_side(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


async def test_an_authority_of_ones_own(open_server: Open, authority: trustme.CA, bundle: Path) -> None:
    """A file of certificates, its path or a context of one's own make a private server trusted."""
    tls = server_side(authority.issue_cert("127.0.0.1"))
    server = Server([stream(*HI) for _ in range(3)])
    port = await open_server(server, tls=tls)
    context = ssl.create_default_context(cafile=str(bundle))

    for verify in (bundle, str(bundle), context):
        model = model_at(port, scheme="https", verify=verify)

        assert HELLO_TURN == await model.turn(HELLO, Heard())
        await model.aclose()


def yesterday(authority: trustme.CA) -> trustme.LeafCert:
    now = datetime.now(UTC)
    return authority.issue_cert("127.0.0.1", not_before=now - timedelta(days=9), not_after=now - timedelta(days=1))


def tomorrow(authority: trustme.CA) -> trustme.LeafCert:
    now = datetime.now(UTC)
    return authority.issue_cert("127.0.0.1", not_before=now + timedelta(days=1), not_after=now + timedelta(days=9))


@pytest.mark.parametrize(
    ("make", "trusted", "said"),
    [
        (lambda ca: ca.issue_cert("127.0.0.1"), False, "Pass the file of its authority's certificate as `verify`"),
        (yesterday, True, "It must be renewed, or this machine's clock is wrong"),
        (tomorrow, True, "This machine's clock may be wrong"),
        (lambda ca: ca.issue_cert("10.0.0.1"), True, "The address must name the host that the certificate is for"),
    ],
    ids=["unknown authority", "expired", "not yet valid", "another host"],
)
async def test_a_certificate_that_is_not_good(
    make: Callable[[trustme.CA], trustme.LeafCert],
    trusted: bool,
    said: str,
    open_server: Open,
    authority: trustme.CA,
    bundle: Path,
) -> None:
    """Nothing is sent, nothing is tried again, and the error says what to do."""
    server = Server()
    port = await open_server(server, tls=server_side(make(authority)))
    heard = Heard()
    settings: dict[str, Any] = {"verify": bundle} if trusted else {}
    with pytest.raises(ModelUnreachable, match="CERTIFICATE_VERIFY_FAILED.*nothing was sent.*" + said) as caught:
        await model_at(port, scheme="https", retries=2, **settings).turn(HELLO, heard)

    assert ([], [], False) == (heard.events, server.requests, caught.value.retryable)


async def test_a_certificate_signed_by_itself(open_server: Open, tmp_path: Path) -> None:
    """It can be trusted by name, and is not otherwise."""
    authority = trustme.CA()
    tls = server_side(authority.issue_cert("localhost"))
    port = await open_server(Server(), tls=tls)
    with pytest.raises(ModelUnreachable, match="CERTIFICATE_VERIFY_FAILED.* as `verify`"):
        await model_at(port, scheme="https", host="localhost").turn(HELLO, Heard())


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_the_key_goes_to_no_other_server(status: int, open_server: Open) -> None:
    """A redirect to another port or host is told and not followed: the other server hears nothing."""
    other = Server([stream(*HI)])
    port = await open_server(other)
    server = Server([answer(status, "", [f"location: http://127.0.0.1:{port}/v1/chat/completions"])])
    model = model_at(await open_server(server), retries=2)
    with pytest.raises(ModelRefused, match=f"points to http://127.0.0.1:{port}/v1/chat/completions: redirects are not"):
        await model.turn(HELLO, Heard())
    await model.aclose()

    assert (0, 1) == (other.connections, len(server.requests))


REFUSED = b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 3\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}"


def serving(handler: Callable[[trio.SocketStream], Awaitable[None]]) -> Any:
    return partial(trio.serve_tcp, handler, 0, host="127.0.0.1")


async def test_a_server_that_does_not_wait_for_the_end_of_the_request(nursery: trio.Nursery, open_server: Open) -> None:
    """An early 429 is read as such although most of the request was never taken."""

    async def hasty(connection: trio.SocketStream) -> None:
        await connection.receive_some(1000)
        await connection.send_all(REFUSED)
        await connection.send_eof()
        while await connection.receive_some(2**20):
            pass

    [listener] = await nursery.start(serving(hasty))
    with pytest.raises(ModelRateLimited) as caught:
        await model_at(listener.socket.getsockname()[1]).turn(LONG, Heard())

    assert (3, True) == (caught.value.retry_after_seconds, caught.value.retryable)


async def test_a_server_that_hangs_up_in_the_middle_of_the_request(nursery: trio.Nursery, open_server: Open) -> None:
    """The system may throw its answer away with the rest: it is that answer, or a broken connection, and no other."""

    async def rude(connection: trio.SocketStream) -> None:
        await connection.receive_some(1000)
        await connection.send_all(REFUSED)
        await connection.aclose()

    [listener] = await nursery.start(serving(rude))
    heard = Heard()
    with pytest.raises(ModelError, match="answered 429|broke before the reply began") as caught:
        await model_at(listener.socket.getsockname()[1]).turn(LONG, heard)

    assert (1, True) == (heard.sent, caught.value.retryable)


async def test_a_server_that_never_reads(nursery: trio.Nursery, open_server: Open) -> None:
    """A request that cannot be sent ends with the time for the first byte."""
    gone = trio.Event()

    async def deaf(_connection: trio.SocketStream) -> None:
        await gone.wait()

    [listener] = await nursery.start(serving(deaf))
    with pytest.raises(ModelError, match=r"did not begin its reply within 0.2 s \(first_byte_timeout_seconds\)"):
        await model_at(listener.socket.getsockname()[1], first_byte_timeout_seconds=0.2).turn(LONG, Heard())
    gone.set()


async def test_the_wrong_protocol_over_tls(open_server: Open, authority: trustme.CA) -> None:
    """Plain HTTP to a server that wants TLS is an answer that says so, or a broken connection."""
    port = await open_server(Server(), tls=server_side(authority.issue_cert("127.0.0.1")))
    with pytest.raises(ModelError, match=f"http://127.0.0.1:{port}/v1/chat/completions"):
        await model_at(port).turn(HELLO, Heard())


EVENTS = 100_000
BATCH = b'data: {"choices":[{"delta":{"content":"word"}}]}\n\n' * 100


@pytest.mark.slow
async def test_a_long_stream_takes_no_memory(open_server: Open) -> None:
    """100 000 events pass through the client and the decoder, and nothing of them stays."""

    async def write(_server: Server, connection: trio.abc.Stream) -> bool:
        await connection.send_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")
        for _ in range(EVENTS // 100):
            await connection.send_all(BATCH)
        return False

    port = await open_server(Server([raw_warm_up, write]))
    model = model_at(port)
    with pytest.raises(ModelError):
        await model.turn(HELLO, Heard())
    client: HttpClient = model._client
    decoder, seen = EventStreamDecoder(), 0
    tracemalloc.start()
    try:
        async with client.post(b"{}") as reply:
            while chunk := await reply.receive():
                seen += len(decoder.feed(chunk))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    await model.aclose()

    assert EVENTS == seen
    assert peak < 2 * 2**20


raw_warm_up = raw("HTTP/1.1 500 X\r\n\r\n")
