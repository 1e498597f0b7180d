"""Many worlds in one runtime, at the same time: each has its own truth and its own judge, and what they share is judged at the end.

They share the scheduler, the runtime's account and, in groups, budgets; readers that lag look on, and clients of a gateway.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import trio
import trio.testing

from actors import Agent, AgentSpec, Budget, Run, open_runtime
from actors.gateway import Access, open_gateway
from protocol.errors import AgentStopped, RunError
from protocol.events import Event, StepFinished
from tests.properties.judge import faults_of
from tests.properties.play import LATE_SECONDS, Player, spec_of, tasks_below
from tests.properties.truth import Truth
from tests.properties.world import World
from tests.support.disk import FakeDisk, journal_on
from tests.support.play import Stage, numbered_events

from .watching import Watcher, door_of, lagging_reader

VIRTUAL_HOUR = 3600
LOG_BYTES = 64 * 1024 * 1024


@attrs.frozen
class Shape:
    """What a crowd is like."""

    seed: int
    budgets: int = 3
    """Each is shared by a tenth of the agents."""
    watchers: int = 5
    """Clients of the gateway."""
    journal: bool = False


@attrs.define(eq=False)
class Member(Player):
    """One world among others."""

    budget: Budget | None = None
    starts_after: float = 0.0
    read: list[int] = attrs.field(factory=list[int])
    """The numbers that a reader who lags got."""
    steps: int = 0

    async def play(self) -> None:
        truth = self.truth
        await trio.sleep(self.starts_after)
        truth.began = trio.current_time()
        with self.scope:
            await self._run("go", disturbed=True)
        truth.ended_at = trio.current_time()
        await self._look(truth.runs[0] if truth.runs else None)
        await trio.sleep(LATE_SECONDS)
        truth.wild = False
        if self.budget is not None:
            return  # there may be nothing left for a second run
        try:
            await self._run("once more", disturbed=False)
            await self._look(truth.runs[-1])
        except AgentStopped:
            if not truth.stopped:
                truth.fault("the agent takes no second run")

    async def _look(self, run: Run | None) -> None:
        if run is None:
            return
        truth = self.truth
        with trio.move_on_after(1) as timer:
            try:
                truth.results.append(await run.result())
                truth.errors.append(None)
            except RunError as error:
                truth.results.append(error.partial)
                truth.errors.append(error)
        if timer.cancelled_caught:
            truth.fault(f"{run.id} gives no result")
        if self.agent.requests.pending():
            truth.fault("requests are still open")
        truth.faults += held_by(run._core.account)

    @property
    def has_caught_up(self) -> bool:
        """Whether the reader who lags has got all; or there is none."""
        return not self.read or self.read[-1] >= self.agent.stream.end

    async def judge(self) -> list[str]:
        """All that is wrong with it."""
        events: list[Event] = [event for _, event in await numbered_events(self.agent)]
        self.steps = sum(isinstance(event, StepFinished) for event in events)
        faults = [*faults_of(self.truth, events, self.agent.messages), *await self.stage.judge()]
        if self.read and not (self.read == list(range(1, len(self.read) + 1)) and len(self.read) >= len(events) - 1):
            faults.append(f"a reader that lags got {len(self.read)} of {len(events)} events")
        return faults


@attrs.define(eq=False)
class Crowd:
    """What came of it."""

    faults: list[str] = attrs.field(factory=list[str])
    steps: int = 0
    runs: int = 0
    answered: int = 0
    commits: int = 0


def held_by(account: Any) -> list[str]:
    """What an account still holds although nothing goes on."""
    books = account.books
    if account.open_reservations or books.held_tokens or abs(books.held_cost) > 1e-9:
        return [f"{account.name} still holds {account.open_reservations} {books.held_tokens} {books.held_cost}"]
    return []


def play(worlds: Sequence[World], shape: Shape, *, spoil: Callable[[Member], None] | None = None) -> Crowd:
    """Play them all; `spoil` changes what is known of one before it is judged."""
    crowd = Crowd()
    trio._core._run._r.seed(shape.seed)  # there is no public way to it
    trio.run(_main, worlds, shape, crowd, spoil, clock=trio.testing.MockClock(autojump_threshold=0))
    return crowd


async def _main(worlds: Sequence[World], shape: Shape, crowd: Crowd, spoil: Callable[[Member], None] | None) -> None:
    choice = random.Random(shape.seed)  # noqa: S311
    disk = FakeDisk()
    access = Access()
    budgets = [
        Budget(max_llm_calls=20 + 10 * number, max_tool_calls=15 * (number + 1)) for number in range(shape.budgets)
    ]
    members: list[Member] = []
    watchers: list[Watcher] = []
    with trio.fail_after(24 * VIRTUAL_HOUR):
        async with open_runtime(
            journal=journal_on(disk) if shape.journal else None, event_log_bytes=LOG_BYTES, stop_grace_seconds=1
        ) as runtime:
            for place, world in enumerate(worlds):
                budget = budgets[place] if place < shape.budgets else None
                if place % 10 == 0 and budgets:
                    budget = budgets[place // 10 % shape.budgets]
                members.append(await _member(Stage(runtime), world, budget, choice.uniform(0, 30)))
            async with (
                open_gateway(runtime, port=0, tokens=access, door_limits=door_of(shape.watchers)) as gateway,
                trio.open_nursery() as looking,
            ):
                for member in choice.sample(members, min(len(members), 2 * shape.watchers)):
                    looking.start_soon(lagging_reader, member.agent, member.read, choice.choice([0.0, 0.01, 1.0]))
                for number, member in enumerate(choice.sample(members, min(len(members), shape.watchers))):
                    watchers.append(Watcher(gateway, access, member.agent, f"watcher-{number}", choice))
                    looking.start_soon(watchers[-1].watch, looking)
                async with trio.open_nursery() as nursery:
                    for member in members:
                        nursery.start_soon(member.play)
                await runtime.flushed()
                with trio.move_on_after(VIRTUAL_HOUR):
                    while not all([*(one.has_caught_up for one in members), *(one.has_caught_up for one in watchers)]):  # noqa: ASYNC110  in virtual time
                        await trio.sleep(1)
                crowd.faults += [fault for watcher in watchers for fault in watcher.faults()]
                looking.cancel_scope.cancel("all has been said")
            crowd.faults += _left(runtime, members, shape)
        for member in members:
            if spoil is not None:
                spoil(member)
            crowd.faults += [f"{fault}\n    {member.world!r}" for fault in await member.judge()]
    _count(members, budgets, crowd)
    crowd.commits = len(disk.batches)


async def _member(stage: Stage, world: World, budget: Budget | None, starts_after: float) -> Member:
    truth = Truth(world)
    child: AgentSpec | Agent | None = None
    if world.child is not None:
        child = spec_of(world.child, truth, ("child",), None)
        if world.shared_child:
            child = await stage.spawn(child)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spec = attrs.evolve(spec_of(world, truth, (), child), budget=budget)
    truth.agent = await stage.spawn(spec)
    return Member(world, truth, stage, truth.agent, budget=budget, starts_after=starts_after)


def _left(runtime: Any, members: Sequence[Member], shape: Shape) -> list[str]:
    """What is left although nothing goes on."""
    faults = held_by(runtime._shared.account)
    statistics = runtime.statistics()
    if statistics.running or statistics.tool_threads.running:
        faults.append(f"something still runs: {statistics}")
    homes = trio.lowlevel.current_task().child_nurseries
    names = sorted(
        name.rpartition(" ")[0] for nursery in homes for task in nursery.child_tasks for name in _named(task)
    )
    hosts = [name for name in names if name.endswith("/host")]
    if len(hosts) != len(runtime.agents):
        faults.append(f"{len(runtime.agents)} agents have {len(hosts)} hosts")
    others = set(names) - set(hosts) - {"journal", "actors.runtime._open._home"}
    if others:
        faults.append(f"tasks are left: {sorted(others)[:20]}")
    return faults


def _named(task: trio.lowlevel.Task) -> list[str]:
    return [f"{task.name} {id(task)}", *tasks_below(task)]


def _count(members: Sequence[Member], budgets: Sequence[Budget], crowd: Crowd) -> None:
    """What they share adds up."""
    for budget in budgets:
        drawn = [member for member in members if member.budget is budget]
        results = [result for member in drawn for result in member.truth.results]
        account, limits = budget.account, budget.account.limits
        crowd.faults += held_by(account)
        for name, used, most, told in (
            ("llm_calls", account.llm_calls, limits.max_llm_calls, sum(r.counters.llm_calls for r in results)),
            ("tool_calls", account.tool_calls, limits.max_tool_calls, sum(r.counters.tool_calls for r in results)),
        ):
            if most is not None and used > most:
                crowd.faults.append(f"{used} {name} of a budget of {most}")
            if name == "llm_calls" and told > used:
                crowd.faults.append(f"the budget counts {used} {name}, its runs {told}")
    for member in members:
        crowd.steps += member.steps
        crowd.runs += len(member.truth.runs)
        crowd.answered += sum(result.answered for result in member.truth.results)
