"""From a snapshot and the events behind it to what a client shows. Pure; the clock is the caller's.

`onward.mjs` does the same in JavaScript; the tests hold both to one result.
"""

from __future__ import annotations

from typing import Any

from ..events import (
    AgentFailed,
    AgentSpawned,
    AgentStopped,
    AgentWarned,
    ApprovalRequired,
    ApprovalResolved,
    ContentDelta,
    ContextCompacted,
    ContinuationRequired,
    ContinuationResolved,
    Event,
    HandedOff,
    HopFinished,
    LimitReached,
    MessageDelivered,
    MessageDropped,
    MessageQueued,
    ReasoningDelta,
    Rollback,
    RunCancelled,
    RunEvent,
    RunFailed,
    RunFinished,
    RunPaused,
    RunResumed,
    RunStarted,
    StepFinished,
    StepStarted,
    ToolCallDelta,
    ToolFinished,
    ToolProgress,
    ToolRequested,
    ToolStarted,
    UsageReport,
    Warned,
)
from .cursor import Numbered
from .replies import Attached, OpenApproval, OpenContinuation, OpenPause, OpenRequest
from .state import (
    ClientState,
    MessageView,
    RequestView,
    RunView,
    SteeringView,
    ToolView,
    WarningView,
)

__all__ = ("KEPT_RUNS", "KEPT_WARNINGS", "MOST_CALLS", "apply_event", "start_from")

KEPT_RUNS = 20
"""How many runs that have ended a state keeps."""
KEPT_WARNINGS = 50
"""How many warnings a state keeps."""
MOST_CALLS = 1024
"""How many calls of one message are shown as they come in: an `index` beyond is passed over."""


def start_from(agent: str, reply: Attached, *, now: float, name: str = "") -> ClientState:
    """The state that the reply to an attach tells; events from `reply.head + 1` follow it.

    A reply without a snapshot tells nothing but where the events begin: at 1, from `start`.
    """
    state = ClientState(agent=agent, name=name, epoch=reply.epoch)
    snapshot = reply.snapshot
    if snapshot is None:
        return state
    state.seq = reply.head
    state.run = snapshot.run
    state.status = snapshot.state
    state.counters = snapshot.counters
    state.history = snapshot.history
    state.children = snapshot.children
    if snapshot.run is not None:
        state.runs[snapshot.run] = RunView(step=snapshot.step_number, usage=snapshot.usage)
    for child in snapshot.children:
        state.runs[child.run] = RunView(agent_path=child.agent_path)
    for request in reply.open_requests:
        _open(state, request, now)
    return state


def apply_event(state: ClientState, numbered: Numbered, *, now: float) -> None:
    """Bring a state up to date with its next event."""
    state.seq = numbered.last
    event = numbered.event
    if isinstance(event, RunEvent):
        _apply_to_run(state, event, now)
    else:
        _apply_to_agent(state, event)
    _settle(state)


def _apply_to_agent(state: ClientState, event: Event) -> None:
    match event:
        case AgentSpawned():
            state.name = event.name
        case AgentWarned():
            _warn(state, event.code, event.text)
        case AgentFailed():
            _warn(state, event.error.code, event.error.message)
        case AgentStopped():
            state.status = "stopped"
            state.run = None
            state.requests.clear()
        case _:
            pass


def _apply_to_run(state: ClientState, event: RunEvent, now: float) -> None:
    run = state.runs.get(event.run)
    if run is None:
        run = state.runs[event.run] = RunView(agent_path=event.agent_path)
    match event:
        case RunStarted() | HandedOff() | StepStarted() | LimitReached() | ContextCompacted():
            _apply_to_course(state, run, event)
        case ContentDelta() | ReasoningDelta() | ToolCallDelta() | Rollback():
            _apply_to_message(run, event)
        case HopFinished() | UsageReport() | StepFinished():
            _apply_to_usage(run, event)
        case ToolRequested() | ToolStarted() | ToolProgress() | ToolFinished():
            _apply_to_tool(run, event)
        case MessageQueued() | MessageDelivered() | MessageDropped():
            _apply_to_steering(run, event)
        case Warned():
            _warn(state, event.code, event.text)
        case RunFinished() | RunFailed() | RunCancelled():
            _end(state, run, event)
        case _:
            _apply_to_requests(state, event, now)


def _apply_to_course(
    state: ClientState,
    run: RunView,
    event: RunStarted | HandedOff | StepStarted | LimitReached | ContextCompacted,
) -> None:
    match event:
        case RunStarted():
            run.model, run.prompt, run.whole = event.model, event.prompt, True
            if not event.agent_path:
                state.run, state.counters = event.run, None
                _forget_old(state)
        case HandedOff():
            run.model = event.model
        case StepStarted():
            run.step, run.whole = event.step, True
        case LimitReached():
            run.limit = event.limit
        case ContextCompacted():
            run.compactions += 1


def _apply_to_usage(run: RunView, event: HopFinished | UsageReport | StepFinished) -> None:
    """A report is the whole so far; a step's own usage is added to it, unless reports told it hop by hop."""
    match event:
        case HopFinished():
            run.hops = True
        case UsageReport():
            run.usage = event.usage
        case StepFinished():
            if not run.hops:
                run.usage = event.usage if run.usage is None else run.usage + event.usage
            run.hops = False


def _apply_to_steering(run: RunView, event: MessageQueued | MessageDelivered | MessageDropped) -> None:
    if isinstance(event, MessageQueued):
        run.steering[event.message] = SteeringView(event.text)
    else:
        told = run.steering.setdefault(event.message, SteeringView(""))
        told.status = "delivered" if isinstance(event, MessageDelivered) else "dropped"


def _apply_to_message(run: RunView, event: ContentDelta | ReasoningDelta | ToolCallDelta | Rollback) -> None:
    message = run.messages.get(event.message)
    if message is None:
        message = run.messages[event.message] = MessageView(partial=not run.whole)
    match event:
        case ContentDelta():
            message.text += event.text
        case ReasoningDelta():
            message.reasoning += event.text
        case ToolCallDelta():
            if 0 <= event.index < MOST_CALLS:
                message.calls += [""] * (event.index + 1 - len(message.calls))
                message.calls[event.index] += event.text
        case Rollback():
            # Where the beginning is missing, nobody knows which characters stand.
            message.text = "" if message.partial else message.text[: event.to]
            message.reasoning = "" if message.partial else message.reasoning[: event.reasoning_to]
            del message.calls[event.calls_to :]


def _apply_to_tool(run: RunView, event: ToolRequested | ToolStarted | ToolProgress | ToolFinished) -> None:
    if isinstance(event, ToolRequested):
        run.tools[event.call] = ToolView(event.name, event.arguments)
        return
    tool = run.tools.setdefault(event.call, ToolView(getattr(event, "name", ""), {}))
    match event:
        case ToolStarted():
            tool.status = "running"
        case ToolProgress():
            tool.progress = event.text
        case ToolFinished():
            tool.status, tool.text = event.status, event.text


def _apply_to_requests(state: ClientState, event: RunEvent, now: float) -> None:
    match event:
        case ContinuationRequired():
            _open(state, _opened(OpenContinuation, state, event), now)
        case ApprovalRequired():
            _open(state, _opened(OpenApproval, state, event), now)
        case RunPaused():
            _open(state, _opened(OpenPause, state, event, expires_in_seconds=None), now)
        case ContinuationResolved() | ApprovalResolved():
            state.requests.pop(event.request, None)
        case RunResumed():
            state.counters = event.counters if not event.agent_path else state.counters
            if not event.agent_path:
                state.run = event.run
            _close_pauses(state, event.run)
        case _:
            pass


def _opened(kind: type[Any], state: ClientState, event: RunEvent, **more: Any) -> OpenRequest:
    fields = {name: getattr(event, name) for name in event.__struct_fields__}
    request: OpenRequest = kind(**fields, agent=state.agent, **more)
    return request


def _open(state: ClientState, request: OpenRequest, now: float) -> None:
    left = request.expires_in_seconds
    state.requests[request.request] = RequestView(request, None if left is None else now + left)


def _close_pauses(state: ClientState, run: str) -> None:
    for id, waiting in list(state.requests.items()):
        if isinstance(waiting.request, OpenPause) and waiting.request.run == run:
            del state.requests[id]


def _end(state: ClientState, run: RunView, event: RunFinished | RunFailed | RunCancelled) -> None:
    run.summary = event.summary
    run.usage = event.summary.usage
    match event:
        case RunFinished():
            run.status = "finished"
        case RunFailed():
            run.status, run.reason = "failed", event.error.message
        case RunCancelled():
            run.status, run.reason = "cancelled", event.reason
    for id, waiting in list(state.requests.items()):
        if waiting.request.run == event.run:
            del state.requests[id]
    if state.run == event.run:
        state.run = None
        state.counters = event.summary.counters


def _forget_old(state: ClientState) -> None:
    ended = [id for id, run in state.runs.items() if run.status != "running"]
    for id in ended[: max(0, len(ended) - KEPT_RUNS)]:
        del state.runs[id]


def _warn(state: ClientState, code: str, text: str) -> None:
    state.warnings.append(WarningView(code, text))
    del state.warnings[:-KEPT_WARNINGS]


def _settle(state: ClientState) -> None:
    if state.status == "stopped":
        return
    if state.run is None:
        state.status = "idle"
    elif any(isinstance(waiting.request, OpenPause) for waiting in state.requests.values()):
        state.status = "paused"
    else:
        state.status = "waiting" if state.requests else "running"
