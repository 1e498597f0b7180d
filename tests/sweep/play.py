"""Plays one scenario: two runs of one agent, the first of them disturbed at one scheduler step or one crash point."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Generator
from typing import Any, Generic, Literal, TypeAlias, TypeVar
from unittest import mock

import attrs
import hypothesis
import trio
import trio.testing

from actors import Agent, AgentSpec, ContinuationResponse, Run, open_runtime, remote
from actors.agent import _star as star
from actors.kit import Mailbox
from protocol.errors import RunError
from protocol.events import ContinuationRequired, Event
from protocol.result import RunResult

from .world import PROMPTS, Boom, KnowingModel, Points, StopAt, World, child_tasks, tapped

assert hypothesis  # its import makes trio's scheduler follow the seed: a fault can be played again

M = TypeVar("M")
Gate: TypeAlias = Literal["remote", "provider", "nobody", "off"]
Action: TypeAlias = Literal["scope", "cancel", "stop", "runtime"]


@attrs.frozen(kw_only=True)
class Scenario:
    """What is played. The disturbance, if any, strikes in the first run."""

    gate: Gate = "remote"
    finalize: bool = False
    slow: bool = False
    width: int = 2
    parallel: int | None = None
    reports_sending: bool = True
    action: Action | None = None
    at: int | None = None
    crash_at: int | None = None
    seed: int = 0


@attrs.define
class Record:
    """What came of it."""

    scenario: Scenario
    world: World
    steps: int = 0
    """Scheduler steps of the first run."""
    events: list[Event] = attrs.field(factory=list)
    messages: tuple[Any, ...] = ()
    results: list[RunResult] = attrs.field(factory=list)
    """Of both runs; the partial one where a run came to no result."""
    errors: list[RunError | None] = attrs.field(factory=list)
    accounts: list[Any] = attrs.field(factory=list)
    total: Any = None
    """The runtime's account."""
    pending: int = 0
    open_asks: list[str] = attrs.field(factory=list)
    tasks_left: list[str] = attrs.field(factory=list)
    inside_at_end: set[str] = attrs.field(factory=set)
    """Calls whose body was still running when the first run's handle was left."""
    acted_at: float | None = None
    sent_at_act: int = 0
    whole_at_act: int = 0
    ended_at: float | None = None
    cut: bool = False
    """Whether the first run had begun, and its end was not decided, when it was disturbed."""
    sent_after_act: int = 0
    """Requests that left in the first run after it was disturbed."""
    refused: int = 0
    hung: bool = False
    boom: str | None = None


def spec_of(scenario: Scenario, world: World) -> AgentSpec:
    continuation: Any = {
        "remote": remote(timeout_seconds=60),
        "provider": world.provider,
        "nobody": remote(timeout_seconds=3),
        "off": None,
    }[scenario.gate]
    return AgentSpec(
        model=KnowingModel(world, scenario.reports_sending),
        tools=[world.add],
        max_tool_iterations=2,
        max_parallel_tools=scenario.parallel,
        continuation=continuation,
        stop_when=[world.condition],
        tool_iteration_limit_finalization=world.instruction if scenario.finalize else None,
    )


def play(scenario: Scenario) -> Record:
    """Play a scenario in virtual time, with a scheduler that follows the seed."""
    world = World(scenario.slow, scenario.width, Points(scenario.crash_at))
    record = Record(scenario, world)
    stage = _Stage(record)
    instrument = StopAt(scenario.at, stage.act)
    stage.instrument = instrument
    trio._core._run._r.seed(scenario.seed)
    clock = trio.testing.MockClock(autojump_threshold=0)
    with _watched_star(world.points) as boxes, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(trio.TooSlowError):
            trio.run(stage.main, clock=clock, instruments=[instrument])
            stage.finished = True
    record.hung = not stage.finished
    record.steps = instrument.steps
    record.open_asks = [box.name for box in boxes if stranded(box)]
    stage.read()
    return record


def stranded(box: Mailbox[Any]) -> bool:
    """Whether somebody may wait for this mailbox in vain, or its actor has left it open."""
    found = box.statistics()
    used = box._state.loop is not None
    return bool(found.open_asks or found.waiting or (used and not found.closed))


@contextlib.contextmanager
def _watched_star(points: Points) -> Generator[list[Mailbox[Any]], None, None]:
    """The four services with crash points in their loops, and a look at the mailboxes they are given."""
    boxes: list[Mailbox[Any]] = []

    class Watched(Mailbox[M], Generic[M]):
        def __init__(self, name: str, *, capacity: int = 8, inner: bool = False) -> None:
            super().__init__(name, capacity=capacity, inner=inner)
            boxes.append(self)

    services: dict[str, Any] = {
        name: tapped(getattr(star, name), name.removesuffix("Actor").lower(), points)
        for name in ("BudgetActor", "Session", "Toolbox", "Arbiter")
    }
    with mock.patch.multiple(star, Mailbox=Watched, **services):
        yield boxes


@attrs.define
class _Stage:
    record: Record
    instrument: Any = None
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    run: Run | None = None
    agent: Agent | None = None
    finished: bool = False

    def act(self) -> None:
        self.record.acted_at = trio.current_time()
        self._note()
        self.record.cut = self.run is not None and self.run._core.coming_end is None and not self.run.over
        match self.record.scenario.action:
            case "scope" | "runtime":
                self.scope.cancel("swept")
            case "cancel" if self.run is not None:
                self.run.cancel("swept")
            case "stop" if self.run is not None:
                self.run.stop("swept")
            case _:
                self.record.acted_at = None

    def _note(self) -> None:
        record = self.record
        record.sent_at_act, record.whole_at_act = record.world.sent, record.world.whole

    async def main(self) -> None:
        with trio.fail_after(3600):
            if self.record.scenario.action == "runtime":
                with self.scope:
                    await self._play(twice=False)
                self.record.ended_at = trio.current_time()
                await trio.sleep(60)
            else:
                await self._play(twice=True)
            if self.agent is not None:
                self.record.pending = len(self.agent.requests.pending())

    async def _play(self, *, twice: bool) -> None:
        record, points = self.record, self.record.world.points
        root = trio.lowlevel.current_task()
        async with open_runtime() as runtime:
            self.agent = await runtime.spawn(spec_of(record.scenario, record.world))
            record.total = runtime._shared.account
            before = child_tasks(root)
            points.armed = self.instrument.armed = True
            with trio.CancelScope() if not twice else self.scope:
                await self._run_crashing(PROMPTS[0])
            points.armed = self.instrument.armed = False
            record.inside_at_end = set(record.world.inside)
            await trio.sleep(60)  # what is late gets its chance
            record.tasks_left = [name for name in child_tasks(root) if name not in before]
            if twice:
                await self._run(PROMPTS[1])

    async def _run_crashing(self, prompt: str) -> None:
        """A run whose user may crash too."""
        try:
            await self._run(prompt)
        except* Boom as group:
            self.record.boom = str(group.exceptions[0])

    async def _run(self, prompt: str) -> None:
        assert self.agent is not None
        record = self.record
        run: Run | None = None
        try:
            async with self.agent.run(prompt) as run:
                self.run = run
                try:
                    await self._follow(run)
                finally:
                    if self.scope.cancel_called and record.ended_at is None:
                        self._note()  # the run is told only now
        finally:
            if run is not None:
                if record.ended_at is None:
                    record.ended_at = trio.current_time()
                    record.sent_after_act = record.world.sent - record.sent_at_act
                with trio.move_on_after(3600, shield=True):
                    await self._keep(run)

    async def _follow(self, run: Run) -> None:
        async with trio.open_nursery() as nursery:
            if self.record.scenario.gate == "remote":
                nursery.start_soon(self._decide, run)
            with contextlib.suppress(RunError):  # read from the handle when it is left, whatever happened here
                await run.result()
            nursery.cancel_scope.cancel("the run is over")

    async def _keep(self, run: Run) -> None:
        record = self.record
        record.accounts.append(run._core.account)
        record.refused += run.statistics().refused_events
        try:
            record.results.append(await run.result())
            record.errors.append(None)
        except RunError as error:
            record.results.append(error.partial)
            record.errors.append(error)

    async def _decide(self, run: Run) -> None:
        """Approve each question after a moment."""
        points = self.record.world.points
        async for event in run:
            if isinstance(event, ContinuationRequired):
                await trio.sleep(0.25)
                run.steer("steer left")
                points.hit("decision/before")
                await run.decide(event.request, ContinuationResponse("approve", message="go on"))
                points.hit("decision/after")

    def read(self) -> None:
        if self.agent is None:
            return
        record = self.record
        first, entries = self.agent._stream.read(0, 1_000_000)
        assert first == 1
        record.events = [event for event, _ in entries]
        record.messages = tuple(self.agent.messages)
