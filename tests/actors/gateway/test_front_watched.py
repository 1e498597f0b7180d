"""The stream under a WebSocket, the frames it lets pass, and the counts: what the library behind does not look after."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from actors.gateway._frames import FrameWatch
from actors.gateway._limits import Crowd, DoorLimits, FullError, TokenBucket, address_group
from actors.gateway._watched import WatchedStream, linger
from protocol.wire import WireLimits
from tests.actors.gateway.raw import Choked, SocketLike, frame, parse_frames

Clock = trio.testing.MockClock


def watch(**limits: int) -> FrameWatch:
    return FrameWatch(WireLimits(**limits), lambda: 0.0)


def watched(stream: trio.abc.Stream, early: bytes = b"") -> WatchedStream:
    return WatchedStream(stream, watch(), b"head", early)


async def test_what_a_client_sends_is_held_until_it_is_answered(autojump_clock: Clock) -> None:
    """First comes the head, then nothing until something was sent, then what came with the head, then the rest."""
    ours, theirs = trio.testing.memory_stream_pair()
    stream = watched(SocketLike(theirs), early=frame(9, b"1"))
    await ours.send_all(frame(9, b"2"))
    head = await stream.receive_some()
    with trio.move_on_after(1) as waiting:
        await stream.receive_some()
    await stream.send_all(b"HTTP/1.1 101 ...")

    assert b"head" == head
    assert waiting.cancelled_caught
    assert [frame(9, b"1"), frame(9, b"2")] == [await stream.receive_some(), await stream.receive_some()]


async def test_nothing_follows_a_frame_that_was_cut(autojump_clock: Clock) -> None:
    """After a send that did not end no other one begins: neither of the library, nor a close frame of ours."""
    ours, theirs = trio.testing.memory_stream_pair()
    choked = Choked(theirs, room=20)
    stream = watched(choked)
    await stream.send_all(b"HTTP/1.1 101")
    with trio.move_on_after(1):
        await stream.send_all(b"a frame that does not fit")
    choked.room = 1000
    stream.refusal = lambda: (1002, "a violation")
    with pytest.raises(trio.BrokenResourceError, match="cut"):
        await stream.send_all(b"another one")
    await stream.aclose()

    assert b"HTTP/1.1 101" == await ours.receive_some()
    assert b"" == await ours.receive_some()


@pytest.mark.parametrize(
    ("code", "told"), [(1002, True), (1003, True), (1007, True), (1000, False), (1006, False), (1009, False)]
)
async def test_a_violation_is_told(code: int, told: bool, autojump_clock: Clock) -> None:
    """Where the library drops the stream for a fault of the client, a close frame says so; for other ends it does not."""
    ours, theirs = trio.testing.memory_stream_pair()
    stream = watched(SocketLike(theirs))
    await stream.send_all(b"HTTP/1.1 101")
    await ours.receive_some()
    stream.refusal = lambda: (code, "what was wrong: é" + "x" * 200)
    await stream.aclose()
    sent = list(parse_frames(bytes(await ours.receive_some())))

    assert [code] * told == [part.code for part in sent]
    assert all(len(part.payload) <= 125 for part in sent)


async def test_who_is_told_has_a_second_to_read_it(autojump_clock: Clock) -> None:
    """The stream is dropped when the client has gone, but it is not waited for longer."""
    took = []
    for goes in (True, False):
        ours, theirs = trio.testing.memory_stream_pair()
        stream = watched(SocketLike(theirs))
        await stream.send_all(b"HTTP/1.1 101")
        await ours.send_all(b"\xff" * 1000)
        if goes:
            await ours.send_eof()
        stream.refusal = lambda: (1002, "a violation")
        begun = trio.current_time()
        await stream.aclose()
        took.append(trio.current_time() - begun)

    assert [0, 1] == took


async def test_a_close_is_said_once(autojump_clock: Clock) -> None:
    """Where the library has sent its close frame none follows, and however often the stream is closed."""
    ours, theirs = trio.testing.memory_stream_pair()
    stream = watched(SocketLike(theirs))
    stream.refusal = lambda: (1002, "a violation")
    await stream.send_all(b"HTTP/1.1 101")
    await stream.send_all(b"\x88\x00")
    await stream.aclose()
    await stream.aclose()

    assert b"HTTP/1.1 101\x88\x00" == await ours.receive_some()


async def test_parting_takes_a_second_at_most(autojump_clock: Clock) -> None:
    """A client that reads nothing, or that never stops to send, is dropped; a cancel changes nothing of it."""
    for room, cancelled in ((12, False), (1000, False), (1000, True)):
        ours, theirs = trio.testing.memory_stream_pair()
        stream = watched(Choked(theirs, room=room))
        await stream.send_all(b"HTTP/1.1 101")
        stream.refusal = lambda: (1002, "a violation")
        begun = trio.current_time()
        with trio.CancelScope() as scope:
            if cancelled:
                scope.cancel()
            await stream.aclose()

        assert trio.current_time() - begun <= 1.001
        with pytest.raises(trio.BrokenResourceError):
            await ours.send_all(b"x")


async def test_a_send_that_goes_on_is_waited_for(autojump_clock: Clock) -> None:
    """The close frame comes behind a frame that is being sent, not into it."""
    ours, theirs = trio.testing.lockstep_stream_pair()
    stream = watched(theirs)
    stream.refusal = lambda: (1002, "a violation")
    got = b""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stream.send_all, b"HTTP/1.1 101")
        await ours.receive_some()
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(stream.send_all, b"\x82\x04data")
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(stream.aclose)
        await trio.testing.wait_all_tasks_blocked()
        while data := await ours.receive_some():
            got += data

    assert [2, 8] == [part.opcode for part in parse_frames(got)]


async def test_the_answer_to_a_close_is_waited_for(autojump_clock: Clock) -> None:
    """Who drops the stream while the library answers the client's close frame does not cut that off."""
    ours, theirs = trio.testing.lockstep_stream_pair()
    stream = watched(theirs)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stream.send_all, b"HTTP/1.1 101")
        await ours.receive_some()
        await trio.testing.wait_all_tasks_blocked()
        stream.refusal = lambda: (1000, "")
        nursery.start_soon(stream.aclose)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(stream.send_all, b"\x88\x00")
        got = await ours.receive_some()

    assert b"\x88\x00" == got
    with pytest.raises(trio.BrokenResourceError):
        await stream.send_all(b"\x81\x00")


async def test_lingering_is_bounded(autojump_clock: Clock) -> None:
    """What a client still sends is read to its end; but no more than so much, and for a second."""
    told = []
    for size, ends in ((1000, True), (1000, False), (10_000_000, False)):
        ours, theirs = trio.testing.memory_stream_pair()
        await ours.send_all(b"x" * size)
        if ends:
            await ours.send_eof()
        begun = trio.current_time()
        await linger(SocketLike(theirs))
        told.append(trio.current_time() - begun)

    assert [0, 1, 0] == told


@given(st.lists(st.tuples(st.sampled_from([0, 1, 2, 9]), st.integers(0, 300), st.booleans()), max_size=20), st.data())
def test_what_may_pass_does_not_depend_on_its_pieces(parts: list[tuple[int, int, bool]], data: st.DataObject) -> None:
    """In pieces of any size the same bytes pass, and the same frame is the first that may not."""
    sent = b"".join(frame(opcode, b"x" * size, fin=fin) for opcode, size, fin in parts)
    whole, pieces = watch(message_bytes=600, message_fragments=4), watch(message_bytes=600, message_fragments=4)
    passing = whole.passing(sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sent)), max_size=10)))
    at = 0
    for end in [*cuts, len(sent)]:
        if pieces.excess is None:
            at += pieces.passing(sent[at:end])

    assert whole.excess == pieces.excess
    # Of a header that comes in pieces the first ones have passed already: nothing can be made of them.
    assert 0 <= at - passing <= 14
    assert (at == passing == len(sent)) == (whole.excess is None)


def test_a_bucket() -> None:
    """So many at once, then so many a second; whoever is too early is told when to come, and costs the others nothing."""
    bucket = TokenBucket(2.0, 3)
    at_once = [bucket.take(10.0) for _ in range(5)]

    assert [0.0, 0.0, 0.0, 0.5, 0.5] == at_once
    assert [0.25, 0.0, 0.5] == [bucket.take(10.25), bucket.take(10.5), bucket.take(10.5)]
    assert [0.0, 0.0, 0.0, 0.5] == [bucket.take(1000.0) for _ in range(4)]


def test_counts_are_given_back() -> None:
    """Who goes, or fails, is no longer counted; who was refused never was."""
    crowd = Crowd(DoorLimits(connections=2, connections_per_address=1))
    with crowd.connection("a"):
        with pytest.raises(FullError, match="from this address"), crowd.connection("a"):
            pass
        with pytest.raises(ZeroDivisionError), crowd.connection("b"):
            1 / 0  # noqa: B018
        with crowd.connection("b"), pytest.raises(FullError, match="too many connections"), crowd.connection("c"):
            pass
    with crowd.connection("a"):
        assert {"a": 1} == dict(crowd.by_address)
    assert {} == dict(crowd.by_address)


def test_what_counts_as_one_address() -> None:
    """IPv4 as it is, in IPv6 dress too; of IPv6 the /64; anything else as it stands."""
    assert ["203.0.113.1", "203.0.113.1", "2001:db8::/64", "::/64", "x"] == [
        address_group(address) for address in ("203.0.113.1", "::ffff:203.0.113.1", "2001:db8::9", "::1", "x")
    ]
