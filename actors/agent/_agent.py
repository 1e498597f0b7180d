"""An agent: data that outlives its runs, and one host task that owns them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import partial
from typing import Any, final

import trio

from protocol.errors import AgentStopped, SpecError
from protocol.events import AgentFailed, AgentSpawned, ErrorInfo
from protocol.events import AgentStopped as AgentStoppedEvent
from protocol.history import History
from protocol.ids import new_id
from protocol.limits import Limits
from protocol.records import Made, RunFacts, StoredAgent, StoredEvents
from protocol.requests import RequestTable
from protocol.run import RunState
from protocol.stop import StopCondition
from protocol.stopwatch import Activity
from protocol.text import clean
from protocol.turns import Message

from ..eventlog import EventReader, EventStream, RunLog
from ..journal import Journal
from ..kit import AskCycle, waiting_for
from ._agent_statistics import AgentStatistics
from ._context import RunContext, context_of, current_activity, current_run
from ._core import RunCore
from ._driver import drive
from ._ground import Ground, lay_ground
from ._launch import Launched, launch
from ._manual import LoopFunction, driver_of
from ._models import ModelUse
from ._opening import GroundOf, core_of, open_core, own_settings, take_up
from ._park import rest, suspend, wait_parked
from ._policies import Continuation
from ._run import Run
from ._shared import Shared
from ._spec import AgentSpec
from ._star import Drive
from ._starting import IfBusy, Starting, check_prompt, hold
from ._turn import AgentTurn

__all__ = ("Agent", "AgentStatistics")


@final
class Agent:
    """A long-lived agent with one conversation and one tool set; made by `runtime.spawn()`."""

    def __init__(
        self,
        spec: AgentSpec,
        *,
        journal: Journal,
        shared: Shared,
        models: ModelUse,
        history: History,
        event_log_bytes: int = 256 * 1024,
        spawn: Callable[[AgentSpec], Awaitable[Agent]] | None = None,
        ground_of: GroundOf,
        is_kept: bool = False,
        stored: tuple[StoredAgent, StoredEvents] | None = None,
        context: Any = None,
    ) -> None:
        found = None if stored is None else stored[0]
        self.id = new_id("agent") if found is None else found.id
        """Unique in the process and across restarts."""
        self.spec = spec
        self._shared = shared
        self.models = models
        """The runtime's own: the models that the agent has asked."""
        models.hold(spec.model)
        self._spawn = spawn
        self._ground_of = ground_of
        self._ground, self._stream = lay_ground(
            journal,
            models,
            shared,
            self.id,
            spec.name,
            history=history,
            event_log_bytes=event_log_bytes,
            is_kept=is_kept,
            stored=stored,
        )
        self._history, self._requests = self._ground.history, self._ground.requests
        self.commands = self._ground.commands
        """The runtime's own: what clients' commands came to, under their keys."""
        self._keeper = self._ground.keepers[0] if is_kept else None
        self._turn = AgentTurn(spec.name)
        self._promised: Starting | None = None
        self._core: RunCore | None = None
        self._nursery: trio.Nursery | None = None
        self._stop_reason: str | None = None
        self._stopping = trio.Event()
        self.hosted = trio.Event()
        """Set when the agent's host runs: it takes runs from then on."""
        self.stopped = trio.Event()
        """Set when the agent's host has ended."""
        self._brought_back: Run | None = None
        self._unfinished = None if found is None else found.run
        self._context = context

    def __repr__(self) -> str:
        return f"<Agent {self.spec.name} {self.id}>"

    @property
    def name(self) -> str:
        """As in the spec."""
        return self.spec.name

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation up to now, read-only."""
        return self._history.view()

    @property
    def requests(self) -> RequestTable:
        """The agent's requests: open ones, and those closed lately."""
        return self._requests

    def made_by(self, made: Made) -> None:
        """The runtime's own: a client had it made, and it is written down how. Said at once when it is made."""
        if self._keeper is not None:
            self._keeper.made = made

    @property
    def stream(self) -> EventStream:
        """The numbered events of the agent and of all below it."""
        return self._stream

    def events(self, *, after: int | None = None) -> EventReader:
        """A reader of all events of the agent, behind number `after` (`None`: from now on)."""
        return self._stream.reader(after=after)

    @contextlib.asynccontextmanager
    async def run(
        self,
        prompt: str,
        *,
        limits: Limits | None = None,
        stop_when: Sequence[StopCondition] | None = None,
        continuation: Continuation | None = None,
        custom_data: Any = None,
        context: Any = None,
        if_busy: IfBusy = "refuse",
        loop: LoopFunction | None = None,
    ) -> AsyncGenerator[Run, None]:
        """Start a run and hand it over; leaving the block before its end cancels it and waits for its terminal event.

        What is given here holds for this run, in place of the agent's own (R6). `context` is passed, untouched, to the
        agent's callbacks; `custom_data` is what its hooks carry from step to step. Started inside a tool of another run,
        it is a sub-agent's: it draws on that run's account. `loop` is a loop of your own, in place of the engine's (M4).

        Raises `SpecError` for a prompt or setting that cannot be right, `AgentBusy` if a run is going on and `if_busy`
        is `refuse` (or too many wait), `AgentStopped` if the agent takes no more runs, `RuntimeFull` if there is no room.
        """
        check_prompt(prompt)
        spec = self.spec.for_run(limits=limits, stop_when=stop_when, continuation=continuation)
        driver = drive if loop is None else driver_of(loop)
        async with self._open_run(
            clean(prompt), spec, driver, custom_data=custom_data, context=context, if_busy=if_busy
        ) as run:
            yield run

    async def start(self, prompt: str, *, limits: Limits | None = None, if_busy: IfBusy = "refuse") -> Run:
        """Start a run that belongs to no block: it goes on until it ends, or the agent is stopped.

        Raises what `run()` raises.
        """
        starting = self.begin(prompt, limits=limits, if_busy=if_busy)
        try:
            with waiting_for(self._turn if if_busy == "queue" else None):
                return await starting.wait()
        except (trio.Cancelled, AskCycle):
            starting.scope.cancel("whoever started it did not wait for it")
            raise

    def begin(self, prompt: str, *, limits: Limits | None = None, if_busy: IfBusy = "refuse") -> Starting:
        """As `start()`, for one who does not wait: the run begins when the agent is free, whatever becomes of him.

        Raises `SpecError` and `AgentStopped`; the promise has what else `run()` raises.
        """
        if self._nursery is None or self._stop_reason is not None:
            raise self._refusal()
        check_prompt(prompt)
        spec = self.spec.for_run(limits=limits)
        starting = self._promised = Starting(self._promised)
        run = self._open_run(clean(prompt), spec, drive, if_busy=if_busy)
        self._nursery.start_soon(hold, starting, run, self._refusal, name=f"{self.name}/held")
        return starting

    def _refusal(self) -> AgentStopped:
        return AgentStopped(f"agent {self.name} has been stopped: {self._stop_reason or 'its runtime is closed'}")

    @contextlib.asynccontextmanager
    async def continue_answer(
        self,
        *,
        limits: Limits | None = None,
        stop_when: Sequence[StopCondition] | None = None,
        continuation: Continuation | None = None,
        custom_data: Any = None,
        context: Any = None,
        if_busy: IfBusy = "refuse",
    ) -> AsyncGenerator[Run, None]:
        """Start a run that goes on with the answer at the end of the conversation, which was cut (D5).

        The first call asks the model to continue it, as its profile says. What comes is more of the same message: the
        answer is taken back in hand, and stored again with all that came, as one message; `result.text` is the whole of
        it, the run's deltas are what is new. Otherwise it is a run like any other, whose prompt is empty.

        Raises `SpecError` if the conversation does not end with a partial answer, or the model cannot continue one;
        `AgentBusy` and `AgentStopped` as `run` does.
        """
        if self.spec.model.profile.continues_text == "none":
            raise SpecError(f"model {self.spec.model.name} cannot continue an answer: ask for it again with run()")
        spec = self.spec.for_run(limits=limits, stop_when=stop_when, continuation=continuation)
        async with self._open_run(None, spec, drive, custom_data=custom_data, context=context, if_busy=if_busy) as run:
            yield run

    @contextlib.asynccontextmanager
    async def _open_run(
        self,
        prompt: str | None,
        spec: AgentSpec,
        driver: Drive,
        *,
        custom_data: Any = None,
        context: Any = None,
        if_busy: IfBusy = "refuse",
    ) -> AsyncGenerator[Run, None]:
        """Start a run; `None` for a prompt: one that goes on with the partial answer at the end."""
        if if_busy not in {"refuse", "queue"}:
            raise SpecError(f"if_busy must be 'refuse' or 'queue'; it is {if_busy!r}")
        owner, caller, activity = object(), current_run.get(), current_activity.get()
        await self._turn.take(owner, if_busy, () if caller is None else [one.name for one in caller.account.chain])
        with contextlib.ExitStack() as undo:
            undo.callback(self._turn.release, owner)
            if self._nursery is None or self._stop_reason is not None:
                await trio.lowlevel.checkpoint_if_cancelled()  # whoever is cancelled with the agent is told that
                raise self._refusal()
            if prompt is None and self._history.partial is None:
                raise SpecError("there is no answer to continue: the conversation does not end with a partial one")
            self._shared.admit(self.name, 0 if caller is None else len(caller.path) + 1, self._history, prompt)
            core, stream = self._open_core(spec, prompt or "", context, caller, activity)
            undo.pop_all()
        core.state.custom_data = custom_data
        core.state.resumed = self._history.partial if prompt is None else None
        core.own = own_settings(spec, self.spec, context, is_own_loop=driver is not drive)
        before = stream.end
        self._take_in_hand(core)
        core.start()
        if activity is not None:
            core.starter = activity
            activity.delegate()
        self._launch(self._nursery, core, stream, owner, driver)
        siblings: list[RunCore] = caller.children if caller is not None else []
        siblings.append(core)
        try:
            yield Run(core, stream, before)
        finally:
            core.cancel("its block was left before the end")
            with trio.move_on_after(spec.cancel_grace_seconds + 1, shield=True):
                await core.over.wait()
            if spec.on_run_end is not None:
                with trio.move_on_after(spec.callback_timeout_seconds, shield=True):
                    await core.closed.wait()
            siblings.remove(core)

    def _open_core(
        self, spec: AgentSpec, prompt: str, context: Any, parent: RunContext | None, activity: Activity | None
    ) -> tuple[RunCore, EventStream]:
        path = () if parent is None else (*parent.path, self.name)
        stream = self._stream if parent is None else parent.stream
        run, limits = new_id("run"), spec.limits()
        ground, above = self._ground, self._shared.account
        if parent is not None:
            ground, above = ground.under(parent.core), parent.account
        state = RunState(run, prompt, limits, path, window_max=spec.max_tool_iterations)
        log = RunLog(stream, run, path)
        core = open_core(ground, spec, state, log, above=above, activity=activity, context=context)
        return core, stream

    def _take_in_hand(self, core: RunCore) -> None:
        self._core, core.turn, self._turn.run = core, self._turn, core.run
        if self._keeper is not None and not core.path:
            self._keeper.core = core

    @property
    def brought_back(self) -> Run | None:
        """The run that was unfinished when the agent was written down, and goes on by itself; `None` if there was none."""
        return self._brought_back

    @property
    def current(self) -> RunCore | None:
        """The runtime's own: the run in hand."""
        return self._core if self._turn.taken else None

    def untouched(self) -> Ground | None:
        """The runtime's own: what its runs stand on, if there has been none since it is here."""
        return self._ground if self._core is None else None

    def stop(self, reason: str = "stopped", *, now: bool = False) -> None:
        """Take no more runs; the one in hand ends at its next boundary, or `now`: it is cancelled. A second stop may sharpen one.

        `stopped` is set when all has ended. It is for good: a journal does not bring the agent back.
        """
        if not self._stopping.is_set():
            self.rest(reason)
            self._stopping.set()
            if self._keeper is not None:
                self._keeper.retire()
        if now and self._core is not None:
            self._core.cancel(reason)

    def rest(self, reason: str) -> None:
        """The runtime's own: take no more runs; the one in hand ends at its next boundary."""
        self._stop_reason = self._stop_reason or reason
        rest(self._core, reason)

    def park(self) -> None:
        """The runtime's own: let the run in hand stand still where it can be taken up again."""
        self._stop_reason = self._stop_reason or "its runtime is being closed"
        if self._core is not None:
            self._core.parking = True

    async def wait_parked(self) -> None:
        """The runtime's own: wait until it does, or waits for somebody, or is over."""
        await wait_parked(self._core)

    def suspend(self) -> None:
        """The runtime's own: write down what the agent has come to, and stop without an end."""
        self._stop_reason = self._stop_reason or "its runtime is closed"
        if self._keeper is not None:
            self._keeper.seal()
            suspend(self._core)
        self._stopping.set()

    def statistics(self) -> AgentStatistics:
        """A frozen look at the agent."""
        return AgentStatistics.of(
            self.id,
            self.name,
            self.current,
            is_stopped=self.stopped.is_set() or self._stop_reason is not None,
            queued_runs=self._turn.queued,
            history=self._history,
            open_requests=len(self._requests.pending()),
            events=self._stream.end,
        )

    async def host(self) -> None:
        """Own the agent's runs until it is stopped. Run by the runtime; a crash ends this agent and no other."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                self._stream.append(AgentSpawned(agent=self.id, name=self.name))
                if self._unfinished is not None:
                    self._bring_back(nursery, self._unfinished)
                self.hosted.set()
                try:
                    await self._stopping.wait()
                finally:
                    self._nursery = None  # before it closes: whoever comes now is refused
        except* Exception as group:  # noqa: BLE001  the boundary of an agent
            self._stop_reason = "it crashed"
            error = ErrorInfo("agent_crashed", "; ".join(f"{type(e).__name__}: {e}" for e in group.exceptions)[:2000])
            self._stream.append(AgentFailed(agent=self.id, error=error))
        finally:
            self.hosted.set()
            self._stream.append(AgentStoppedEvent(agent=self.id, reason=self._stop_reason or "its runtime was closed"))
            self._stream.close()
            self.stopped.set()

    def _bring_back(self, nursery: trio.Nursery, facts: RunFacts) -> None:
        """Go on with the run that was unfinished when the agent was written down."""
        owner = object()
        self._turn.take_nowait(owner)
        core = core_of(self._ground, facts, self.spec, self._stream, above=self._shared.account, context=self._context)
        self._brought_back = Run(core, self._stream, self._stream.end)
        self._take_in_hand(core)
        take_up(core, facts, self._ground_of)
        self._launch(nursery, core, self._stream, owner, drive)

    def _launch(self, nursery: trio.Nursery, core: RunCore, stream: EventStream, owner: object, driver: Drive) -> None:
        context = context_of(core, stream, self._spawn)
        launch(nursery, Launched(core, context, self.id, driver), partial(self._free, owner))

    def _free(self, owner: object) -> None:
        self._turn.release(owner)
        self._shared.note(self._history)
