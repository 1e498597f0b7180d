"""The runtime: where agents and users' own actors live, and how they are stopped in order."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, TypeVar, final

import trio

from protocol.errors import AgentStopped, JournalError, SpecError, SubmissionRefused
from protocol.history import History
from protocol.idem import IdempotencyStore
from protocol.records import StoredAgent, StoredEvents
from protocol.requests import DecisionReply, Response
from protocol.turns import Message

from ..agent import (
    Agent,
    AgentSpec,
    Budget,
    BudgetBook,
    Ground,
    ModelUse,
    Places,
    Probe,
    RunContext,
    Shared,
    StepWatch,
    as_fork,
    current_run,
    submit,
)
from ..eventlog import Observer
from ..journal import Journal, KnownAgent
from ..kit import Actor, Directory, HostedActor, Port, Restarts
from ._absent import Absent
from ._statistics import RuntimeStatistics

__all__ = ("Runtime",)

M = TypeVar("M")
CLOSING = "the runtime is being closed"
SHOWN_AGENTS = 20
"""How many an error names."""
CANCEL_SECONDS = 1.0
"""How long runs that were cancelled, as they came to no boundary in time, may take to say so."""


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
        self._absent = Absent(journal.agents())
        self._observers: list[Callable[[Agent], None]] = []

    @property
    def agents(self) -> tuple[Agent, ...]:
        """The agents that have been spawned and not stopped."""
        return tuple(self._agents.values())

    def agent(self, which: str) -> Agent:
        """The agent of that id, or of that name. Raises `LookupError` if there is none (any more), or the name is that of several."""
        found = self._agents.get(which)
        named = [found] if found is not None else [one for one in self._agents.values() if one.name == which]
        if len(named) != 1:
            there = ", ".join(f"{one.name} ({one.id})" for one in named or list(self._agents.values())[:SHOWN_AGENTS])
            raise LookupError(
                f"there are {len(named)} agents {which!r}: give the id of one; there are: {there or 'none'}"
            )
        return named[0]

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
        known = self._absent.named(spec.name) if spawner is None else None
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
        return self._absent.all

    async def bring_back(self, known: KnownAgent, spec: AgentSpec, *, context: Any = None) -> Agent:
        """The runtime's own: bring an agent back, with a spec. One whose waiter is cancelled meanwhile is not stopped by that.

        Raises `AgentStopped` and `JournalError` as `spawn` does.
        """
        self._absent.take(known)
        is_there = False
        try:
            with self._places.kept():
                stored = await self._journal.load(known.id, self._event_log_bytes)
            agent = self._new(spec, None, stored=stored, context=context)
            is_there = True
        finally:
            if not is_there:
                self._absent.put_back(known)
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


async def _hosted(agent: Agent) -> Agent:
    try:
        await agent.hosted.wait()
    except trio.Cancelled:
        agent.stop("whoever spawned it did not wait for it")
        raise
    return agent
