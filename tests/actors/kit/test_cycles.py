"""Actors that ask each other in a circle are refused instead of waiting for ever."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pytest
import trio
import trio.testing

from actors.kit import Ask, AskCycle, Mailbox, Port, run_once


@attrs.frozen(eq=False)
class Pass(Ask[str]):
    """Ask the next in line, and tell what it said."""

    to: tuple[Port[Pass], ...] = ()


@attrs.define
class Link:
    """Asks the next one from its own loop."""

    name: str

    async def run(self, mailbox: Mailbox[Pass]) -> None:
        async for message in mailbox:
            if not message.to:
                message.reply.set(self.name)
                continue
            try:
                message.reply.set(f"{self.name} {await message.to[0].ask(Pass(message.to[1:]))}")
            except AskCycle as error:
                message.reply.fail(error)


@attrs.define
class Boss:
    """Asks the next one from a task of its own: its loop goes on."""

    name: str

    async def run(self, mailbox: Mailbox[Pass]) -> None:
        async with trio.open_nursery() as nursery:
            async for message in mailbox:
                nursery.start_soon(self.handle, message)

    async def handle(self, message: Pass) -> None:
        answer = await message.to[0].ask(Pass(message.to[1:])) if message.to else ""
        message.reply.set(f"{self.name} {answer}".strip())


def boxes(nursery: trio.Nursery, actors: Sequence[Link | Boss]) -> list[Port[Pass]]:
    ports = []
    for actor in actors:
        box: Mailbox[Pass] = Mailbox(actor.name)
        nursery.start_soon(run_once, actor, box)
        ports.append(box.port)
    return ports


async def test_a_line_is_no_circle(nursery: trio.Nursery) -> None:
    """A asks B asks C: nothing is refused, and afterwards B may ask A."""
    a, b, c = boxes(nursery, [Link("a"), Link("b"), Link("c")])

    assert "a b c" == await a.ask(Pass((b, c)))
    assert "b a" == await b.ask(Pass((a,)))


async def test_asking_oneself_is_refused(nursery: trio.Nursery) -> None:
    """A loop that asks itself would never hear the question."""
    (a,) = boxes(nursery, [Link("a")])
    with pytest.raises(AskCycle, match="asking would never end: a -> a"):
        await a.ask(Pass((a,)))

    assert "a" == await a.ask(Pass())


async def test_a_circle_of_two_is_refused(nursery: trio.Nursery) -> None:
    """The one whose ask would close the circle is told, with the way round; both live on."""
    a, b = boxes(nursery, [Link("a"), Link("b")])
    with pytest.raises(AskCycle, match="asking would never end: b -> a -> b"):
        await a.ask(Pass((b, a)))

    assert "a b" == await a.ask(Pass((b,)))


async def test_a_circle_of_three_is_refused(nursery: trio.Nursery) -> None:
    """However long the way round is."""
    a, b, c = boxes(nursery, [Link("a"), Link("b"), Link("c")])
    with pytest.raises(AskCycle, match="c -> a -> b -> c"):
        await a.ask(Pass((b, c, a)))

    assert "c b a" == await c.ask(Pass((b, a)))


async def test_a_task_of_the_actors_may_ask_whom_it_likes(nursery: trio.Nursery) -> None:
    """Where the loop goes on receiving there is no deadlock, and nothing is refused: itself, or round a circle."""
    a, b = boxes(nursery, [Boss("a"), Boss("b")])

    assert "a a" == await a.ask(Pass((a,)))
    assert "a b a" == await a.ask(Pass((b, a)))


async def test_who_gave_up_waiting_is_not_in_the_circle(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """An ask that was cancelled is no longer on record."""
    (a,) = boxes(nursery, [Link("a")])
    silent: Mailbox[Pass] = Mailbox("silent")
    box: Mailbox[Pass] = Mailbox("impatient")

    class Impatient:
        async def run(self, mailbox: Mailbox[Pass]) -> None:
            async for message in mailbox:
                with trio.move_on_after(1):
                    await silent.port.ask(Pass())
                message.reply.set("gave up")

    nursery.start_soon(run_once, Impatient(), box)
    first = await box.port.ask(Pass())
    nursery.start_soon(run_once, Link("silent"), silent)

    assert "gave up" == first
    assert "silent a" == await silent.port.ask(Pass((a,)))


async def test_a_caller_that_is_no_actor_is_never_refused(nursery: trio.Nursery) -> None:
    """Only an actor's own loop can close a circle."""
    (a,) = boxes(nursery, [Link("a")])

    assert ["a"] * 3 == [await a.ask(Pass()) for _ in range(3)]
