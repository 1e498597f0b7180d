"""A random world in several lives: its process dies at a commit, and another one goes on from what is on the disk.

The worlds, and who acts in them, are those of `tests.properties`. What really happened is carried from life to life as it
was when the next commit would have come: all that may have happened although the disk does not tell of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import attrs
import trio

from actors import Agent, AgentSpec
from protocol.codec import encode_event
from protocol.errors import AgentStopped, RunError
from protocol.events import Event, RunPaused
from protocol.result import RunResult
from protocol.turns import Message
from tests.properties.deciding import Person
from tests.properties.play import Player, Steps, spec_of
from tests.properties.truth import Asked, Entered, Truth
from tests.properties.world import World
from tests.support.disk import Batch, FakeDisk, events_of, journal_on
from tests.support.play import Stage, numbered_events, perform

FOLLOW_SECONDS = 1


@attrs.frozen
class Mark:
    """What had happened when a commit was to come."""

    asked: tuple[Asked, ...]
    sent: int
    entered: tuple[Entered, ...]
    accepted: frozenset[str]
    """Requests whose decision had been acknowledged."""
    told: bool
    """The result had been given."""
    visible: int
    """The last event that a client could have got."""


@attrs.define(eq=False)
class Torn:
    """One life."""

    world: World
    truth: Truth
    disk: FakeDisk
    marks: list[Mark]
    before: Torn | None = None
    first: int = 0
    """How many commits were there at its start."""
    wild_commits: int = 0
    """How many when its run was over."""
    seen: int = 0
    """The last event that a client had got before this life."""
    read: list[tuple[int, bytes]] = attrs.field(factory=list[tuple[int, bytes]])
    """Those that he got in it, with their numbers."""
    epoch: str = ""
    agent: Agent | None = None
    came_back: bool = False
    told: bool = False
    went_on: bool = False
    result: RunResult | None = None
    faults: list[str] = attrs.field(factory=list[str])
    events: list[Event] = attrs.field(factory=list[Event])
    messages: list[Message] = attrs.field(factory=list[Message])

    def mark(self) -> Mark:
        """How it stands now."""
        truth = self.truth
        return Mark(
            tuple(truth.asked),
            sum(one.sent for one in truth.asked),
            tuple([attrs.evolve(one) for one in truth.entered]),
            frozenset(truth.accepted),
            self.told,
            0 if self.agent is None else self.agent.stream.visible,
        )


class LaterPerson(Person):
    """Sees the questions of earlier lives too; results are wanted only for what still waits."""

    async def _submit(self, event: RunPaused) -> None:
        await trio.lowlevel.checkpoint()
        if {call.id for call in event.calls} & {call.id for call in self.run.pending}:
            await super()._submit(event)


class TornPlayer(Player):
    """Plays the run of a life, without a second one."""

    async def play(self) -> None:
        instrument = Steps([
            (one.at, partial(self.act, one.act)) for one in self.world.disturbances if isinstance(one.at, int)
        ])
        trio.lowlevel.add_instrument(instrument)
        try:
            with self.scope:
                await self._run("go", disturbed=True)
        finally:
            trio.lowlevel.remove_instrument(instrument)


def begin(world: World) -> Torn:
    """The first life; nobody kills it."""
    truth = Truth(world)
    torn = Torn(world, truth, FakeDisk(), [])
    _live(torn)
    return torn


def go_on(before: Torn, number: int) -> Torn:
    """The next life, from the first `number` commits."""
    mark = before.marks[number] if number < len(before.marks) else before.mark()
    truth = Truth(before.world)
    truth.asked, truth.entered = list(mark.asked), [attrs.evolve(one) for one in mark.entered]
    truth.numbers = dict(before.truth.numbers)
    truth.arounds = dict(before.truth.arounds)
    truth.accepted = dict.fromkeys(mark.accepted, 1)
    truth.stopped = before.truth.stopped
    torn = Torn(before.world, truth, FakeDisk(list(before.disk.batches[:number])), [], before, number)
    torn.seen, torn.told = mark.visible, mark.told
    torn.marks += [mark] * number
    _live(torn)
    return torn


def _live(torn: Torn) -> None:
    disk, world = torn.disk, torn.world
    disk.before_commit = lambda _number: torn.marks.append(torn.mark())

    async def scene(stage: Stage) -> None:
        child: AgentSpec | Agent | None = None
        if world.child is not None:
            child = spec_of(world.child, torn.truth, ("child",), None)
            if world.shared_child:
                child = await stage.spawn(child)
                stage.agents[child] = 0
        agent = torn.agent = torn.truth.agent = await stage.spawn(spec_of(world, torn.truth, (), child))
        stage.agents[agent] = 0
        before = torn.before
        torn.came_back = before is not None and before.agent is not None and before.agent.id == agent.id
        if before is not None and not torn.came_back:  # it had been stopped, or nothing of it had been written
            stage.agents.clear()
            return
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_read, torn, agent)
            await _wild(torn, stage, agent)
            torn.wild_commits = len(disk.batches)
            await _tame(torn, stage, agent)
            await stage.runtime.flushed()
            await trio.sleep(FOLLOW_SECONDS)
            nursery.cancel_scope.cancel("all has been said")
        torn.events += [event for _, event in await numbered_events(agent)]
        torn.messages += agent.messages
        for account in (stage.runtime._shared.account,):
            if account.open_reservations:
                torn.faults.append("the runtime's account still holds reservations")

    try:
        perform(scene, order=world.order, journal=journal_on(disk), event_log_bytes=8_000_000, stop_grace_seconds=0.1)
    except* AssertionError as group:
        torn.faults += [str(error) for error in _leaves(group)]


def _leaves(group: BaseExceptionGroup) -> Iterable[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error


async def _read(torn: Torn, agent: Agent) -> None:
    """A reader that goes on where it stood."""
    torn.epoch = agent.stream.epoch
    reader = agent.events(after=torn.seen)
    async for event in reader:
        assert isinstance(event, Event), event
        torn.read.append((reader.seq, encode_event(event)))


async def _wild(torn: Torn, stage: Stage, agent: Agent) -> None:
    truth, run = torn.truth, agent.brought_back
    if run is None and not agent.messages:
        await TornPlayer(torn.world, truth, stage, agent).play()
        run = truth.runs[0] if truth.runs else None
    elif run is not None:
        torn.went_on = True
        stage.runs.append(run)
        truth.run = run
        truth.runs.append(run)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(LaterPerson(truth, run).follow)
            await run.wait_ended()
            nursery.cancel_scope.cancel("it is over")
    if run is None:
        return
    try:
        torn.result = await run.result()
    except RunError as error:
        torn.result = error.partial
    torn.told = True
    if agent.requests.pending():
        torn.faults.append("requests are still open")
    account = run._core.account
    if account.open_reservations or account.books.held_tokens or abs(account.books.held_cost) > 1e-9:
        torn.faults.append("its account still holds something")


async def _tame(torn: Torn, stage: Stage, agent: Agent) -> None:
    """The agent takes another run, and answers."""
    truth = torn.truth
    truth.wild, truth.run = False, None
    try:
        async with stage.run(agent, "once more", if_busy="queue") as run, trio.open_nursery() as nursery:
            nursery.start_soon(LaterPerson(truth, run).follow)
            await run.wait_ended()
            nursery.cancel_scope.cancel("it is over")
        result = await run.result()
    except AgentStopped:
        if not truth.stopped:
            torn.faults.append("the agent takes no second run")
        return
    except RunError as error:
        torn.faults.append(f"the second run came to {error!r}")
        return
    settings = torn.world.settings
    short = result.limit is not None and (settings.max_total_tokens or settings.max_cost)
    if not short and (result.text, result.answered) != ("second", True):
        torn.faults.append(f"the second run came to {result.stopped_by} {result.text!r}")


def lines_of(torn: Torn, commits: int | None = None) -> list[bytes]:
    """The events of the agent on the disk."""
    assert torn.agent is not None
    batches: list[Batch] = torn.disk.batches if commits is None else torn.disk.batches[:commits]
    return events_of([record for batch in batches for record in batch if record.agent == torn.agent.id])
