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
