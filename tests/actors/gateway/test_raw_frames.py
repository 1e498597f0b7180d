"""RFC 6455, sections 5.2 to 7, by hand: what becomes of each frame, with which close code, and that no task is left.

Each case is sent after `hello`, and followed by a command: its answer tells that the connection goes on.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio.testing

from tests.actors.gateway.raw import (
    BINARY,
    PING,
    PONG,
    TEXT,
    Client,
    a_client,
    a_gateway,
    close,
    command,
    frame,
)

CONTINUATION, CLOSE = 0, 8
OPEN = "open"
MOST = 65_536
SMALL = 600
"""Cases up to this many bytes are sent byte by byte too."""


def fragments(*parts: bytes, opcode: int = TEXT) -> bytes:
    """A message in several frames."""
    last = len(parts) - 1
    return b"".join(frame(opcode if at == 0 else CONTINUATION, part, fin=at == last) for at, part in enumerate(parts))


def opcodes() -> Iterator[tuple[str, bytes, int | str]]:
    for opcode in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15):
        yield f"reserved opcode {opcode}", frame(opcode), 1002
        yield f"reserved opcode {opcode} with a payload", frame(opcode, b"x"), 1002
    yield "text", frame(TEXT, b"{}"), OPEN
    yield "empty text", frame(TEXT), OPEN
    yield "binary", frame(BINARY, b"{}"), 1003
    yield "empty binary", frame(BINARY), 1003
    yield "binary in fragments", fragments(b"{", b"}", opcode=BINARY), 1003


def reserved_bits() -> Iterator[tuple[str, bytes, int | str]]:
    for bits in range(1, 8):
        yield f"reserved bits {bits}", frame(TEXT, b"{}", rsv=bits), 1002
    for name, opcode in (("ping", PING), ("pong", PONG), ("close", CLOSE), ("binary", BINARY)):
        yield f"a reserved bit of a {name}", frame(opcode, rsv=4), 1002
    yield "a reserved bit of a continuation", frame(TEXT, b"{", fin=False) + frame(CONTINUATION, b"}", rsv=4), 1002


def masking() -> Iterator[tuple[str, bytes, int | str]]:
    for name, opcode in (("text", TEXT), ("binary", BINARY), ("ping", PING), ("pong", PONG), ("close", CLOSE)):
        yield f"unmasked {name}", frame(opcode, masked=False), 1002
    yield "unmasked text with a payload", frame(TEXT, b"{}", masked=False), 1002
    yield "unmasked continuation", frame(TEXT, b"{", fin=False) + frame(CONTINUATION, b"}", masked=False), 1002


def lengths() -> Iterator[tuple[str, bytes, int | str]]:
    for size in (1, 125, 126, 127, 65_535, MOST):
        yield f"{size} bytes", frame(TEXT, b"x" * size), OPEN
    yield "one byte too many", frame(TEXT, b"x" * (MOST + 1)), 1009
    yield "one byte too many is announced", frame(TEXT, announced=MOST + 1), 1009
    yield "1 MB of objects", frame(TEXT, b"[" + b"{}," * 350_000 + b"{}]"), 1009
    yield "1 GiB is announced", frame(TEXT, announced=2**30), 1009
    yield "2 to the power of 62 is announced", frame(TEXT, announced=2**62), 1009
    yield "the highest bit of a length", frame(TEXT, announced=2**63, size=8), 1002
    yield "125 in 2 bytes", frame(TEXT, b"x" * 125, size=2), 1002
    yield "125 in 8 bytes", frame(TEXT, b"x" * 125, size=8), 1002
    yield "0 in 2 bytes", frame(TEXT, size=2), 1002
    yield "126 in 8 bytes", frame(TEXT, b"x" * 126, size=8), 1002
    yield "65535 in 8 bytes", frame(TEXT, b"x" * 65_535, size=8), 1002
    yield "an announced length of a binary", frame(BINARY, announced=2**40), 1009


def control() -> Iterator[tuple[str, bytes, int | str]]:
    for name, opcode in (("ping", PING), ("pong", PONG)):
        yield f"empty {name}", frame(opcode), OPEN
        yield f"{name} of 125 bytes", frame(opcode, b"x" * 125), OPEN
        yield f"{name} that is no text", frame(opcode, b"\xff\x00\xfe"), OPEN
    for name, opcode in (("ping", PING), ("pong", PONG), ("close", CLOSE)):
        yield f"{name} of 126 bytes", frame(opcode, b"x" * 126), 1002
        yield f"{name} of 1 GiB", frame(opcode, announced=2**30), 1002
        yield f"{name} with its length in 2 bytes", frame(opcode, b"xx", size=2), 1002
        yield f"{name} in fragments", frame(opcode, b"x", fin=False) + frame(CONTINUATION, b"x"), 1002
    yield "a hundred pings", frame(PING, b"x") * 100, OPEN
    yield "endless pings", frame(PING, b"x") * 120, 4014
    yield "endless pongs", frame(PONG) * 120, 4014


def fragmentation() -> Iterator[tuple[str, bytes, int | str]]:
    yield "two fragments", fragments(b"{", b"}"), OPEN
    yield "an empty fragment first", fragments(b"", b"{}"), OPEN
    yield "an empty fragment last", fragments(b"{}", b""), OPEN
    yield "64 fragments", fragments(*[b" "] * 64), OPEN
    yield "64 fragments of 1 KiB", fragments(*[b" " * 1024] * 64), OPEN
    yield "64 fragments, twice", fragments(*[b" "] * 64) * 2, OPEN
    yield "65 fragments", fragments(*[b" "] * 65), 1009
    yield "2000 empty fragments", frame(TEXT, fin=False) + frame(CONTINUATION, fin=False) * 2000, 1009
    yield "2000 empty fragments of a binary", frame(BINARY, fin=False) + frame(CONTINUATION, fin=False) * 2000, 1009
    yield "too many bytes in two", fragments(b" " * MOST, b" "), 1009
    yield "too many bytes are announced in the second", frame(TEXT, b" ", fin=False) + frame(0, announced=MOST), 1009
    yield "a continuation of nothing", frame(CONTINUATION, b"{}"), 1002
    yield "a first continuation of nothing", frame(CONTINUATION, b"{}", fin=False), 1002
    yield "a continuation of what is whole", frame(TEXT, b"{}") + frame(CONTINUATION, b"{}"), 1002
    yield "a text in a text", frame(TEXT, b"{", fin=False) + frame(TEXT, b"}"), 1002
    yield "a binary in a text", frame(TEXT, b"{", fin=False) + frame(BINARY, b"}"), 1002
    yield "a text in a binary", frame(BINARY, b"{", fin=False) + frame(TEXT, b"}"), 1002
    yield "a ping between", frame(TEXT, b"{", fin=False) + frame(PING, b"p") + frame(CONTINUATION, b"}"), OPEN
    yield "a pong between", frame(TEXT, b"{", fin=False) + frame(PONG, b"p") + frame(CONTINUATION, b"}"), OPEN
    yield "a close between", frame(TEXT, b"{", fin=False) + close(1000) + frame(CONTINUATION, b"}"), 1000


def texts() -> Iterator[tuple[str, bytes, int | str]]:
    invalid = {
        "a lone continuation": b"\x80",
        "an overlong slash": b"\xc0\xaf",
        "an overlong zero": b"\xc0\x80",
        "an overlong character of 3 bytes": b"\xe0\x80\xaf",
        "an overlong character of 4 bytes": b"\xf0\x80\x80\xaf",
        "a high surrogate": b"\xed\xa0\x80",
        "a low surrogate": b"\xed\xbf\xbf",
        "a pair of surrogates": b"\xed\xa0\xbd\xed\xb8\x80",
        "beyond Unicode": b"\xf4\x90\x80\x80",
        "fe": b"\xfe",
        "ff": b"\xff",
        "a sequence of 5 bytes": b"\xf8\x88\x80\x80\x80",
        "a sequence broken off": b"\xe2\x82x",
    }
    for name, data in invalid.items():
        yield f"UTF-8: {name}", frame(TEXT, b"x" + data + b"y"), 1007
    yield "UTF-8: cut at the end", frame(TEXT, b"x\xe2\x82"), 1007
    yield "UTF-8: at the very beginning", frame(TEXT, b"\xff"), 1007
    yield "UTF-8: in the first fragment", frame(TEXT, b"\xff", fin=False), 1007
    yield "UTF-8: in a later fragment", fragments(b"x", b"y\xff"), 1007
    yield "UTF-8: over a boundary", fragments(b"\xe2", b"x"), 1007
    yield "UTF-8: over an empty fragment", fragments(b"\xe2", b"", b"x"), 1007
    yield "UTF-8: cut at the end of fragments", fragments(b"x", b"\xe2\x82"), 1007
    for at in range(1, 4):
        face = "\N{GRINNING FACE}".encode()
        yield f"UTF-8: one character in two fragments, at {at}", fragments(face[:at], face[at:]), OPEN
    yield "UTF-8: one character in four fragments", fragments(*[bytes([b]) for b in "\N{GRINNING FACE}".encode()]), OPEN
    yield "UTF-8: a null", frame(TEXT, b"\0"), OPEN
    yield "UTF-8: a byte order mark", frame(TEXT, b"\xef\xbb\xbf{}"), OPEN
    yield "UTF-8: characters of 3 bytes that are too many bytes", frame(TEXT, "\u20ac".encode() * 30_000), 1009


def closing() -> Iterator[tuple[str, bytes, int | str]]:
    for code in (1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 3000, 3999, 4000, 4999):
        yield f"close with {code}", close(code), code
    for code in (0, 1, 999, 1004, 1005, 1006, 1014, 1015, 1016, 1100, 2000, 2999, 5000, 65_535):
        yield f"close with {code}", close(code), 1002
    yield "close without a code", close(), 1005
    yield "close with one byte", frame(CLOSE, b"\x03"), 1002
    yield "close with a reason", close(1000, b"bye"), 1000
    yield "close with the longest reason", close(1000, b"x" * 123), 1000
    yield "close with a reason that is no text", close(1000, b"\xff"), 1007
    yield "close with a reason that is cut", close(1000, b"\xe2\x82"), 1007
    yield "close twice", close(1000) + close(1001), 1000
    yield "a text after a close", close(1000) + command(7, "ping"), 1000
    yield "a ping after a close", close(1000) + frame(PING, b"late"), 1000
    yield "nonsense after a close", close(1000) + b"\xff" * 100, 1000


CASES = [
    case
    for group in (opcodes, reserved_bits, masking, lengths, control, fragmentation, texts, closing)
    for case in group()
]


async def converse(client: Client, *pieces: bytes) -> None:
    """Say hello, then this, then what tells whether the connection goes on."""
    await client.upgrade()
    await client.send(command(1, "hello"))
    await client.send(*pieces)
    await client.send(command(2, "ping"))
    await client.more(3)


def outcome(client: Client) -> int | str | None:
    """What became of it: open, a close code, or nothing at all."""
    if client.code is not None:
        return client.code
    return OPEN if any(message.get("id") == 2 and "result" in message for message in client.messages) else None


@pytest.mark.parametrize(("sent", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
async def test_frames(sent: bytes, expected: int | str, autojump_clock: trio.testing.MockClock) -> None:
    """Each frame goes on or ends its connection with the code that the RFC names; nothing of it is left behind."""
    async with a_gateway() as gateway, a_client(gateway) as client:
        await converse(client, sent)

        assert expected == outcome(client)


PIECEMEAL = [case for case in CASES if len(case[1]) <= SMALL]


@pytest.mark.parametrize(("sent", "expected"), [case[1:] for case in PIECEMEAL], ids=[case[0] for case in PIECEMEAL])
async def test_frames_byte_by_byte(sent: bytes, expected: int | str, autojump_clock: trio.testing.MockClock) -> None:
    """The same where each byte comes alone."""
    async with a_gateway() as gateway, a_client(gateway) as client:
        await converse(client, *[bytes([byte]) for byte in sent])

        assert expected == outcome(client)


def test_there_is_a_case_for_everything() -> None:
    """The table is as long as it was meant to be."""
    assert len(CASES) == len({case[0] for case in CASES})
    assert len(CASES) >= 120


async def test_a_ping_is_answered_with_its_payload(autojump_clock: trio.testing.MockClock) -> None:
    """Also between the fragments of a message, and before that is whole."""
    async with a_gateway() as gateway, a_client(gateway) as client:
        await converse(client, frame(TEXT, b"{", fin=False), frame(PING, b"\xffone"), frame(CONTINUATION, b"}"))

        assert [b"\xffone"] == [sent.payload for sent in client.frames if sent.opcode == PONG]


async def test_nothing_follows_a_close(autojump_clock: trio.testing.MockClock) -> None:
    """The answer to a close frame is the last frame of the server."""
    async with a_gateway() as gateway, a_client(gateway) as client:
        await converse(client, command(5, "ping"), close(1000), command(6, "ping"), frame(PING))

        assert CLOSE == client.frames[-1].opcode
        assert 6 not in [message.get("id") for message in client.messages]


async def test_what_was_whole_before_is_heard(autojump_clock: trio.testing.MockClock) -> None:
    """A frame that is too big takes nothing with it that came before."""
    async with a_gateway() as gateway, a_client(gateway) as client:
        await client.upgrade()
        await client.send(frame(PING, b"before") + frame(TEXT, announced=2**30))
        await client.more(3)

        assert [b"before"] == [sent.payload for sent in client.frames if sent.opcode == PONG]
        assert 1009 == client.code


@pytest.mark.parametrize("sent", [b"\x81", b"\x81\xfe\x01", frame(TEXT, b"{}")[:-1], frame(TEXT, b"{", fin=False)])
async def test_half_a_frame_and_silence(sent: bytes, autojump_clock: trio.testing.MockClock) -> None:
    """A client that stops in the middle of a frame can answer no ping either: it is dropped."""
    async with a_gateway() as gateway, a_client(gateway) as client:
        await converse(client)
        await client.send(sent)
        with trio.fail_after(100):
            await client.all()
