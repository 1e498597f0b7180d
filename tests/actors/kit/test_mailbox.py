"""The bounded mailbox and its port: what it holds, what it refuses, and what it says of itself."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from actors.kit import ActorCrashed, ActorGone, Mailbox, MailboxFull, MailboxStatistics, Reply, run_once

from .words import Crash, Double, Echo, End, Note, Word


async def test_messages_come_in_order(nursery: trio.Nursery) -> None:
    """Told first is heard first."""
    echo = Echo()
    box: Mailbox[Word] = Mailbox("echo")
    notes = [Note(str(number)) for number in range(5)]
    for note in notes:
        assert box.port.tell(note)
    nursery.start_soon(run_once, echo, box)
    await trio.testing.wait_all_tasks_blocked()

    assert notes == echo.heard


def test_a_teller_is_told_that_it_is_full() -> None:
    """Telling never waits: beyond the capacity it raises, with the actor's name and the number."""
    box: Mailbox[Word] = Mailbox("echo", capacity=2)
    box.port.tell(Note("1"))
    box.port.tell(Note("2"))
    with pytest.raises(MailboxFull, match="echo has 2 messages waiting"):
        box.port.tell(Note("3"))

    assert 2 == box.statistics().waiting
    assert 0 == box.statistics().dead_letters


def test_what_nobody_reads_is_counted() -> None:
    """Messages in the buffer when it closes, and those told after, are dead letters; asks are answered instead."""
    box: Mailbox[Word] = Mailbox("echo", capacity=4)
    replies: list[Reply[int]] = []
    box.port.tell(Note("1"))
    box.port.request(Double(1), replies.append)
    box.port.tell(Note("2"))
    box.close()
    told = box.port.tell(Note("3"))

    assert not told
    assert 3 == box.statistics().dead_letters
    assert ["echo has ended"] == [failure_of(reply) for reply in replies]


def test_closing_twice_is_once() -> None:
    """The first reason stands."""
    box: Mailbox[Word] = Mailbox("echo")
    box.close("it crashed")
    box.close()
    replies: list[Reply[int]] = []
    box.port.request(Double(1), replies.append)
    with pytest.raises(ActorCrashed, match="it crashed"):
        replies[0].result()


async def test_statistics(nursery: trio.Nursery) -> None:
    """Name, what waits, what is open, what was lost, and whether it is over."""
    echo = Echo(hold=True)
    box: Mailbox[Word] = Mailbox("echo", capacity=3)
    box.port.tell(Note("1"))
    fresh = box.statistics()
    nursery.start_soon(run_once, echo, box)
    await trio.testing.wait_all_tasks_blocked()
    box.port.request(Double(1), lambda _: None)
    box.port.request(Double(2), lambda _: None)
    await trio.testing.wait_all_tasks_blocked()
    held = box.statistics()
    echo.held[0].reply.set(2)
    one_left = box.statistics()
    box.port.tell(End())
    await trio.testing.wait_all_tasks_blocked()

    assert MailboxStatistics("echo", 1, 3, 0, 0, False) == fresh
    assert MailboxStatistics("echo", 0, 3, 2, 0, False) == held
    assert MailboxStatistics("echo", 0, 3, 1, 0, False) == one_left
    assert MailboxStatistics("echo", 0, 3, 0, 0, True) == box.statistics()
    with pytest.raises(AttributeError):
        held.waiting = 3  # type: ignore[misc]


async def test_a_request_does_not_wait(nursery: trio.Nursery) -> None:
    """`request` returns at once; `notify` is called, synchronously, when the actor answers."""
    box: Mailbox[Word] = Mailbox("echo")
    told: list[int] = []
    box.port.request(Double(1), lambda reply: told.append(reply.result()))
    before = list(told)
    nursery.start_soon(run_once, Echo(), box)
    await trio.testing.wait_all_tasks_blocked()

    assert [] == before
    assert [2] == told


def test_a_request_to_one_that_has_gone() -> None:
    """It is answered on the spot, with the reason."""
    box: Mailbox[Word] = Mailbox("echo")
    box.close()
    replies: list[Reply[int]] = []
    box.port.request(Double(1), replies.append)

    assert ["echo has ended"] == [failure_of(reply) for reply in replies]


def test_a_request_to_a_full_mailbox() -> None:
    """It is refused like a told message, and `notify` is not called."""
    box: Mailbox[Word] = Mailbox("echo", capacity=1)
    box.port.tell(Note("1"))
    told: list[Reply[int]] = []
    with pytest.raises(MailboxFull):
        box.port.request(Double(1), told.append)
    box.close()

    assert [] == told


async def test_a_crash_answers_requests_too() -> None:
    """Nobody who asked without waiting is forgotten: received or not, `notify` comes."""
    echo = Echo(hold=True)
    box: Mailbox[Word] = Mailbox("echo", capacity=4)
    replies: list[Reply[int]] = []
    box.port.request(Double(1), replies.append)
    box.port.request(Double(2), replies.append)
    box.port.tell(Crash())
    box.port.request(Double(3), replies.append)
    with pytest.raises(ValueError, match="broken"):
        await run_once(echo, box)

    assert ["echo crashed: ValueError"] * 3 == [failure_of(reply) for reply in replies]


async def test_an_answer_that_comes_after_the_end_is_ignored() -> None:
    """A task that still holds an ask when its actor has ended may set it; the asker has its reason already."""
    echo = Echo(hold=True)
    box: Mailbox[Word] = Mailbox("echo")
    replies: list[Reply[int]] = []
    box.port.request(Double(1), replies.append)
    box.port.tell(End())
    await run_once(echo, box)

    assert not echo.held[0].reply.set(2)
    assert ["echo has ended"] == [failure_of(reply) for reply in replies]


def test_names_are_shown() -> None:
    """A person who prints a port or a mailbox sees whose it is."""
    box: Mailbox[Word] = Mailbox("agent-7/budget")

    assert "<Mailbox agent-7/budget>" == repr(box)
    assert "<Port to agent-7/budget>" == repr(box.port)
    assert "agent-7/budget" == box.name == box.port.name


def failure_of(reply: Reply[int]) -> str:
    with pytest.raises((ActorGone, ActorCrashed)) as caught:
        reply.result()
    return str(caught.value)


async def test_a_sender_waits_for_room(nursery: trio.Nursery, autojump_clock: trio.testing.MockClock) -> None:
    """`send` goes as fast as the actor reads, and nothing is lost on the way."""
    box: Mailbox[Word] = Mailbox("slow", capacity=2)
    heard: list[tuple[float, str]] = []

    class Slow:
        async def run(self, mailbox: Mailbox[Word]) -> None:
            async for message in mailbox:
                assert isinstance(message, Note)
                heard.append((trio.current_time(), message.text))
                await trio.sleep(1)

    nursery.start_soon(run_once, Slow(), box)
    sent = [await box.port.send(Note(str(number))) for number in range(6)]
    at = trio.current_time()
    await trio.sleep(10)

    assert [True] * 6 == sent
    assert 3.0 == at
    assert [(float(number), str(number)) for number in range(6)] == heard


async def test_who_waits_for_room_is_seen_and_may_leave(autojump_clock: trio.testing.MockClock) -> None:
    """Senders and askers alike; one that gives up has sent nothing."""
    echo = Echo()
    box: Mailbox[Word] = Mailbox("echo", capacity=1)
    box.port.tell(Note("1"))
    async with trio.open_nursery() as senders:
        senders.start_soon(box.port.send, Note("2"))
        senders.start_soon(box.port.ask, Double(3))
        await trio.testing.wait_all_tasks_blocked()
        waiting = box.statistics().waiting_senders
        senders.cancel_scope.cancel()
    left = box.statistics().waiting_senders
    box.stop()
    await run_once(echo, box)

    assert (2, 0) == (waiting, left)
    assert [Note("1")] == echo.heard


async def test_a_sender_learns_that_nobody_will_read() -> None:
    """Before, while it waits for room, and at once for one that has gone: `False`, and a dead letter."""
    box: Mailbox[Word] = Mailbox("echo", capacity=1)
    told: list[bool] = [await box.port.send(Note("1"))]

    async def send(text: str) -> None:
        told.append(await box.port.send(Note(text)))

    async with trio.open_nursery() as senders:
        senders.start_soon(send, "2")
        await trio.testing.wait_all_tasks_blocked()
        box.close()
    await send("3")

    assert [True, False, False] == told
    assert 3 == box.statistics().dead_letters


async def test_sending_is_a_checkpoint() -> None:
    """With room, and to one that has gone; cancelled beforehand, nothing is sent."""
    box: Mailbox[Word] = Mailbox("echo")
    with trio.testing.assert_checkpoints():
        await box.port.send(Note("1"))
    with trio.CancelScope() as scope:
        scope.cancel()
        await box.port.send(Note("2"))
    waiting = box.statistics().waiting
    box.close()
    with trio.testing.assert_checkpoints():
        await box.port.send(Note("3"))

    assert 1 == waiting
    assert scope.cancelled_caught


async def test_a_stop_lets_what_waits_be_handled() -> None:
    """The loop goes on to the last message that was in the mailbox, and then ends as if by itself."""
    echo = Echo()
    box: Mailbox[Word] = Mailbox("echo", capacity=4)
    replies: list[Reply[int]] = []
    box.port.tell(Note("1"))
    box.port.request(Double(2), replies.append)
    box.stop()
    late = box.port.tell(Note("late"))
    with pytest.raises(ActorGone, match="echo has been stopped"):
        await box.port.ask(Double(3))
    await run_once(echo, box)

    assert [4] == [reply.result() for reply in replies]
    assert 2 == len(echo.heard)
    assert (False, 1) == (late, box.statistics().dead_letters)


async def test_a_stop_without_drain_answers_what_waits() -> None:
    """The message in hand is finished; the others are refused or counted, and whoever waited for room is, too."""
    box: Mailbox[Word] = Mailbox("echo", capacity=2)
    errors: list[str] = []
    values: list[int] = []

    async def ask(number: int) -> None:
        try:
            values.append(await box.port.ask(Double(number)))
        except ActorGone as error:
            errors.append(str(error))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_once, Slowly(), box)
        nursery.start_soon(ask, 1)
        await trio.testing.wait_all_tasks_blocked()
        box.port.tell(Note("lost"))
        nursery.start_soon(ask, 2)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(ask, 3)
        await trio.testing.wait_all_tasks_blocked()
        box.stop(drain=False)

    assert [2] == values
    assert ["echo has been stopped"] * 2 == errors
    assert 1 == box.statistics().dead_letters


async def test_a_stop_can_be_sharpened() -> None:
    """First with what waits, then without."""
    box: Mailbox[Word] = Mailbox("echo", capacity=4)
    replies: list[Reply[int]] = []
    box.port.request(Double(1), replies.append)
    box.stop()
    before = list(replies)
    box.stop(drain=False)

    assert [] == before
    assert ["echo has been stopped"] == [failure_of(reply) for reply in replies]


async def test_an_idle_loop_ends_at_a_stop() -> None:
    """A loop that waits for a message waits no longer, and the actor's own end runs in peace."""
    farewell: list[str] = []
    box: Mailbox[Word] = Mailbox("echo")

    class Polite:
        async def run(self, mailbox: Mailbox[Word]) -> None:
            async for _ in mailbox:
                pass
            await trio.lowlevel.checkpoint()
            farewell.append("bye")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_once, Polite(), box)
        await trio.testing.wait_all_tasks_blocked()
        box.stop()

    assert ["bye"] == farewell


async def test_an_ask_is_for_one_time() -> None:
    """Asking again with the same message would give the old answer; that is an error of the asker, said at once."""
    box: Mailbox[Word] = Mailbox("echo")
    message = Double(1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_once, Echo(), box)
        answer = await box.port.ask(message)
        with pytest.raises(RuntimeError, match="ask again with a new message"):
            await box.port.ask(message)
        with pytest.raises(RuntimeError, match="ask again with a new message"):
            box.port.request(message, lambda _: None)
        box.stop()

    assert 2 == answer


class Slowly:
    """Answers after a second."""

    async def run(self, mailbox: Mailbox[Word]) -> None:
        async for message in mailbox:
            await trio.sleep(1)
            if isinstance(message, Double):
                message.reply.set(2 * message.number)
