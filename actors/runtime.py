"""The runtime: hosts agents and users' own actors in one process, and stops them in order."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar, final

import attrs
import trio

from protocol.errors import AgentStopped, JournalError, SpecError, SubmissionRefused
from protocol.events import Event
from protocol.history import History
from protocol.idem import IdempotencyStore
from protocol.ledger import AccountStatistics
from protocol.records import StoredAgent, StoredEvents
from protocol.requests import DecisionReply, Response
from protocol.turns import Message

from .agent import (
    Agent,
    AgentSpec,
    Budget,
    BudgetBook,
    Ground,
    ModelUse,
    Places,
    Probe,
    RunContext,
    RuntimeLimits,
    Shared,
    StepWatch,
    ThreadStatistics,
    as_fork,
    current_run,
    submit,
    watching,
)
from .eventlog import EventsLost, Observer
from .journal import DiskStatistics, Journal, KnownAgent, MemoryJournal, SQLiteJournal
from .kit import Actor, Directory, HostedActor, Port, Restarts, SlotStatistics

__all__ = ("OnEvent", "Runtime", "RuntimeStatistics", "open_runtime")

M = TypeVar("M")
CLOSING = "the runtime is being closed"
CANCEL_SECONDS = 1.0
"""How long runs that were cancelled, as they came to no boundary in time, may take to say so."""

OnEvent: TypeAlias = Callable[[Agent, Event | EventsLost], object]
"""A plain or async function that is told of every event of every agent."""


@attrs.frozen
class RuntimeStatistics:
    """The state of a runtime."""

    agents: int
    running: int
    actors: int
    llm_calls: int
    tool_threads: ThreadStatistics
    states: Mapping[str, int]
    """How many agents are `idle`, `running`, `waiting` (for a decision, or for results of their caller) and `stopped`."""
    queued_runs: int
    open_requests: int
    runs_ended: Mapping[tuple[str, str], int]
    """Runs that have come to an end: by its kind (`finished`, `failed`, `cancelled`), and by who stopped them."""
    model_calls: Mapping[str, int]
    """Model calls: those that brought a turn (`ok`), and those that were refused, broken or cut (`failed`)."""
    tool_calls: Mapping[str, int]
    """Tool calls that have their result, by its status."""
    account: AccountStatistics
    """What all runs have used together; its limits are none."""
    journal: DiskStatistics | None
    """`None` where there is no journal."""
    uptime_seconds: float
    model_slots: Mapping[str, SlotStatistics]
    """By provider, where their number is limited: of those that have been asked."""
    history_bytes: int
    """What all conversations take of memory, by estimate."""
    event_bytes: int
    """What is kept of all events."""
    limits: RuntimeLimits
    slow_steps: int
    """Steps longer than `slow_step_seconds`, if that is watched."""


@final
class Runtime:
    """Where agents live; made by `open_runtime()`."""

    def __init__(
        self,
        nursery: trio.Nursery,
        home: trio.Nursery,
        journal: Journal,
        shared: Shared,
        event_log_bytes: int,
        *,
        close_seconds: float,
        budget: Budget | None,
        steps: StepWatch | None,
    ) -> None:
        self._directory = Directory(nursery)
        self._home = home
        self._journal = journal
        self._event_log_bytes = event_log_bytes
        self._budgets = BudgetBook(journal)
        self._budgets.enter(budget)
        self._shared = shared
        self._steps = steps
        self._places = Places(shared.limits.max_agents)
        self._agents: dict[str, Agent] = {}
        self._close_seconds = close_seconds
        self._models = Counter[int]()
        self._since = trio.current_time()
        self._closed = self._drained = False
        self.commands = IdempotencyStore()
        """The runtime's own: agents that clients had made, under their keys."""
        self.commands.take_up(known.made.command for known in journal.agents() if known.made is not None)
        self._not_back = {known.id: known for known in journal.agents() if not known.retired}
        self._observers: list[Callable[[Agent], None]] = []

    @property
    def agents(self) -> tuple[Agent, ...]:
        """The agents that have been spawned and not stopped."""
        return tuple(self._agents.values())

    @contextlib.contextmanager
    def observe(self, on_spawn: Callable[[Agent], None]) -> Generator[None]:
        """Inside the block, call `on_spawn` with each agent that is spawned, before its first event."""
        self._observers.append(on_spawn)
        try:
            yield
        finally:
            self._observers.remove(on_spawn)

    @contextlib.contextmanager
    def probe(self, probe: Probe) -> Generator[None]:
        """Inside the block, runs that begin are probed: see `actors.telemetry`, which traces them.

        Raises `SpecError` if they are probed already.
        """
        if self._shared.watch.probe is not None:
            raise SpecError("the runs of this runtime are probed already: leave the first probe's block before")
        self._shared.watch.probe = probe
        try:
            yield
        finally:
            self._shared.watch.probe = None

    def tell(self, observer: Observer[Agent]) -> None:
        """The runtime's own: have an observer told of the events of all agents that are spawned."""
        self._observers.append(lambda agent: observer.watch(agent, agent.stream))

    async def spawn(self, spec: AgentSpec, *, messages: Iterable[Message] = (), context: Any = None) -> Agent:
        """Make an agent; or bring it back, if the runtime's journal holds one of this name that is not here yet.

        `messages` is a conversation that a new agent goes on with; it is repaired so that every call has its result. An agent
        that is brought back has its own conversation, and goes on by itself with the run that was unfinished
        (`agent.brought_back`), with `context` in place of what was given to that run. Of several agents of one name, the
        oldest comes first. One that was stopped by `agent.stop()` is not brought back; those that clients had made from
        templates are, by their gateway.

        Raises `AgentStopped` once the runtime is being closed, `RuntimeFull` where its limits leave no room,
        `JournalError` if the journal cannot be read.
        """
        spawner = current_run.get()  # a tool, or a hook, of another agent
        self._places.need_one(len(self._agents))
        hosts_own = (one for one in self._not_back.values() if one.name == spec.name and one.made is None)
        known = next(hosts_own, None) if spawner is None else None
        if known is not None:
            return await self.bring_back(known, spec, context=context)
        return await _hosted(self._new(spec, spawner, messages=messages, context=context))

    async def fork(self, spec: AgentSpec, run: str, *, step: int, context: Any = None) -> Agent:
        """Make a new agent that goes on from where a run stood when its step `step` had ended (steps count from 0).

        Conversation, counters and ledger are as they were then; the run goes on as a new one (`agent.brought_back`), with the
        settings of `spec`. Where it was the run's last step there is nothing to go on with: run the agent.

        Raises `JournalError` if the journal knows of no such step (any more), or there is no journal; `AgentStopped` and
        `RuntimeFull` as `spawn` does.
        """
        self._places.need_one(len(self._agents))
        with self._places.kept():
            found = await self._journal.load_step(run, step)
        if found is None:
            raise JournalError(f"the journal knows nothing of step {step} of run {run} (any more)")
        agent = self._new(spec, None, stored=(as_fork(found), StoredEvents(1, [])), context=context)
        return await _hosted(agent)

    def spawn_soon(self, spec: AgentSpec, *, messages: Iterable[Message] = ()) -> Agent:
        """A new agent, for one who does not wait: it takes runs once it is `hosted`, whatever becomes of him.

        Raises `AgentStopped` once the runtime is being closed, `RuntimeFull` where its limits leave no room.
        """
        self._places.need_one(len(self._agents))
        return self._new(spec, current_run.get(), messages=messages)

    @property
    def not_back(self) -> tuple[KnownAgent, ...]:
        """The agents that were in the journal when it was opened, and have not been brought back: they are kept."""
        return tuple(self._not_back.values())

    async def bring_back(self, known: KnownAgent, spec: AgentSpec, *, context: Any = None) -> Agent:
        """The runtime's own: bring an agent back, with a spec. One whose waiter is cancelled meanwhile is not stopped by that.

        Raises `AgentStopped` and `JournalError` as `spawn` does.
        """
        del self._not_back[known.id]
        is_there = False
        try:
            with self._places.kept():
                stored = await self._journal.load(known.id, self._event_log_bytes)
            agent = self._new(spec, None, stored=stored, context=context)
            is_there = True
        finally:
            if not is_there:
                self._not_back = {known.id: known, **self._not_back}
        await agent.hosted.wait()
        return agent

    def _new(
        self,
        spec: AgentSpec,
        spawner: RunContext | None,
        *,
        messages: Iterable[Message] = (),
        stored: tuple[StoredAgent, StoredEvents] | None = None,
        context: Any = None,
    ) -> Agent:
        if self._closed:
            raise AgentStopped("the runtime is being closed and takes no new agents")
        self._budgets.enter(spec.budget)
        history = History.load(messages if stored is None else stored[0].messages)
        if stored is None:  # what comes back is taken in whatever it needs: nothing is lost
            self._shared.need_room(history, spec.name)
        agent = Agent(
            spec,
            models=ModelUse(self._models, spawner.core.models if spawner is not None else None),
            journal=self._journal,
            shared=self._shared,
            event_log_bytes=self._event_log_bytes,
            history=history,
            spawn=self.spawn,
            ground_of=self._ground_of,
            is_kept=self._journal.durable and spawner is None,
            stored=stored,
            context=context,
        )
        self._agents[agent.id] = agent
        self._shared.note(history)
        for on_spawn in self._observers:
            on_spawn(agent)
        self._home.start_soon(self._host, agent, history, name=f"{agent.name}/host")
        return agent

    def _ground_of(self, agent: str) -> Ground | None:
        found = self._agents.get(agent)
        return None if found is None else found.untouched()

    async def spawn_actor(
        self, actor: Actor[M], *, name: str | None = None, capacity: int = 8, restarts: Restarts | None = None
    ) -> Port[M]:
        """Run an actor of your own under supervision until the runtime closes; returns its port.

        Without a name it gets that of its class, with a number if that is taken. An actor that crashes more often than
        `restarts` forgives ends the runtime with its error, unless `restarts` says otherwise.

        Raises `SpecError` for a name that is taken, `AgentStopped` once the runtime is being closed.
        """
        if self._closed:
            raise AgentStopped("the runtime is being closed and takes no new actors")
        hosted = self._directory.spawn(actor, name=name, capacity=capacity, restarts=restarts)
        await trio.lowlevel.checkpoint()
        return hosted.port

    @property
    def actors(self) -> tuple[HostedActor[Any], ...]:
        """The users' own actors that are not over, each with its port, its `statistics()` and its `stop()`."""
        return self._directory.all

    def find(self, name: str) -> HostedActor[Any]:
        """The actor of that name. Raises `ActorGone` if there is none (any more)."""
        return self._directory.find(name)

    async def decide(self, request: str, response: Response, *, by: str | None = "host") -> DecisionReply:
        """Answer an open request of any agent; the rules are those of `run.decide()`."""
        reply = DecisionReply("not_found", request)
        for agent in self._agents.values():
            reply = agent.requests.decide(request, response, by)
            if reply.status != "not_found":
                break
        await self._journal.flushed()
        return reply

    async def flushed(self) -> None:
        """Wait until all that has happened is durable."""
        await self._journal.flushed()

    def submit(self, run: str, results: Mapping[str, Any]) -> None:
        """Give a paused run of any agent, a sub-agent's too, the results of its caller's own tools, as `run.submit()` does.

        Raises `SubmissionRefused` for a run that is not going on, or an id that is not waited for.
        """
        for agent in self._agents.values():
            core = agent.current
            if core is not None and core.run == run:
                submit(core, results)
                return
        raise SubmissionRefused(f"no run {run!r} is going on")

    def statistics(self) -> RuntimeStatistics:
        """A frozen look at the runtime."""
        shared, agents = self._shared, [agent.statistics() for agent in self._agents.values()]
        states = Counter[str](idle=0, running=0, waiting=0, stopped=0)
        states.update(agent.state for agent in agents)
        return RuntimeStatistics(
            agents=len(agents),
            running=sum(1 for agent in agents if agent.run is not None),
            actors=len(self._directory.all),
            llm_calls=shared.account.llm_calls,
            tool_threads=shared.threads.statistics(),
            states=dict(states),
            queued_runs=sum(agent.queued_runs for agent in agents),
            open_requests=sum(agent.open_requests for agent in agents),
            runs_ended=dict(shared.watch.ended),
            model_calls=dict(shared.watch.calls),
            tool_calls=dict(shared.watch.tools),
            account=shared.account.statistics(),
            journal=self._journal.statistics(),
            uptime_seconds=trio.current_time() - self._since,
            model_slots={} if shared.slots is None else shared.slots.statistics(),
            history_bytes=sum(agent.history_bytes for agent in agents),
            event_bytes=sum(agent.stream.statistics().bytes for agent in self._agents.values()),
            limits=shared.limits,
            slow_steps=0 if self._steps is None else self._steps.found,
        )

    async def _host(self, agent: Agent, history: History) -> None:
        try:
            await agent.host()
        finally:
            self._agents.pop(agent.id, None)
            self._shared.forget(history)
            with trio.move_on_after(self._close_seconds, shield=True):
                await agent.models.release()

    def close(self) -> None:
        """Take no new agents."""
        self._closed = True

    async def drain(self, *, grace_seconds: float) -> None:
        """Take no new agents and no new runs; those in hand end at their next boundary, or are cancelled `grace_seconds` later.

        With a journal they do not end: they stand still there, are written down, and go on when their agents are spawned again.
        """
        self.close()
        if self._drained:
            return
        self._drained = True
        agents = list(self._agents.values())
        if self._journal.durable:
            for agent in agents:
                agent.park()
            with trio.move_on_after(grace_seconds):
                for agent in agents:
                    await agent.wait_parked()
            self.suspend()
            return
        for agent in agents:
            agent.rest(CLOSING)
        going_on = [agent.current for agent in agents if agent.current is not None]
        with trio.move_on_after(grace_seconds):
            for core in going_on:
                await core.over.wait()
        for core in going_on:
            core.cancel(CLOSING)
        with trio.move_on_after(CANCEL_SECONDS):
            for core in going_on:
                await core.over.wait()

    async def stop(self, *, grace_seconds: float, now: bool = False) -> None:
        """Do what `drain` does, and stop the agents; then the users' actors, which tools may need to the last.

        What waits in the mailboxes of these is handled, within what is left of `grace_seconds`. `now`: runs and actors are
        cancelled where they are; with a journal, runs are written down there.

        Leaving `open_runtime()` does this, and then cancels what still goes on.
        """
        deadline = trio.current_time() + grace_seconds
        await self.drain(grace_seconds=0 if now else grace_seconds)
        agents = [] if self._journal.durable else list(self._agents.values())
        for agent in agents:
            agent.stop(CLOSING, now=now)
        with trio.CancelScope(deadline=deadline):
            for agent in agents:
                await agent.stopped.wait()
            await self._directory.finish(now=now)

    def suspend(self) -> None:
        """With a journal: write down where all agents stand, now, and let none of them go on."""
        self.close()
        for agent in self._agents.values():
            agent.suspend()


@contextlib.asynccontextmanager
async def open_runtime(
    *,
    journal: str | os.PathLike[str] | Journal | None = None,
    tool_threads: int = 40,
    event_log_bytes: int = 256 * 1024,
    stop_grace_seconds: float = 5.0,
    budget: Budget | None = None,
    on_event: OnEvent | None = None,
    limits: RuntimeLimits | None = None,
    slow_step_seconds: float | None = None,
) -> AsyncGenerator[Runtime, None]:
    """Open a runtime; leaving the block stops its agents in order.

    On a normal exit, runs that still go on end at their next boundary within `stop_grace_seconds` and are cancelled
    after; on an error they are cancelled at once. A single error of the body leaves the block as itself.

    `journal` is the path of a file, or a `SQLiteJournal(...)`, in which everything is kept that is acknowledged: an agent
    that is spawned with the name of one in it is brought back, and its unfinished run goes on. Leaving the block suspends runs
    then. `JournalError` if it cannot be opened; and out of the block, as soon as it cannot be written any more.

    `on_event(agent, event)` is told of every event of every agent, up to its last, in order and one at a time, by a task of
    its own. A plain function must not block; an async one may take its time: what it has not come to waits in the log, and
    what that drops it gets as `EventsLost`. What it raises is logged. On leaving it has `stop_grace_seconds` to catch up.

    `tool_threads` is how many synchronous tools run at a time; `event_log_bytes` is what each agent keeps of its events for
    readers that fall behind (they are told how many they lost). `budget` is what all its agents draw on together, `limits`
    what else they may take together. Where agents wait for a thread or a model call, they take turns.

    With `slow_step_seconds`, whoever holds up all others for longer than that is told of: in the log, by a `warning` event
    of its run, and in `statistics()`. That takes time in every step of every task of the program: a tenth, roughly.

    Raises `SpecError` for a setting that cannot be right.
    """
    if on_event is not None and not callable(on_event):
        raise SpecError(f"open_runtime(on_event=) must be a function of an agent and an event; it is {on_event!r}")
    shared = Shared.of(limits, tool_threads=tool_threads, budget=budget)
    if journal is None:
        kept: Journal = MemoryJournal()
    elif isinstance(journal, (str, os.PathLike)):
        kept = SQLiteJournal(journal)
    else:
        kept = journal
    with watching(slow_step_seconds) as steps:
        async with (
            kept.opened(),
            _hosting(kept, shared, event_log_bytes, stop_grace_seconds, budget, on_event, steps) as runtime,
        ):
            yield runtime


@contextlib.asynccontextmanager
async def _hosting(
    journal: Journal,
    shared: Shared,
    event_log_bytes: int,
    stop_grace_seconds: float,
    budget: Budget | None,
    on_event: OnEvent | None,
    steps: StepWatch | None,
) -> AsyncGenerator[Runtime, None]:
    failure: Exception | SystemExit | KeyboardInterrupt | None = None
    try:
        async with trio.open_nursery() as nursery:
            home = nursery
            if journal.durable:
                nursery.start_soon(journal.serve, nursery.cancel_scope.cancel, name="journal")
                home = await nursery.start(_home)
            runtime = Runtime(
                nursery,
                home,
                journal,
                shared,
                event_log_bytes,
                close_seconds=stop_grace_seconds,
                budget=budget,
                steps=steps,
            )
            observer = None if on_event is None else Observer(on_event)
            if observer is not None:
                await nursery.start(observer.run, name="on_event")
                runtime.tell(observer)
            try:
                yield runtime
            except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001  raised below, as itself
                failure = error
            else:
                await runtime.stop(grace_seconds=stop_grace_seconds)
            finally:
                runtime.close()
                if observer is not None:
                    observer.finish(grace_seconds=stop_grace_seconds)
                if journal.durable:
                    runtime.suspend()
                    await journal.finish()
                home.cancel_scope.cancel("the runtime is closed")
            nursery.cancel_scope.cancel("the runtime is closed")
    except BaseExceptionGroup as group:
        if failure is None:
            raise
        raise BaseExceptionGroup(
            "the body of open_runtime() failed, and so did the runtime", [failure, *group.exceptions]
        ) from None
    if failure is not None:
        raise failure


async def _hosted(agent: Agent) -> Agent:
    try:
        await agent.hosted.wait()
    except trio.Cancelled:
        agent.stop("whoever spawned it did not wait for it")
        raise
    return agent


async def _home(*, task_status: trio.TaskStatus[trio.Nursery]) -> None:
    """Where agents live that are written down: what cancels the runtime reaches them only when that has been done."""
    with trio.CancelScope(shield=True):
        async with trio.open_nursery() as nursery:
            task_status.started(nursery)
            await trio.sleep_forever()
