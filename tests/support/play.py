"""A stage for agents: runs them in virtual time, and has the judge look at every run when the curtain falls.

`play(spec)` is one run to its end; `perform(scene)` is anything else. Time is trio's mock clock with autojump, bounded
by an hour of it: a run that hangs fails at once. Whatever the scene looked at, afterwards all events of all agents go
through the oracle, all conversations are held against them, and no strict model may have had anything to refuse.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import Any, TypeAlias, TypeVar

import attrs
import trio
import trio.testing

from actors import Agent, AgentSpec, Run, RunResult, Runtime, open_runtime
from protocol.errors import RunError
from protocol.events import Event, RunCancelled, RunEvent, RunFailed, RunFinished, RunStarted
from protocol.turns import Message

from .conversation import history_faults, shown_faults, summary_faults
from .oracle import Numbered, event_faults
from .strict import Asked, StrictModel

T = TypeVar("T")
E = TypeVar("E", bound=Event)
Act: TypeAlias = Callable[[Run], Awaitable[object]]
"""What goes on beside a run: steering, deciding, cancelling."""

VIRTUAL_HOUR = 3600
REAL_MINUTE = 60


@attrs.frozen
class Played:
    """A run that has ended, and what was seen of it."""

    run: str
    events: tuple[RunEvent, ...]
    """Of this run alone."""
    outcome: RunResult | None
    error: RunError | None
    asked: tuple[Asked, ...]
    """What its model was asked in this run, if it is a strict one."""
    messages: tuple[Message, ...]
    """The agent's conversation when the run had ended."""
    seconds: float
    """Virtual, from before the start to after the end."""

    @property
    def result(self) -> RunResult:
        """The result; for a run that raised, the partial one."""
        if self.outcome is not None:
            return self.outcome
        assert self.error is not None
        return self.error.partial

    @property
    def types(self) -> list[str]:
        """The names of the events, in order."""
        return [event.type for event in self.events]

    def all(self, kind: type[E]) -> list[E]:
        """The events of one class."""
        return [event for event in self.events if isinstance(event, kind)]

    def only(self, kind: type[E]) -> E:
        """The one event of its class."""
        found = self.all(kind)
        assert len(found) == 1, found
        return found[0]


@attrs.define(eq=False)
class Stage:
    """A runtime whose agents and runs are remembered, to be judged at the end."""

    runtime: Runtime
    agents: dict[Agent, int] = attrs.field(factory=dict)
    """Each with the number of messages it began with."""
    runs: list[Run] = attrs.field(factory=list)
    faults_expected: bool = False
    """Set where a scene breaks the model's rules on purpose."""

    async def spawn(self, spec: AgentSpec, *, messages: Iterable[Message] = ()) -> Agent:
        agent = await self.runtime.spawn(spec, messages=messages)
        self.agents[agent] = len(agent.messages)
        return agent

    @contextlib.asynccontextmanager
    async def run(self, agent: Agent, prompt: str | None = "go", **options: Any) -> AsyncGenerator[Run]:
        """`None` for a prompt: the run that continues the answer at the end."""
        starts = agent.continue_answer(**options) if prompt is None else agent.run(prompt, **options)
        async with starts as run:
            self.runs.append(run)
            yield run

    async def play(self, agent: Agent, prompt: str | None = "go", *, act: Act | None = None, **options: Any) -> Played:
        """One run to its end, with `act` beside it; both are waited for."""
        before = _now(agent)
        async with self.run(agent, prompt, **options) as run, trio.open_nursery() as nursery:
            if act is not None:
                nursery.start_soon(act, run)
            played = await _played(agent, run, before)
        return played  # noqa: RET504  not inside the nursery

    async def see(self, agent: Agent, run: Run) -> Played:
        """See a run to its end that somebody else has just started."""
        self.runs.append(run)
        return await _played(agent, run, _now(agent))

    async def judge(self) -> list[str]:
        """All that is wrong with what was played here."""
        faults: list[str] = []
        streams = [await numbered_events(agent) for agent in self.agents]
        told = [event for numbered in streams for _, event in numbered if isinstance(event, RunEvent)]
        for numbered in streams:
            faults += event_faults(numbered)
        for (agent, loaded), numbered in zip(self.agents.items(), streams, strict=True):
            own = {event.run for _, event in numbered if isinstance(event, RunStarted) and not event.agent_path}
            own |= {
                event.run for event in told if isinstance(event, RunStarted) and event.agent_path[-1:] == (agent.name,)
            }
            faults += history_faults(agent.messages, [event for event in told if event.run in own], loaded=loaded)
        for run in self.runs:
            faults += await _run_faults(run, told)
        models = {id(agent.spec.model): agent.spec.model for agent in self.agents}
        strict = [model for model in models.values() if isinstance(model, StrictModel)]
        if not self.faults_expected:
            faults += [fault for model in strict for fault in model.faults]
        asked = sum(len(model.asked) for model in strict)
        counted = self.runtime.statistics().llm_calls
        if len(strict) == len(models) and counted != asked:
            faults.append(f"the ledger counts {counted} model calls, the models were asked {asked} times")
        return faults


def _asked(agent: Agent) -> list[Asked]:
    model = agent.spec.model
    return model.asked if isinstance(model, StrictModel) else []


def _now(agent: Agent) -> tuple[float, int]:
    """The time, and how many requests its model has got."""
    return trio.current_time(), len(_asked(agent))


async def _played(agent: Agent, run: Run, before: tuple[float, int]) -> Played:
    outcome: RunResult | None = None
    error: RunError | None = None
    try:
        outcome = await run.result()
        if outcome.stopped_by == "pending_tools":
            await run._core.over.wait()
            outcome = await run.result()
    except RunError as caught:
        error = caught
    began, asked = before
    seconds = trio.current_time() - began
    events = tuple([event async for event in run.events() if isinstance(event, RunEvent) and event.run == run.id])
    return Played(run.id, events, outcome, error, tuple(_asked(agent)[asked:]), tuple(agent.messages), seconds)


async def _run_faults(run: Run, told: list[RunEvent]) -> list[str]:
    faults: list[str] = []
    account = run._core.account
    if account.open_reservations:
        faults.append(f"{run.id} left the reservations {account.open_reservations} open")
    statistics = run.statistics()
    if statistics.refused_events or statistics.open_requests or not statistics.over:
        faults.append(f"{run.id} ended with {statistics}")
    try:
        result = await run.result()
    except RunError as error:
        result = error.partial
    faults += shown_faults([event for event in told if event.run == run.id], result.steps)
    ends = [e for e in told if e.run == run.id and isinstance(e, (RunFinished, RunFailed, RunCancelled))]
    for end in ends:
        faults += summary_faults(end.summary, result.summary())
    return faults


async def numbered_events(agent: Agent) -> Numbered:
    """All events of an agent's stream so far, with their numbers."""
    reader = agent.events(after=0)
    numbered: list[tuple[int, Event]] = []
    while reader.seq < agent.statistics().events:
        event = await anext(reader)
        assert isinstance(event, Event), f"the log did not hold them all: {event}"
        numbered.append((reader.seq, event))
    return numbered


def perform(scene: Callable[[Stage], Awaitable[T]], *, order: int = 0, real_time: bool = False, **options: Any) -> T:
    """Run a scene on a stage of its own, in virtual time, and have it judged.

    Tasks that wake in the same tick run in an order that trio draws; `order` decides the draw. `real_time` is for scenes
    that wait for threads, which virtual time does not. The options are the runtime's.
    """

    async def main() -> T:
        with trio.fail_after(REAL_MINUTE if real_time else VIRTUAL_HOUR):
            async with open_runtime(**{
                "event_log_bytes": 64 * 1024 * 1024,
                **options,
            }) as runtime:  # the judge reads them all
                stage = Stage(runtime)
                value = await scene(stage)
            faults = await stage.judge()
            if faults:
                raise AssertionError("the judge found:\n" + "\n".join(faults))
            return value

    trio._core._run._r.seed(order)  # there is no public way to it
    return trio.run(main, clock=None if real_time else trio.testing.MockClock(autojump_threshold=0))


def play(
    spec: AgentSpec,
    prompt: str = "go",
    *,
    act: Act | None = None,
    messages: Iterable[Message] = (),
    order: int = 0,
    **options: Any,
) -> Played:
    """One run of one agent, from its start to its end, judged."""

    async def scene(stage: Stage) -> Played:
        agent = await stage.spawn(spec, messages=messages)
        return await stage.play(agent, prompt, act=act, **options)

    return perform(scene, order=order)


async def event_of(run: Run, kind: type[E], *, nth: int = 1) -> E:
    """Wait for the `nth` event of a class in the run's own events."""
    left = nth
    async for event in run:
        if isinstance(event, kind) and getattr(event, "run", None) == run.id:
            left -= 1
            if not left:
                return event
    raise AssertionError(f"the run ended before its event {kind.__name__} number {nth}")
