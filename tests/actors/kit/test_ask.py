"""Asking: a typed answer, or the reason why there is none; nobody waits for ever, nobody works for nobody."""

from __future__ import annotations

import contextlib

import pytest
import trio
import trio.testing

from actors.kit import ActorCrashed, ActorGone, Mailbox, run_once

from .words import Busy, Crash, Double, Echo, End, Note, Word


async def test_an_ask_has_its_answer(nursery: trio.Nursery) -> None:
    """The value that the actor set."""
    box: Mailbox[Word] = Mailbox("echo")
    nursery.start_soon(run_once, Echo(), box)

    assert [2, 4] == [await box.port.ask(Double(1)), await box.port.ask(Double(2))]


async def test_a_stored_ask_is_answered_later(nursery: trio.Nursery) -> None:
    """An actor may keep an ask and go on receiving; each answer finds its own asker."""
    echo = Echo(hold=True)
    box: Mailbox[Word] = Mailbox("echo")
    nursery.start_soon(run_once, echo, box)
    answers: dict[int, int] = {}

    async def ask(number: int) -> None:
        answers[number] = await box.port.ask(Double(number))

    async with trio.open_nursery() as askers:
        for number in (1, 2, 3):
            askers.start_soon(ask, number)
        await trio.testing.wait_all_tasks_blocked()
        open_asks = box.statistics().open_asks
        for message in reversed(echo.held):
            message.reply.set(message.number * 10)

    assert 3 == open_asks
    assert {1: 10, 2: 20, 3: 30} == answers
    assert 0 == box.statistics().open_asks


async def test_the_actors_error_is_raised_at_the_asker() -> None:
    """An ask that was failed raises what it was failed with, and the actor lives on."""
    box: Mailbox[Double] = Mailbox("teller")

    class Teller:
        async def run(self, mailbox: Mailbox[Double]) -> None:
            async for message in mailbox:
                message.reply.fail(KeyError(message.number))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_once, Teller(), box)
        for number in (1, 2):
            with pytest.raises(KeyError, match=str(number)):
                await box.port.ask(Double(number))
        nursery.cancel_scope.cancel()


async def test_leaving_the_wait_stops_the_work(nursery: trio.Nursery, autojump_clock: trio.testing.MockClock) -> None:
    """A cancelled ask ends what the actor does for it, at once, and the actor takes the next one."""
    busy = Busy()
    box: Mailbox[Double] = Mailbox("busy")
    nursery.start_soon(run_once, busy, box)
    with trio.move_on_after(1):
        await box.port.ask(Double(100))
    answer = await box.port.ask(Double(2))

    assert 4 == answer
    assert [100] == busy.stopped
    assert 3.0 == trio.current_time()


async def test_an_ask_that_was_not_received_is_skipped(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Work that nobody waits for any more is never begun."""
    busy = Busy()
    box: Mailbox[Double] = Mailbox("busy")
    nursery.start_soon(run_once, busy, box)
    async with trio.open_nursery() as askers:
        askers.start_soon(box.port.ask, Double(10))
        await trio.testing.wait_all_tasks_blocked()
        with trio.move_on_after(1):
            await box.port.ask(Double(20))
        askers.start_soon(box.port.ask, Double(3))

    assert [10, 3] == busy.started
    assert [] == busy.stopped
    assert 0 == box.statistics().open_asks


async def test_cancel_and_set_in_one_step(nursery: trio.Nursery) -> None:
    """Cancelled first and answered in the same step: the asker is cancelled, and the answer can be looked into."""
    echo = Echo(hold=True)
    box: Mailbox[Word] = Mailbox("echo")
    nursery.start_soon(run_once, echo, box)
    scope = trio.CancelScope()
    answered = []

    async def ask() -> None:
        with scope:
            answered.append(await box.port.ask(Double(1)))

    async with trio.open_nursery() as askers:
        askers.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        (message,) = echo.held
        scope.cancel()
        message.reply.set(7)

    assert [] == answered
    assert scope.cancelled_caught
    assert message.reply.dropped
    assert 7 == message.reply.result()


async def test_set_and_cancel_in_one_step(nursery: trio.Nursery) -> None:
    """Answered first and cancelled in the same step: the answer has won."""
    echo = Echo(hold=True)
    box: Mailbox[Word] = Mailbox("echo")
    nursery.start_soon(run_once, echo, box)
    scope = trio.CancelScope()
    answered = []

    async def ask() -> None:
        with scope:
            answered.append(await box.port.ask(Double(1)))

    async with trio.open_nursery() as askers:
        askers.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        taken = echo.held[0].reply.set(7)
        scope.cancel()

    assert taken
    assert [7] == answered
    assert not echo.held[0].reply.dropped


async def test_an_ask_in_a_cancelled_scope_leaves_nothing(nursery: trio.Nursery) -> None:
    """Asking when it is too late is cancelled, and no work is left for the actor."""
    echo = Echo()
    box: Mailbox[Word] = Mailbox("echo")
    with trio.CancelScope() as scope:
        scope.cancel()
        await box.port.ask(Double(1))
    nursery.start_soon(run_once, echo, box)
    await trio.testing.wait_all_tasks_blocked()

    assert scope.cancelled_caught
    assert [] == echo.heard


async def test_a_full_mailbox_lets_askers_wait(nursery: trio.Nursery) -> None:
    """An asker waits for room, however small the mailbox, and all are answered."""
    box: Mailbox[Word] = Mailbox("echo", capacity=1)
    answers: list[int] = []

    async def ask(number: int) -> None:
        answers.append(await box.port.ask(Double(number)))

    async with trio.open_nursery() as askers:
        for number in range(5):
            askers.start_soon(ask, number)
        await trio.testing.wait_all_tasks_blocked()
        waiting = box.statistics().waiting
        nursery.start_soon(run_once, Echo(), box)

    assert 1 == waiting
    assert {0, 2, 4, 6, 8} == set(answers)


async def test_asking_one_that_has_ended() -> None:
    """An actor that returned, or was closed, is gone: at once and for every later ask."""
    box: Mailbox[Word] = Mailbox("echo")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_once, Echo(), box)
        box.port.tell(End())
    for _ in range(2):
        with pytest.raises(ActorGone, match="echo has ended"):
            await box.port.ask(Double(1))


async def test_asking_is_a_checkpoint() -> None:
    """Also where the answer is there at once, or the actor is gone: a loop of asks lets others run."""
    box: Mailbox[Word] = Mailbox("echo")
    box.close()
    with trio.testing.assert_checkpoints(), contextlib.suppress(ActorGone):
        await box.port.ask(Double(1))

    assert box.statistics().closed


@pytest.mark.parametrize("end", [Crash(), End()], ids=["crash", "end"])
async def test_all_who_wait_are_answered_at_the_end(end: Word) -> None:
    """Received, in the buffer or before the door: an actor's end answers each of them."""
    echo = Echo(hold=True)
    box: Mailbox[Word] = Mailbox("echo", capacity=3)
    errors: list[Exception] = []

    async def ask(number: int) -> None:
        try:
            await box.port.ask(Double(number))
        except (ActorGone, ActorCrashed) as error:
            errors.append(error)

    async with trio.open_nursery() as askers:
        askers.start_soon(ask, 0)
        await trio.testing.wait_all_tasks_blocked()
        box.port.tell(end)
        box.port.tell(Note("never read"))
        for number in range(1, 4):
            askers.start_soon(ask, number)
        await trio.testing.wait_all_tasks_blocked()
        with contextlib.suppress(ValueError):
            await run_once(echo, box)

    kind = ActorCrashed if isinstance(end, Crash) else ActorGone
    assert [kind] * 4 == [type(error) for error in errors]
    assert 4 == len({id(error) for error in errors})
    assert 1 == box.statistics().dead_letters


async def test_a_cancelled_actor_answers_too() -> None:
    """An actor whose nursery is cancelled leaves nobody waiting."""
    box: Mailbox[Word] = Mailbox("echo")
    echo = Echo(hold=True)
    async with trio.open_nursery() as actors:
        actors.start_soon(run_once, echo, box)

        async def cancel_soon() -> None:
            await trio.testing.wait_all_tasks_blocked()
            actors.cancel_scope.cancel()

        async with trio.open_nursery() as askers:
            askers.start_soon(cancel_soon)
            with trio.move_on_after(10, shield=True), pytest.raises(ActorGone):
                await box.port.ask(Double(1))
    assert 0 == box.statistics().open_asks
