"""Actors that ask each other in a circle are refused instead of waiting for ever."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pytest
import trio
import trio.testing

from actors.kit import ActorGone, Ask, AskCycle, Mailbox, Port, run_once, supervise, waiting_for


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


def boxes(nursery: trio.Nursery, actors: Sequence[Link | Boss | Catching]) -> list[Port[Pass]]:
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
    """Who stands still for nobody closes no circle."""
    (a,) = boxes(nursery, [Link("a")])

    assert ["a"] * 3 == [await a.ask(Pass()) for _ in range(3)]


async def test_a_task_works_for_the_ask_it_was_started_for(nursery: trio.Nursery) -> None:
    """A loop waits for a task of another actor, which asks that loop: a circle, although that actor's own loop is free."""
    a, b = boxes(nursery, [Link("a"), Catching("b")])

    assert "a b refused: b -> a -> b" == await a.ask(Pass((b, a)))
    assert "b a" == await b.ask(Pass((a,)))


async def test_a_task_whose_ask_is_answered_works_for_nobody(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """What an actor does after it has answered may ask the one that had asked, which goes on meanwhile."""
    (a,) = boxes(nursery, [Link("a")])
    late: list[str] = []

    class Afterwards:
        async def run(self, mailbox: Mailbox[Pass]) -> None:
            async with trio.open_nursery() as own:
                async for message in mailbox:
                    own.start_soon(self.handle, message)

        async def handle(self, message: Pass) -> None:
            message.reply.set("at once")
            late.append(await a.ask(Pass()))

    box: Mailbox[Pass] = Mailbox("afterwards")
    nursery.start_soon(run_once, Afterwards(), box)

    assert "a at once" == await a.ask(Pass((box.port,)))
    await trio.testing.wait_all_tasks_blocked()
    assert ["a"] == late


async def test_a_task_that_works_for_one_who_has_left_is_free(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Nobody stands still for an ask that was given up."""
    (a,) = boxes(nursery, [Link("a")])
    told: list[str] = []

    class Slow:
        async def run(self, mailbox: Mailbox[Pass]) -> None:
            async with trio.open_nursery() as own:
                async for message in mailbox:
                    own.start_soon(self.handle, message)

        async def handle(self, message: Pass) -> None:
            await trio.sleep(2)
            told.append(await a.ask(Pass()))

    box: Mailbox[Pass] = Mailbox("slow")
    nursery.start_soon(run_once, Slow(), box)
    with trio.move_on_after(1):
        await box.port.ask(Pass())
    await trio.sleep(2)

    assert ["a"] == told


async def test_two_chains_that_meet_are_a_circle(nursery: trio.Nursery) -> None:
    """X asks A, Y asks B; then A asks B and B asks A: neither works for the other, and yet both would wait for ever."""
    met = trio.Event()
    texts: dict[str, str] = {}

    class Meets:
        def __init__(self, name: str) -> None:
            self.name = name

        async def run(self, mailbox: Mailbox[Pass]) -> None:
            async for message in mailbox:
                if message.to:
                    await met.wait()
                try:
                    told = await message.to[0].ask(Pass()) if message.to else ""
                except AskCycle as error:
                    told = str(error)
                message.reply.set(f"{self.name} {told}".strip())

    a, b = Mailbox[Pass]("a"), Mailbox[Pass]("b")
    for box in (a, b):
        nursery.start_soon(run_once, Meets(box.name), box)

    async def ask(port: Port[Pass], to: Port[Pass]) -> None:
        texts[port.name] = await port.ask(Pass((to,)))

    async with trio.open_nursery() as askers:
        askers.start_soon(ask, a.port, b.port)
        askers.start_soon(ask, b.port, a.port)
        await trio.testing.wait_all_tasks_blocked()
        met.set()

    assert texts in [
        {"a": "a asking would never end: a -> b -> a", "b": "b a"},
        {"a": "a b", "b": "b asking would never end: b -> a -> b"},
    ]


@attrs.define
class Pusher:
    """Sends on what it is told, from its loop, and waits for room."""

    to: list[Port[int]] = attrs.field(factory=list)
    refused: list[str] = attrs.field(factory=list)
    heard: int = 0

    async def run(self, mailbox: Mailbox[int]) -> None:
        async for number in mailbox:
            self.heard += 1
            for port in self.to:
                for _ in range(number):
                    try:
                        await port.send(0)
                    except AskCycle as error:
                        self.refused.append(str(error))
                        return


async def test_full_mailboxes_in_a_circle(nursery: trio.Nursery) -> None:
    """Two actors that fill each other's mailbox: the second one that would wait for room is refused."""
    a, b = Pusher(), Pusher()
    boxes = [Mailbox[int]("a", capacity=1), Mailbox[int]("b", capacity=1)]
    a.to, b.to = [boxes[1].port], [boxes[0].port]
    for actor, box in zip((a, b), boxes, strict=True):
        nursery.start_soon(run_once, actor, box)
        box.port.tell(5)
    await trio.testing.wait_all_tasks_blocked()

    assert [*a.refused, *b.refused][0] in {
        "asking would never end: a -> b -> a",
        "asking would never end: b -> a -> b",
    }
    assert 1 == len([*a.refused, *b.refused])


async def test_sending_into_ones_own_full_mailbox(nursery: trio.Nursery) -> None:
    """A loop that waits for room in its own mailbox would never make any; while there is room it may send."""
    one = Pusher()
    box: Mailbox[int] = Mailbox("one", capacity=2)
    one.to = [box.port]
    box.port.tell(3)
    await run_once(one, box)

    assert ["asking would never end: one -> one"] == one.refused
    assert 2 == box.statistics().dead_letters


@pytest.mark.parametrize("crashes", [False, True])
async def test_the_task_that_reads_is_the_loop(crashes: bool, nursery: trio.Nursery) -> None:
    """Also where the actor reads in a task of its own, in every incarnation, and is told and not asked."""

    class Inside:
        def __init__(self, name: str) -> None:
            self.name = name
            self.crashes = crashes
            self.refused: list[str] = []

        async def run(self, mailbox: Mailbox[Pass]) -> None:
            async with trio.open_nursery() as own:
                own.start_soon(self.read, mailbox)
                await trio.sleep_forever()

        async def read(self, mailbox: Mailbox[Pass]) -> None:
            async for message in mailbox:
                if self.crashes:
                    self.crashes = False
                    raise ValueError("broken")
                try:
                    if message.to:
                        await message.to[0].ask(Pass())
                except AskCycle as error:
                    self.refused.append(str(error))
                message.reply.set(self.name)

    actors = [Inside("a"), Inside("b")]
    pair = [Mailbox[Pass](actor.name) for actor in actors]
    for actor, box, other in zip(actors, pair, reversed(pair), strict=True):
        if crashes:
            box.port.tell(Pass())
        box.port.tell(Pass((other.port,)))
        nursery.start_soon(supervise, actor, box)
    await trio.testing.wait_all_tasks_blocked()

    assert 1 == sum(len(actor.refused) for actor in actors)
    assert "a" == await pair[0].port.ask(Pass())


async def test_where_several_tasks_read_none_is_the_loop(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """One of them that waits keeps nobody from being heard: asking its own actor is no circle."""

    class Pool:
        async def run(self, mailbox: Mailbox[Pass]) -> None:
            async with trio.open_nursery() as own:
                for _ in range(2):
                    own.start_soon(self.read, mailbox)

        async def read(self, mailbox: Mailbox[Pass]) -> None:
            async for message in mailbox:
                if message.to:
                    message.reply.set(f"pool {await message.to[0].ask(Pass())}")
                    continue
                await trio.sleep(1)
                message.reply.set("pool")

    box: Mailbox[Pass] = Mailbox("pool")
    told: list[str] = []
    for message in (Pass(), Pass((box.port,))):
        box.port.request(message, lambda reply: told.append(reply.result()))
    nursery.start_soon(run_once, Pool(), box)
    await trio.sleep(5)

    assert ["pool", "pool pool"] == told


async def test_the_next_incarnation_is_a_loop_again(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """After a crash while it waited nothing of that wait is left on record, and its asks are watched as before."""

    class Brittle:
        async def run(self, mailbox: Mailbox[Pass]) -> None:
            async for message in mailbox:
                with trio.move_on_after(1) as scope:
                    try:
                        message.reply.set("b " + await message.to[0].ask(Pass()))
                    except AskCycle as error:
                        message.reply.fail(error)
                if scope.cancelled_caught:
                    raise ValueError("broken")

    silent: Mailbox[Pass] = Mailbox("silent")
    box: Mailbox[Pass] = Mailbox("brittle")
    nursery.start_soon(supervise, Brittle(), box)
    box.port.tell(Pass((silent.port,)))
    await trio.sleep(2)
    (a,) = boxes(nursery, [Link("a")])

    assert "b a" == await box.port.ask(Pass((a,)))
    with pytest.raises(AskCycle, match="brittle -> a -> brittle"):
        await a.ask(Pass((box.port, a)))


async def test_waits_of_other_kinds_can_be_on_record(nursery: trio.Nursery) -> None:
    """`waiting_for` says that the present task waits for a party, whatever it waits with."""
    gate = trio.Event()
    refused: list[str] = []
    pair = [Mailbox[Pass]("a"), Mailbox[Pass]("b")]

    class Waits:
        def __init__(self, other: Mailbox[Pass]) -> None:
            self.other = other

        async def run(self, mailbox: Mailbox[Pass]) -> None:
            async for _ in mailbox:
                try:
                    with waiting_for(self.other.party):
                        await gate.wait()
                except AskCycle as error:
                    refused.append(str(error))

    for box, other in zip(pair, reversed(pair), strict=True):
        nursery.start_soon(run_once, Waits(other), box)
        box.port.tell(Pass())
    await trio.testing.wait_all_tasks_blocked()
    gate.set()

    assert 1 == len(refused)


async def test_nobody_waits_for_one_that_has_gone(nursery: trio.Nursery) -> None:
    """An ask that fails at once is on nobody's record."""
    gone: Mailbox[Pass] = Mailbox("gone")
    gone.close()
    (a,) = boxes(nursery, [Link("a")])

    class Knocks:
        async def run(self, mailbox: Mailbox[Pass]) -> None:
            async for message in mailbox:
                with pytest.raises(ActorGone):
                    await gone.port.ask(Pass())
                message.reply.set("knocked")

    box: Mailbox[Pass] = Mailbox("knocks")
    nursery.start_soon(run_once, Knocks(), box)

    assert "a knocked" == await a.ask(Pass((box.port,)))


@attrs.define
class Catching:
    """Asks the next one from a task of its own, and tells where that is refused."""

    name: str

    async def run(self, mailbox: Mailbox[Pass]) -> None:
        async with trio.open_nursery() as nursery:
            async for message in mailbox:
                nursery.start_soon(self.handle, message)

    async def handle(self, message: Pass) -> None:
        try:
            answer = await message.to[0].ask(Pass(message.to[1:])) if message.to else ""
        except AskCycle as error:
            answer = f"refused: {str(error).split(': ')[1]}"
        message.reply.set(f"{self.name} {answer}".strip())
