"""The head of a request: bounded, read in pieces of any size, and never quoted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.gateway._head import MAX_HEAD_BYTES, Head, HeadError, HeadReader
from tests.actors.gateway.raw import BEARER, TOKEN, head, upgrade


def read(data: bytes, piece: int = 4096) -> Head | int | None:
    """The head, the status it is refused with, or `None` if it is not whole."""
    reader = HeadReader()
    try:
        for at in range(0, len(data), piece):
            if (found := reader.feed(data[at : at + piece])) is not None:
                return found
    except HeadError as error:
        return error.status
    return None


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 64, 4096])
def test_pieces_of_any_size(piece: int) -> None:
    """A head is the same, however it arrives."""
    found = read(upgrade(), piece)

    assert isinstance(found, Head)
    assert ("GET", "/ws", True) == (found.method, found.path, found.wants_upgrade)
    assert found == read(upgrade())


def padded(size: int) -> bytes:
    """A head of exactly this many bytes."""
    empty = head("/ws", ("X", ""))
    return head("/ws", ("X", "x" * (size - len(empty))))


@pytest.mark.parametrize("piece", [1, 1000, 4096, 100_000])
def test_the_longest_head(piece: int) -> None:
    """16 KiB are taken and one byte more is not, in whatever pieces it comes; what follows a head does not count."""
    assert isinstance(read(padded(MAX_HEAD_BYTES), piece), Head)
    assert isinstance(read(padded(MAX_HEAD_BYTES) + b"x" * 100_000, piece), Head)
    assert 431 == read(padded(MAX_HEAD_BYTES + 1), piece)
    assert 431 == read(padded(1_000_000), piece)
    assert 431 == read(b"GET /" + b"x" * 1_000_000, piece)


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 \r\n\r\n",
        b"\x00" * 64 + b"\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /ws\r\n\r\n",
        b"GET /ws HTTP/1.1\r\n\r\n",
        b"GET /ws HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        b"GET /ws HTTP/1.1\r\nHost : a\r\n\r\n",
        b"GET /ws HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET ws HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /ws HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET /ws HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"G\xc3T /ws HTTP/1.1\r\nHost: a\r\n\r\n",
    ],
)
def test_what_is_no_request(data: bytes) -> None:
    """What cannot be read is 400."""
    assert 400 == read(data)


@pytest.mark.parametrize("data", [b"", b"GET /ws HTTP/1.1\r\nHost: lo"])
def test_a_connection_that_ends_before_its_request(data: bytes) -> None:
    """The end of the stream is an error, not something to wait for."""
    reader = HeadReader()
    if data:
        reader.feed(data)
    with pytest.raises(HeadError) as caught:
        reader.feed(b"")

    assert 400 == caught.value.status


def test_nothing_secret_is_shown() -> None:
    """Neither the repr of a head nor an error about one shows a header or a query."""
    found = read(head(f"/ws?token={TOKEN}", BEARER, ("Cookie", f"a={TOKEN}")))
    reader = HeadReader()
    with pytest.raises(HeadError) as caught:
        reader.feed(head("/ws", BEARER, ("X", "a\x00b")) + b"")

    assert isinstance(found, Head)
    assert TOKEN not in repr(found)
    assert "Cookie" not in repr(found)
    assert TOKEN not in f"{caught.value!r}{caught.value.__context__ and ''}"


def test_what_comes_behind_a_head_is_kept() -> None:
    """Bytes that a client sends too early are there for who goes on."""
    reader = HeadReader()
    reader.feed(upgrade() + b"early")

    assert b"early" == reader.rest


@pytest.mark.parametrize("piece", [1, 5, 4096])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body(piece: int, chunked: bool) -> None:
    """A body is read to its end, by its length or in chunks."""
    body = b"4\r\nbody\r\n0\r\n\r\n" if chunked else b"body"
    field = ("Transfer-Encoding", "chunked") if chunked else ("Content-Length", "4")
    reader = HeadReader()
    whole = reader.feed(head("/session", field, method="POST"))
    found = None
    for at in range(0, len(body), piece):
        found = reader.body(body[at : at + piece])

    assert whole is not None
    assert b"body" == found


def test_a_body_that_came_with_its_head() -> None:
    """Nothing more need come."""
    reader = HeadReader()
    reader.feed(head("/session", ("Content-Length", "4"), method="POST", body=b"body"))

    assert b"body" == reader.body()


def test_no_body() -> None:
    """A request that has none has an empty one at once."""
    reader = HeadReader()
    reader.feed(head("/session", method="POST"))

    assert b"" == reader.body()


@pytest.mark.parametrize(
    ("field", "body", "status"),
    [
        (("Content-Length", "5000"), b"x" * 5000, 413),
        (("Transfer-Encoding", "chunked"), b"1388\r\n" + b"x" * 5000, 413),
        (("Transfer-Encoding", "chunked"), b"nonsense\r\n", 400),
        (("Content-Length", "5"), b"", 400),
    ],
)
def test_a_body_that_may_not_be(field: tuple[str, str], body: bytes, status: int) -> None:
    """Too long, unreadable or cut."""
    reader = HeadReader()
    reader.feed(head("/session", field, method="POST"))
    with pytest.raises(HeadError) as caught:
        reader.body(body)

    assert status == caught.value.status


@given(st.binary(max_size=300), st.integers(1, 40))
def test_any_bytes_at_all(data: bytes, piece: int) -> None:
    """Whatever comes is a head, a refusal, or not whole: nothing else is raised."""
    for begin in (b"", b"GET /ws HTTP/1.1\r\n", b"POST /session HTTP/1.1\r\nHost: a\r\n"):
        found = read(begin + data, piece)

        assert found is None or isinstance(found, Head) or found in {400, 431, 501}
