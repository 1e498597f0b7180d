"""One run, as the driver and its services share it: settings, state, and the ways out (log, history, ledger)."""

from __future__ import annotations

from typing import Any

import attrs
import trio

from protocol.estimate import Estimator, Gauge
from protocol.events import LimitReached, RunStarted, StepFinished, ToolFinished, Warned
from protocol.history import History
from protocol.ledger import Account
from protocol.limits import Limits, LimitState
from protocol.model import ToolDefinition
from protocol.normalise import Arguments, parse_arguments
from protocol.requests import Ended, RequestTable
from protocol.result import RunResult, StepResult
from protocol.run import RunEnd, RunState, result_of
from protocol.stop import StopCondition
from protocol.stopwatch import Activity
from protocol.text import clean
from protocol.turns import (
    AssistantMessage,
    ReasoningPart,
    ToolCall,
    ToolResult,
    ToolStatus,
    Turn,
    UserMessage,
    calls_of,
    text_of,
)
from protocol.usage import Usage

from ..eventlog import RunLog
from ..journal import Journal
from ..kit import Party
from ..tools import Tool
from ._hooks import StepOverrides
from ._hops import HopInFlight
from ._keeper import Keeper
from ._models import ModelUse
from ._probe import RunProbe
from ._shared import Shared
from ._spec import AgentSpec

__all__ = ("RunCore", "finish_word")


@attrs.define(eq=False)
class RunCore:
    """Everything a run is made of but its tasks."""

    spec: AgentSpec
    """Limits, gate, conditions and finalization: they stay for the whole run."""
    state: RunState
    log: RunLog
    history: History
    account: Account
    requests: RequestTable
    journal: Journal
    conditions: tuple[StopCondition, ...]
    activity: Activity
    """Whether the run works, or waits for somebody."""
    keepers: tuple[Keeper, ...] = ()
    """Who writes it down: its root's, and its own agent's."""
    own: tuple[str, ...] = ()
    """What was given for this run alone and cannot be written down."""
    starter: Activity | None = None
    """What started the run and counts as this one's work until it is over: the body of a tool call, or a run's hook."""
    turn: Party | None = None
    """Its agent, where others wait for it."""
    models: ModelUse = attrs.field(factory=ModelUse)
    """The agent's: what it has asked is closed when it has ended."""
    probe: RunProbe | None = None
    """What stands around this run's work, if anything does."""
    shared: Shared = attrs.field(factory=Shared)
    """The runtime's: what runs wait for, what bounds all of them together, and how they are watched."""
    context: Any = None
    """What the caller gave to `agent.run(context=)`, or a hook put in its place."""
    acting: AgentSpec = attrs.field(init=False)
    """Model, system, tools, hooks and settings: those of the agent that a hand-off gave the run to, or `spec`."""
    tools: dict[str, Tool] = attrs.field(init=False)
    """The acting agent's."""
    offered: dict[str, Tool] = attrs.field(init=False)
    """Those that the request of the turn in hand offered: no other may run (H3)."""
    given: Limits = attrs.field(init=False)
    """The limits that the run was started with."""
    run: str = attrs.field(init=False)
    path: tuple[str, ...] = attrs.field(init=False)
    definitions: tuple[ToolDefinition, ...] = attrs.field(init=False)
    """Of `tools`."""
    may_finalize: bool = attrs.field(init=False)
    """Whether any limit may lead to a final call without anybody being asked."""
    plain_requests: bool = attrs.field(init=False)
    """Whether the acting agent has nothing that could change a request: no hook, no forced choice, tools to offer."""
    plain_tools: bool = attrs.field(init=False)
    """Whether there is nothing between a call that is right and its body: no hook, no approval, no caller."""
    estimator: Estimator = attrs.field(factory=Estimator)
    gauge: Gauge = attrs.field(factory=Gauge)
    """The agent's: what estimates of its requests are worth."""
    estimate: int = 0
    """Input tokens of the request in flight, by estimate, where anything needs it."""
    nursery: trio.Nursery | None = None
    """The star's: what a tool starts in the background ends with the run."""
    background: dict[str, Any] = attrs.field(factory=dict[str, Any])
    """What tools have started in the background, by handle."""
    began: float = attrs.field(factory=trio.current_time)
    arguments: Arguments = attrs.field(factory=dict[str, dict[str, Any]])
    """Decoded arguments of the turn in hand."""
    bound: dict[str, Any] = attrs.field(factory=dict[str, Any])
    """Of each of its calls whose tool was offered: the bound arguments, or what is wrong with them."""
    calls: tuple[ToolCall, ...] = ()
    """Calls of the turn in hand, and its visible text: worked out once."""
    text: str = ""
    message: str = ""
    """The id of the message that is being shown."""
    hop: HopInFlight | None = None
    """The model call in flight, if it continues a turn."""
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    cancel_reason: str | None = None
    requests_end_as: Ended = "cancelled"
    """What becomes of a request that is open when the run ends."""
    coming_end: RunEnd | None = None
    """How the driver ended, while its services are still being joined."""
    end: RunEnd | None = None
    result: RunResult | None = None
    children: list[RunCore] = attrs.field(factory=list["RunCore"])
    """Runs that a tool of this one has started and that are not over."""
    over: trio.Event = attrs.field(factory=trio.Event)
    """Set when the terminal event is out."""
    closed: trio.Event = attrs.field(factory=trio.Event)
    """Set when the star has joined and whoever observes the end has been told."""
    stirred: trio.Event = attrs.field(factory=trio.Event)
    """Set when the run is cancelled or over: what the watchdog waits for."""
    rests: trio.Event = attrs.field(factory=trio.Event)
    """Set when the run is over or paused: what `result()` waits for."""
    submitted: trio.Event = attrs.field(factory=trio.Event)
    """Set when all results that a pause waits for have been given."""
    bodies_allowed: int = 0
    """Tool bodies that the ledger has counted and that have not been entered."""
    failure: Exception | None = None
    """What a tool failed the run with (T6)."""
    transfer: Any = None
    """The hand-off of the turn in hand: a resolved call, and once that is answered the agent that goes on."""
    steps_asked: int | None = None
    """Steps that a reader of `run.steps()` has asked for; `None`: nobody holds the loop."""
    steps_stirred: trio.Event = attrs.field(factory=trio.Event)
    """Set, and made anew, whenever a step has ended or has been asked for."""
    observed: int = 0
    """Steps that `on_step` has been told of."""
    overrides: StepOverrides | None = None
    """What `run.override_next` set for the next step."""
    suspended: bool = False
    """The runtime has stopped, and the run where it stood."""
    parking: bool = False
    """It is to be suspended: it stops at its next boundary."""
    parked: bool = False
    """It has come there, or is over."""

    def __attrs_post_init__(self) -> None:
        self.given = self.state.limits
        self.run = self.log.run
        self.path = self.log.agent_path
        self.act_as(self.spec)
        spec = self.spec
        options = (
            spec.tool_iteration_limit_finalization,
            spec.llm_call_limit_finalization,
            spec.budget_finalization,
        )
        self.may_finalize = options != (None, None, None)

    def act_as(self, spec: AgentSpec) -> None:
        """Go on with this agent's model, system, tools, hooks and settings."""
        self.acting = spec
        self.tools = self.offered = {tool.name: tool for tool in spec.tools}
        self.definitions = tuple([tool.definition for tool in spec.tools])
        hooked = spec.around_tool is not None or any(
            tool.needs_approval is not False or tool.external for tool in spec.tools
        )
        self.plain_tools = not hooked
        self.plain_requests = (
            spec.prepare_step is None
            and spec.prepare_call is None
            and spec.tool_choice == "auto"
            and (bool(self.definitions) or not spec.model.profile.flatten_without_tools)
        )

    @property
    def root(self) -> str:
        """The id of the agent whose run this is a part of: who waits for something shared waits in its line."""
        return self.log.stream.name

    @property
    def elapsed_seconds(self) -> float:
        """Seconds since the run began."""
        return trio.current_time() - self.began

    @property
    def usage(self) -> Usage:
        """What the run and all it started have used, the turn in hand included."""
        return self.account.usage

    @property
    def cost(self) -> float | None:
        """US dollars that the run and all it started have cost, the turn in hand included; `None`: unknown."""
        return self.account.cost

    def start(self) -> None:
        """Store the prompt, or take the answer in hand that is to go on; emit the first event."""
        state = self.state
        model = self.spec.model.name
        self.log.emit(
            RunStarted(run=self.run, agent_path=self.path, agent=self.spec.name, model=model, prompt=state.prompt)
        )
        if state.resumed is None:
            self.history.append(UserMessage(state.prompt))
        else:
            self.history.take_partial()
        self.keep()  # the conversation may be another agent's than the events

    def keep(self) -> None:
        """What the run has come to will be in the journal's next commit."""
        for keeper in self.keepers:
            keeper.touch()

    async def barrier(self) -> None:
        """Wait until what the run has come to is on disk. Where there is none, nobody should come here: it costs a step."""
        self.keep()
        await self.journal.flushed()

    def hold(self, turn: Turn) -> None:
        """Take a turn in hand."""
        self.state.turn = turn
        self.calls = calls_of(turn.parts)
        self.text = text_of(turn.parts)

    def arguments_of(self, call: ToolCall) -> dict[str, Any]:
        """The decoded arguments of a call of the turn in hand."""
        arguments = self.arguments.get(call.id)
        return arguments if arguments is not None else parse_arguments(call.arguments) or {}

    def cancel(self, reason: str) -> None:
        """Cancel the run: its tasks now, the run itself when they have joined or the grace time is over."""
        if not self.over.is_set() and self.cancel_reason is None and not self.suspended:
            self.cancel_reason = clean(reason)
            self.keep()
            self.scope.cancel(reason)
            self.stirred.set()
            for child in self.children:  # at once: before the tool that started it has left its block, it could go on
                child.cancel("the run that started it was cancelled")

    def stop(self, reason: str) -> None:
        """End the run at its next boundary; a wait for a decision is cut at once."""
        if self.state.stop_requested is None and not self.over.is_set():
            self.state.stop_requested = clean(reason)
            self.keep()
            for request in self.log.grammar.open_requests:
                self.requests.end(request, self.requests_end_as)
            self.submitted.set()
            self.stir_steps()

    def warn(self, code: str, text: str, call: str | None = None) -> None:
        """Tell a person something that changes nothing."""
        self.log.emit(Warned(run=self.run, agent_path=self.path, code=code, text=text, call=call))

    def stop_by_tool(self, text: str) -> None:
        """A tool ends the run once the exchange is stored (T6); several texts stand in the order in which they came."""
        before = self.state.tool_stop
        self.state.tool_stop = clean(text) if not before else f"{before}\n\n{clean(text)}".rstrip()

    @property
    def time_is_up(self) -> LimitState | None:
        """The limit of time that is reached, if one is."""
        for account in self.account.chain:
            if account.stopwatch is not None and account.stopwatch.over:
                return account.state_of("wall_clock")
        return None

    def reach(self, limit: LimitState) -> None:
        """Say that a limit changes the course (B6)."""
        self.log.emit(LimitReached(run=self.run, agent_path=self.path, limit=limit))

    def record(self, result: ToolResult) -> None:
        """Enter a call's result, once, and say so: history and events are settled from the same record."""
        if result.call in self.state.results or self.log.over or self.suspended:
            return
        self.state.results[result.call] = result
        self.shared.watch.tools[result.status] += 1
        self.log.emit(
            ToolFinished(
                run=self.run,
                agent_path=self.path,
                call=result.call,
                name=result.name,
                status=result.status,
                started=result.entered,
                text=result.text,
            )
        )

    def answer(self, call: ToolCall, status: ToolStatus, text: str) -> None:
        """Answer a call whose body is not entered."""
        self.record(ToolResult(call.id, call.name, status, text))

    def store_exchange(self, message: str | None = None) -> None:
        """Append the turn in hand with the results of all its calls, and close the step. One step, no await (R3)."""
        state = self.state
        turn = state.turn
        assert turn is not None
        results = tuple([state.results[call.id] for call in self.calls])
        self.history.append_exchange(AssistantMessage(turn.parts), results, message)
        self.close_step(results)

    def partial_result(self, *, limit: LimitState | None = None) -> RunResult:
        """What the run has come to so far; `limit` is what keeps it from going on, if something does."""
        result = self.result_at(None)
        return result if limit is None else attrs.evolve(result, limit=limit)

    def result_at(self, end: RunEnd | None) -> RunResult:
        """The result of an end, or of a run that goes on."""
        return result_of(
            self.state,
            end,
            messages=tuple(self.history.view()),
            usage=self.usage,
            llm_calls=self.account.llm_calls,
            cost=self.cost,
            elapsed_seconds=self.elapsed_seconds,
        )

    def stir_steps(self) -> None:
        """A step has ended, or the next one has been asked for."""
        self.steps_stirred.set()
        self.steps_stirred = trio.Event()

    def close_step(self, results: tuple[ToolResult, ...] = ()) -> None:
        """The turn in hand has been handled."""
        state = self.state
        turn = state.turn
        assert turn is not None
        now = self.elapsed_seconds
        word = finish_word(turn)
        reasoning = "".join([part.text for part in turn.parts if type(part) is ReasoningPart])
        final = state.final is not None
        calls = self.calls if results else ()
        cost = state.spent.cost if state.spent is not None else None
        seconds = now - state.step_began
        raw = turn.raw_finish if turn.raw_finish != word else None
        step = StepResult(
            state.step, self.text, reasoning, calls, results, word, turn.usage, seconds, final, cost, turn.hops, raw
        )
        state.steps.append(step)
        self.log.emit(
            StepFinished(
                run=self.run,
                agent_path=self.path,
                step=state.step,
                finish_reason=word,
                usage=turn.usage,
                dropped_calls=turn.dropped_calls,
            )
        )
        self.keep()
        if self.steps_asked is not None:
            self.stir_steps()
        state.step += 1
        state.turn = state.outcome = state.decision = state.offered = state.overrun = state.uncontinued = None
        state.results = {}
        state.approvals = {}
        state.entering = []
        state.counted = False
        state.stored = "turn"
        self.arguments = {}
        self.bound = {}
        self.calls = ()
        self.text = ""


def finish_word(turn: Turn) -> str | None:
    """A turn's finish reason in the common words; one that the profile does not know, verbatim."""
    return turn.raw_finish if turn.finish == "other" else turn.finish
