"""With a journal: nobody is told of anything that a crash could take back."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import trio
import trio.testing

from actors.agent import Agent
from actors.gateway import Template
from actors.journal import MemoryJournal, Source
from protocol.events import AgentWarned

from .cast import asker, pauser, talker
from .wired import numbers_are_whole, open_hall

Clock = trio.testing.MockClock


@attrs.define(eq=False)
class Disk(MemoryJournal):
    """A journal whose records are durable when it is told so."""

    durable: bool = True
    holds: bool = False
    _end: int = 0
    _reached: int = 0
    _sources: dict[Source, None] = attrs.field(factory=dict[Source, None])
    _waiting: list[tuple[int, Callable[[], None]]] = attrs.field(factory=list)
    _stirred: trio.Event = attrs.field(factory=trio.Event)
    _moved: trio.Event = attrs.field(factory=trio.Event)

    def touch(self, source: Source, size: int = 0) -> int:
        self._sources[source] = None
        self._end += 1
        self._stirred.set()
        return self._end

    def after(self, position: int, fn: Callable[[], None]) -> None:
        if position <= self._reached:
            fn()
        else:
            self._waiting.append((position, fn))

    async def flushed(self, position: int | None = None) -> None:
        wanted = self._end if position is None else position
        while self._reached < wanted:
            await self._moved.wait()
        await trio.lowlevel.checkpoint()

    async def serve(self, on_failure: Callable[[], object]) -> None:
        while True:
            await self._stirred.wait()
            self._stirred = trio.Event()
            if not self.holds:
                self._write()

    def release(self) -> None:
        """All that was written is durable; what comes is, at once."""
        self.holds = False
        self._write()

    def _write(self) -> None:
        sources, self._sources = self._sources, {}
        for source in sources:
            source.take()
        self._reached = self._end
        for source in sources:
            source.written()
        waiting, self._waiting = self._waiting, []
        for _, fn in waiting:
            fn()
        self._moved.set()
        self._moved = trio.Event()


def say(agent: Agent, count: int) -> None:
    for _ in range(count):
        agent.stream.append(AgentWarned(agent=agent.id, code="c", text="t"))


async def test_events(autojump_clock: Clock) -> None:
    """They are sent when they are durable, and not before; a heartbeat counts no others."""
    disk = Disk()
    async with open_hall(journal=disk) as hall:
        agent = await hall.spawn(talker("one"))
        client = await hall.connect()
        await client.ask("agent.attach", agent=agent.id, from_="start")
        await client.read_until(client.saw(agent.id, "agent_spawned"))
        disk.holds = True
        say(agent, 5)
        await client.read_for(21)
        before = client.types(agent.id), client.heartbeats()
        disk.release()
        await client.read_for(1)

        assert (["agent_spawned"], [{agent.id: 1}]) == before
        assert 6 == agent.stream.end == len(client.events(agent.id))
        assert numbers_are_whole(client.events(agent.id), 0)


async def test_an_attach(autojump_clock: Clock) -> None:
    """Its reply waits for all that it tells, and holds up no other command; then events follow without a gap."""
    disk = Disk()
    async with open_hall(journal=disk) as hall:
        agent = await hall.spawn(talker("one", "two"))
        client = await hall.connect()
        await (await agent.start("go")).result()
        disk.holds = True
        say(agent, 3)
        head = agent.stream.end
        asked = [
            await client.send("agent.attach", {"agent": agent.id}),
            await client.send("agent.attach", {"agent": "*", "from": "start"}),
        ]
        pong = await client.ask("ping")
        say(agent, 3)
        await client.read_for(1)
        early = [id for id in asked if id in client.replies]
        disk.release()
        first, second = [await client.reply(id) for id in asked]
        await client.read_for(1)
        gone = await hall.connect()
        disk.holds = True
        say(agent, 3)
        await gone.send("agent.attach", {"agent": agent.id})
        await trio.sleep(1)
        await gone.drop()
        await trio.sleep(1)

        assert ({}, []) == (pong, early)
        assert [head, head] == [first["head"], second["agents"][agent.id]["head"]]
        assert 2 == len(first["snapshot"]["history"])
        assert numbers_are_whole(client.events(agent.id), 0)
        assert 1 == len(agent.stream._followers)


async def test_a_detach_behind_an_attach(autojump_clock: Clock) -> None:
    """What the client said last holds, also where the attach has not been answered yet."""
    disk = Disk()
    async with open_hall(journal=disk) as hall:
        agents = [await hall.spawn(talker()) for _ in range(2)]
        client = await hall.connect()
        disk.holds = True
        for agent in agents:
            say(agent, 1)
            await client.send("agent.attach", {"agent": agent.id})
        await client.ask("agent.detach", agent=agents[0].id)
        disk.release()
        await client.read_for(1)
        for agent in agents:
            say(agent, 1)
        await client.read_for(1)

        assert [0, 1] == [len(client.events(agent.id)) for agent in agents]
        assert [0, 1] == [len(agent.stream._followers) for agent in agents]


async def test_a_decision(autojump_clock: Clock) -> None:
    """Whoever is told how a request was closed is told when that is durable: the winner, its double, and the loser."""
    disk = Disk()
    async with open_hall(journal=disk) as hall:
        agent = await hall.spawn(asker())
        ada, bob = await hall.connect("ada"), await hall.connect("bob")
        await ada.ask("agent.attach", agent=agent.id)
        await agent.start("go")
        await ada.read_until(lambda: bool(ada.requests(agent.id)))
        request = ada.requests(agent.id)[0]
        params = {"request": request["request"], "decision": "decline", "digest": request["digest"], "idem": "i"}
        disk.holds = True
        ids = [await ada.send("continuation.decide", params) for _ in range(2)]
        late = await bob.send("continuation.decide", params)
        say(agent, 1)  # something is written behind it
        await ada.read_for(1)
        await bob.read_for(1)
        early = [id in client.replies for client, id in ((ada, ids[0]), (ada, ids[1]), (bob, late))]
        disk.release()
        first, second = [await ada.reply(id) for id in ids]
        await bob.read_until(lambda: late in bob.replies)
        refused = bob.replies[late]["error"]["data"]
        await ada.read_until(ada.saw(agent.id, "continuation_resolved"))
        number = next(number for number, event in ada.events(agent.id) if event["type"] == "continuation_resolved")

    assert [False] * 3 == early
    assert ("accepted", {**first, "replayed": True}) == (first["status"], second)
    assert {"outcome": "declined", "by": "ada", "seq": number} == refused["resolution"]


async def test_a_run(autojump_clock: Clock) -> None:
    """It is begun at once, and told when that is durable."""
    disk = Disk()
    async with open_hall(journal=disk) as hall:
        agent = await hall.spawn(talker("one"))
        client = await hall.connect()
        disk.holds = True
        asked = await client.send("run.start", {"agent": agent.id, "prompt": "go", "idem": "i"})
        await client.read_for(1)
        early = asked in client.replies, len(agent.stream.runs)
        disk.release()
        told = await client.reply(asked)

    assert (False, 1) == early
    assert {"run", "seq"} == set(told)


async def test_whatever_changes_something(autojump_clock: Clock) -> None:
    """Its reply waits for the disk, and so does what is listed; what changes nothing is answered at once."""
    disk = Disk()
    async with open_hall(journal=disk, templates={"talker": Template(talker("one"))}) as hall:
        asking, pausing, stopped = [await hall.spawn(spec) for spec in (asker(), pauser("c1"), talker())]
        client = await hall.connect()
        runs = [
            (await client.ask("run.start", agent=agent.id, prompt="go", idem="i"))["run"] for agent in (asking, pausing)
        ]
        await trio.sleep(1)
        commands = [
            ("run.steer", {"run": runs[0], "text": "left", "idem": "i"}),
            ("run.steer", {"run": runs[0], "text": "left", "idem": "i"}),
            ("tools.submit", {"run": runs[1], "results": {"c1": "seen"}}),
            ("run.cancel", {"run": runs[0]}),
            ("agent.stop", {"agent": stopped.id}),
            ("agent.spawn", {"spec": {"template": "talker"}, "idem": "i"}),
            ("agent.list", {}),
            ("request.list", {}),
        ]
        early: list[str] = []
        for method, params in commands:
            disk.holds = True
            say(asking, 1)
            asked = await client.send(method, params)
            pong = await client.ask("ping")
            await client.read_for(1)
            early += [method] * (asked in client.replies)
            disk.release()
            await client.reply(asked)

    assert ([], {}) == (early, pong)
