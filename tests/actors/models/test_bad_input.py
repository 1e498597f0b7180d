"""Servers that answer anything: each reply is a turn or an error that says enough, within bounds of time and memory."""

from __future__ import annotations

import gzip
import json
import tracemalloc
import zlib
from collections.abc import Callable, Iterator

import pytest
import trio
import trio.testing

from actors.models.wire import _reply
from protocol.errors import (
    ModelAuthError,
    ModelError,
    ModelRateLimited,
    ModelRefused,
    ModelReplyError,
    ModelServerError,
    ModelTimeout,
)
from protocol.turns import Turn
from protocol.usage import Usage
from tests.actors.models._cases import HELLO as HELLO_TURN
from tests.actors.models._wire import (
    DONE,
    HELLO,
    HI,
    STOP,
    Heard,
    Network,
    Pause,
    Reply,
    Server,
    answer,
    chunk,
    event,
    raw,
    stream,
)
from tests.actors.models.conftest import MakeModel

OK = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
CHUNKED = OK + "transfer-encoding: chunked\r\n\r\n"
WHOLE = "".join(HI).encode()
MIB = 2**20


def encoded(encoding: str, *pieces: bytes) -> Reply:
    """A stream that is compressed, although the client asked for none."""
    return raw(OK, f"content-encoding: {encoding}\r\n\r\n", *pieces)


@pytest.fixture
def peak() -> Iterator[Callable[[], int]]:
    """The most memory that was in use since the test began, in bytes."""
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()


@pytest.mark.parametrize(
    "reply",
    [
        answer(200, "<html>welcome</html>", content_type="text/html"),
        answer(200, "<html>welcome</html>", content_type="application/json"),
        answer(200, "<html>welcome</html>", content_type="text/event-stream"),
        stream("<html>welcome</html>", content_type=None),
    ],
)
async def test_a_page_is_no_reply(
    reply: Reply, network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """HTML with status 200 is quoted, whatever its media type says."""
    network.server.replies = [reply]
    with pytest.raises(ModelReplyError, match="answered 200, but with neither a stream nor JSON .*: <html>welcome"):
        await make_model().turn(HELLO, Heard())


@pytest.mark.parametrize("kind", ["text/event-stream", "text/plain", "image/png", None])
async def test_a_media_type_may_be_wrong(
    kind: str | None, network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """What the bytes are decides, for a stream, a whole reply, and an error alike."""
    whole = json.dumps({"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]})
    busy = json.dumps({"error": {"message": "busy", "type": "overloaded_error"}})
    network.server.replies = [
        stream(*HI, content_type=kind),
        stream(whole, content_type=kind),
        stream(busy, content_type=kind),
    ]
    model = make_model()

    assert HELLO_TURN == await model.turn(HELLO, Heard())
    assert "Hello" == (await model.turn(HELLO, Heard())).text
    with pytest.raises(ModelServerError, match="busy"):
        await model.turn(HELLO, Heard())


RAW_DEFLATE = zlib.compressobj(wbits=-zlib.MAX_WBITS)
COMPRESSED = {
    "gzip": gzip.compress(WHOLE),
    "x-gzip": gzip.compress(WHOLE[:40]) + gzip.compress(WHOLE[40:]),
    "deflate": zlib.compress(WHOLE),
    " Deflate ": RAW_DEFLATE.compress(WHOLE) + RAW_DEFLATE.flush(),
    "identity": WHOLE,
}


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("encoding", COMPRESSED)
async def test_a_reply_may_be_compressed(
    encoding: str, size: int, network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """Gzip and deflate are read although none was asked for, however they are cut, in several members too."""
    body = COMPRESSED[encoding]
    network.server.replies = [encoded(encoding, *[body[at : at + size] for at in range(0, len(body), size)])]

    assert HELLO_TURN == await make_model().turn(HELLO, Heard())


async def test_a_compressed_stream_is_shown_as_it_comes(
    network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """What a flush has completed is reported at once."""
    packer = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    first = packer.compress(HI[0].encode()) + packer.flush(zlib.Z_SYNC_FLUSH)
    rest = packer.compress("".join(HI[1:]).encode()) + packer.flush()
    network.server.replies = [raw(OK, "content-encoding: gzip\r\n\r\n", first, Pause(5), rest)]
    times: list[float] = []
    await make_model().turn(HELLO, lambda _event: times.append(trio.current_time()))

    assert [0, 0, 5] == times


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (encoded("br", b"xyz"), r"with content-encoding 'br', although it was asked not to: only gzip and deflate"),
        (encoded("zstd", b"xyz"), "with content-encoding 'zstd'"),
        (encoded("gzip, gzip", b"xyz"), "with content-encoding 'gzip, gzip'"),
        (encoded("gzip", b"no gzip at all"), "sent broken gzip: Error -3"),
        (encoded("gzip", gzip.compress(WHOLE)[:30] + b"x" * 100), "sent broken gzip"),
    ],
)
async def test_what_cannot_be_decompressed_is_named(
    reply: Reply, said: str, network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """It would come again, so it is no error to repeat."""
    network.server.replies = [reply]
    with pytest.raises(ModelReplyError, match=said) as caught:
        await make_model().turn(HELLO, Heard())

    assert not caught.value.retryable


@pytest.mark.slow
@pytest.mark.parametrize("line", [b"\0" * MIB, (b": " + b"x" * 1000 + b"\n") * 1000])
async def test_a_bomb_does_not_burst(
    line: bytes,
    network: Network,
    make_model: MakeModel,
    monkeypatch: pytest.MonkeyPatch,
    peak: Callable[[], int],
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A few hundred KiB that unpack to 256 MiB: what is unpacked is bounded while it is, one line or many."""
    monkeypatch.setattr(_reply, "_MAX_REPLY_BYTES", 20 * MIB)
    packer = zlib.compressobj(9, wbits=zlib.MAX_WBITS | 16)
    packed = b"".join([packer.compress(line) for _ in range(256)]) + packer.flush()
    network.server.replies = [encoded("gzip", packed)]
    before = peak()
    with pytest.raises(ModelReplyError, match="longer than 16777216|a reply of more than 20971520 bytes"):
        await make_model().turn(HELLO, Heard())

    assert len(packed) < 2 * MIB
    assert peak() - before < 24 * MIB


async def test_an_error_may_be_a_bomb_too(
    network: Network, make_model: MakeModel, peak: Callable[[], int], autojump_clock: trio.testing.MockClock
) -> None:
    """Of an error's body no more than 64 KiB are unpacked."""
    packed = gzip.compress(b"x" * 64 * MIB)
    network.server.replies = [answer(500, packed, ["content-encoding: gzip"])]
    before = peak()
    with pytest.raises(ModelServerError, match=r"answered 500 .*: x+\.\.\.$"):
        await make_model().turn(HELLO, Heard())

    assert peak() - before < 2 * MIB


def endless(head: str, piece: bytes, mib: int) -> Reply:
    """A body of so many MiB, and a connection that is then closed."""

    async def write(_server: Server, connection: trio.abc.Stream) -> bool:
        await connection.send_all(head.encode())
        for _ in range(mib * MIB // len(piece)):
            await connection.send_all(piece)
            await trio.testing.wait_all_tasks_blocked()  # a pipe in memory would hold it all
        return False

    return write


@pytest.mark.slow
@pytest.mark.parametrize(
    ("head", "piece", "said"),
    [
        (OK + "\r\n", b"x" * MIB, "a line or an event of the stream is longer than 16777216 bytes"),
        (
            OK + "\r\n",
            (b"data: " + b"x" * 1000 + b"\n") * 1000,
            "a line or an event of the stream is longer than 16777216 bytes",
        ),
        (OK + "\r\n{", b"x" * MIB, "sent a body of more than 16777216 bytes"),
        ("HTTP/1.1 500 X\r\n\r\n", b"x" * MIB, r"answered 500 \(Internal Server Error\): x+\.\.\.$"),
    ],
)
async def test_a_hundred_mib_are_not_kept(
    head: str,
    piece: bytes,
    said: str,
    network: Network,
    make_model: MakeModel,
    peak: Callable[[], int],
    autojump_clock: trio.testing.MockClock,
) -> None:
    """One line, one event, one body, one error: each is given up long before it is read."""
    network.server.replies = [endless(head, piece, 100)]
    before = peak()
    with pytest.raises(ModelError, match=said):
        await make_model().turn(HELLO, Heard())

    assert 1 == network.closed
    assert peak() - before < 48 * MIB


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ("220 mail.example.com ESMTP\r\n\r\n", "does not speak HTTP: illegal status line"),
        ("HTTP/1.1 nonsense\r\n\r\n", "does not speak HTTP: illegal status line"),
        ("\x16\x03\x01\x02\x00\x01\r\n\r\n", "does not speak HTTP: illegal status line"),
        ("HTTP/1.1 200 OK\r\nno header\r\n\r\n", "does not speak HTTP: illegal header line"),
        ("HTTP/1.1 200 OK\r\nx: " + "y" * 200_000, "does not speak HTTP: "),
        ("HTTP/1.1 200 OK\r\n" + "x: y\r\n" * 40_000, "does not speak HTTP: "),
        (OK + "content-length: many\r\n\r\n", "does not speak HTTP: bad Content-Length"),
        (OK + "content-length: 3\r\ncontent-length: 4\r\n\r\n", "does not speak HTTP: conflicting Content-Length"),
        (OK + "transfer-encoding: rot13\r\n\r\n", "does not speak HTTP: "),
        (CHUNKED + "what?\r\n", "does not speak HTTP: illegal chunk header"),
        (CHUNKED + "-5\r\nhello\r\n", "does not speak HTTP: illegal chunk header"),
        (CHUNKED + "2\r\nhello\r\n", "does not speak HTTP: malformed chunk footer"),
    ],
)
async def test_what_is_no_http_is_named(
    sent: str, said: str, network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """A server that breaks the protocol's rules would do it again: the error says so, and the connection is closed."""
    network.server.replies = [raw(sent)]
    with pytest.raises(ModelReplyError, match=said) as caught:
        await make_model(retries=2).turn(HELLO, Heard())

    assert not caught.value.retryable
    assert (1, 1) == (network.server.connections, network.closed)


@pytest.mark.parametrize(
    "reply",
    [
        raw(OK, "content-length: 9999\r\n\r\n", HI[0]),
        raw(CHUNKED, f"{len(HI[0]):x}\r\n{HI[0]}\r\n"),
        raw(CHUNKED, f"ffff\r\n{HI[0]}"),
        raw(OK, "\r\n", HI[0]),
        raw("HTTP/1.0 200 OK\r\n\r\n", HI[0]),
        stream(HI[0]),
    ],
)
async def test_a_body_that_ends_too_soon_is_lost(
    reply: Reply, network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """Whatever framing promised more, or none did: half a reply never passes for an answer."""
    network.server.replies = [reply]
    with pytest.raises(ModelError) as caught:
        await make_model().turn(HELLO, Heard())

    assert caught.value.partial is not None
    assert ("He", "lost", True) == (caught.value.partial.text, caught.value.partial.end, caught.value.retryable)


@pytest.mark.parametrize(
    "reply",
    [
        raw("HTTP/1.0 200 OK\r\n\r\n", WHOLE),
        raw("HTTP/1.1 200\r\n\r\n", WHOLE),
        raw("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n", OK, "\r\n", WHOLE),
        raw(OK, f"content-length: {len(WHOLE)}\r\n\r\n", WHOLE + b"more than was said"),
        raw(OK, f"content-length: {len(WHOLE)}\r\ncontent-length: {len(WHOLE)}\r\n\r\n", WHOLE),
        raw(CHUNKED, f"{len(WHOLE):X};name=value\r\n".encode() + WHOLE + b"\r\n0\r\ntrailer: x\r\n\r\n"),
        raw(OK, "\r\n", WHOLE, "data: [DONE]\n\n" * 50, "rest"),
        raw(OK, "x: \x80\xff\r\nset-cookie: a=b\r\n\r\n".encode("latin-1"), WHOLE),
    ],
)
async def test_odd_but_legal_replies_are_read(
    reply: Reply, network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """Bodies that end with the connection, interim replies, more bytes than announced; and the next call works."""
    network.server.replies = [reply, stream(*HI)]
    model = make_model()

    assert HELLO_TURN == await model.turn(HELLO, Heard())
    assert HELLO_TURN == await model.turn(HELLO, Heard())


async def test_a_cookie_is_not_sent_back(
    network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """One call tells the server nothing of another."""
    network.server.replies = [answer(429, "{}", ["set-cookie: a=b"]), stream(*HI)]
    await make_model(retries=1).turn(HELLO, Heard())

    assert ["cookie" in request.headers for request in network.server.requests] == [False, False]


async def test_a_body_that_never_ends_is_left_behind(
    network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """After the end signal nothing is read that goes on for ever; without one, the call has its deadline."""
    comments = [step for _ in range(2000) for step in (": ka\n\n", Pause(1))]
    network.server.replies = [stream(*HI, *comments), stream(HI[0], *comments)]
    model = make_model(call_timeout_seconds=500)

    assert HELLO_TURN == await model.turn(HELLO, Heard())
    assert trio.current_time() < 1
    with pytest.raises(ModelTimeout, match="longer than 500 s"):
        await model.turn(HELLO, Heard())


SURROGATE = 'data: {"choices": [{"delta": {"content": "a\\ud83d"}}]}\n\n'
REST = 'data: {"choices": [{"delta": {"content": "\\ude00b\\udc00"}}]}\n\n'


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([SURROGATE, REST, STOP], "a\U0001f600b\ufffd"),
        ([SURROGATE, STOP], "a\ufffd"),
        (['data: {"x": NaN, "y": -Infinity, "choices": [{"delta": {"content": "a"}}]}\n\n', STOP], "a"),
        (['data: {"choices": [], "choices": [{"delta": {"content": "a", "content": "b"}}]}\n\n', STOP], "b"),
        (['data: {"n": ' + "9" * 400 + ', "choices": [{"delta": {"content": "a"}}]}\n\n', STOP], "a"),
        ([b'data: {"choices": [{"delta": {"content": "\xff"}}]}\n\n', STOP], "\ufffd"),
        (['data: {"choices": [{"delta": {"content": "\\u0000"}}]}\n\n', STOP], "\0"),
    ],
)
async def test_json_may_be_odd(
    events: list[str | bytes],
    expected: str,
    network: Network,
    make_model: MakeModel,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Half characters are put together or replaced, NaN passes, the last of equal keys holds; all of it is UTF-8."""
    network.server.replies = [stream(*events)]
    turn = await make_model().turn(HELLO, Heard())

    assert expected == turn.text
    turn.text.encode()


@pytest.mark.parametrize("count", ["NaN", "Infinity", "1e999", "-5", '"many"', "[]", "null", "true"])
async def test_a_count_that_is_none_stays_unknown(
    count: str, network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """Usage is what was reported as a number, and nothing else."""
    usage = f'data: {{"choices": [], "usage": {{"prompt_tokens": {count}, "completion_tokens": 3}}}}\n\n'
    network.server.replies = [stream(HI[0], chunk(finish="stop"), usage, DONE)]

    assert Usage(output_tokens=3) == (await make_model().turn(HELLO, Heard())).usage


@pytest.mark.parametrize(
    "data",
    ["null", "[]", "3", '"text"', "{}", '{"choices": {"0": {}}}', '{"choices": [null, 3, "x", [], {}]}', "[[{}]]"],
)
@pytest.mark.parametrize("whole", [False, True])
async def test_json_of_another_shape_does_not_crash(
    data: str, whole: bool, network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """Whatever the shape, in a stream or whole: an empty turn, or an error of the model's."""
    network.server.replies = [stream(data if whole else f"data: {data}\n\n", "" if whole else DONE)]
    try:
        turn = await make_model().turn(HELLO, Heard())
    except ModelError:
        turn = Turn()

    assert () == turn.parts


async def test_json_that_nests_for_ever_is_an_error(
    network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """It costs a reply, not the process."""
    network.server.replies = [stream("data: " + '{"a":' * 100_000 + "\n\n")]
    with pytest.raises(ModelReplyError, match="is no JSON object"):
        await make_model().turn(HELLO, Heard())


@pytest.mark.parametrize(
    ("status", "kind"), [(429, ModelRateLimited), (401, ModelAuthError), (413, ModelRefused), (503, ModelServerError)]
)
async def test_a_status_comes_before_the_request_is_read(
    status: int,
    kind: type[ModelRefused],
    network: Network,
    make_model: MakeModel,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A server that does not care for the body is heard all the same, whether its own body is whole or cut."""
    network.server.replies = [
        answer(status, event({}), ["connection: close"]),
        raw(f"HTTP/1.1 {status} X\r\ncontent-length: 500\r\nretry-after: 3\r\n\r\n" + '{"error"'),
    ]
    for expected in (None, 3):
        with pytest.raises(kind) as caught:
            await make_model().turn(HELLO, Heard())

        assert (status, expected) == (caught.value.status, caught.value.retry_after_seconds)
