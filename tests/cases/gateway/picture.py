"""What a client knows that has applied all events of an agent, and where that differs from what it was told besides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import msgspec

from actors.client import Attached, Position, Received
from protocol.codec import decode
from protocol.events import (
    TERMINAL_EVENTS,
    ApprovalRequired,
    ApprovalResolved,
    ContentDelta,
    ContinuationRequired,
    ContinuationResolved,
    Event,
    Rollback,
    RunEvent,
    RunPaused,
    RunResumed,
    RunStarted,
    StepFinished,
    StepStarted,
    ToolFinished,
    ToolRequested,
    ToolStarted,
)
from protocol.turns import AssistantMessage, Message, ToolMessage, UserMessage, calls_of, text_of
from protocol.wire.replies import Attached as AttachReply
from protocol.wire.replies import OpenPause, Snapshot

if TYPE_CHECKING:
    from .person import Person, Visit
    from .place import Book

Plain: TypeAlias = tuple[Any, ...]
"""A message, as far as events tell of it."""
Waiting: TypeAlias = ContinuationRequired | ApprovalRequired | RunPaused


@attrs.define
class Run:
    """A run that goes on."""

    path: tuple[str, ...]
    step: int = 0
    entered: int = 0
    text: str = ""
    calls: list[tuple[str, str]] = attrs.field(factory=list[tuple[str, str]])
    results: dict[str, tuple[str, str, str]] = attrs.field(factory=dict[str, tuple[str, str, str]])


@attrs.define
class Picture:
    """An agent, as its events tell of it."""

    runs: dict[str, Run] = attrs.field(factory=dict[str, Run])
    """Those that go on, the agent's own first."""
    waiting: dict[str, Waiting] = attrs.field(factory=dict[str, Waiting])
    messages: list[Plain] = attrs.field(factory=list[Plain])

    @property
    def own(self) -> str | None:
        """The agent's own run."""
        return next(iter(self.runs), None)

    @property
    def state(self) -> str:
        if self.own is None:
            return "idle"
        kinds = {type(request) for request in self.waiting.values()}
        return "paused" if RunPaused in kinds else "waiting" if kinds else "running"

    def apply(self, event: Event) -> None:
        """One more event."""
        if not isinstance(event, RunEvent):
            return
        run = self.runs.get(event.run, Run(event.agent_path))
        match event:
            case RunStarted(prompt=prompt):
                self.runs[event.run] = run
                self._say(event, ("user", prompt))
            case StepStarted(step=step):
                run.step, run.text, run.calls, run.results = step, "", [], {}
            case ContentDelta(text=text):
                run.text += text
            case Rollback(to=to):
                run.text = run.text[:to]
            case ToolRequested(call=call, name=name):
                run.calls.append((call, name))
            case ToolStarted():
                run.entered += 1
            case ToolFinished(call=call, name=name, status=status, text=text):
                run.results[call] = (call, status, text)
            case StepFinished(step=step):
                run.step = step + 1
                if run.text.strip() or run.calls:
                    self._say(event, ("assistant", run.text, *run.calls))
                if run.calls:
                    self._say(event, ("tool", *[run.results[call] for call, _ in run.calls]))
                run.text = ""
            case ContinuationRequired() | ApprovalRequired() | RunPaused():
                self.waiting[event.request] = event
            case ContinuationResolved(request=request) | ApprovalResolved(request=request):
                del self.waiting[request]
            case RunResumed():
                self.waiting = {key: kept for key, kept in self.waiting.items() if not isinstance(kept, RunPaused)}
            case _ if isinstance(event, TERMINAL_EVENTS):
                if run.text.strip():  # of a step that did not come to its end
                    self._say(event, ("assistant", run.text))
                del self.runs[event.run]
            case _:
                pass

    def _say(self, event: RunEvent, message: Plain) -> None:
        if not event.agent_path:  # what is below has conversations of its own
            self.messages.append(message)


def faults_of(person: Person, books: Mapping[str, Book]) -> list[str]:
    """Where what somebody was shown is not what the logs tell, or has a gap, or a snapshot says something else."""
    return [fault for visit in person.visits for fault in _visit_faults(visit, books)]


def _visit_faults(visit: Visit, books: Mapping[str, Book]) -> Iterator[str]:
    begins = {visit.agent: visit.since.seq} if isinstance(visit.since, Position) else {}
    for _, item in visit.items:
        events = [event for _, event in books[item.agent].events]
        if isinstance(item, Attached):
            begins[item.agent] = item.reply.head
            yield from _snapshot_faults(item.reply, events)
        elif isinstance(item, Received):
            last = begins.get(item.agent, 0)
            if item.number != last + 1:
                yield f"{item.number} came after {last}"
            if not _is_told(item, events[item.number - 1 : item.last]):
                yield f"{item.number} is not what the log told: {item.event}"
            begins[item.agent] = item.last


def _is_told(item: Received, events: list[Event]) -> bool:
    first, *others = events
    if not others:
        return item.event == first or _is_cut(item.event, first)
    texts = [event.text for event in events if isinstance(event, ContentDelta)]
    return len(texts) == len(events) and msgspec.structs.replace(first, text="".join(texts), n=len(texts)) == item.event


def _is_cut(shown: Event, told: Event) -> bool:
    """Whether it is the event with long texts cut, because no frame holds it."""
    return (
        isinstance(shown, ToolFinished)
        and isinstance(told, ToolFinished)
        and (
            msgspec.structs.replace(shown, text="") == msgspec.structs.replace(told, text="")
            and len(shown.text) < len(told.text)
            and shown.text[:100] == told.text[:100]
        )
    )


def _snapshot_faults(reply: AttachReply, events: list[Event]) -> Iterator[str]:
    picture = Picture()
    for event in events[: reply.head]:
        picture.apply(event)
    told = reply.snapshot
    if told is None:
        yield "an attach without a snapshot"
        return
    run = picture.runs[picture.own] if picture.own is not None else Run(())
    entered = None if picture.own is None else run.entered
    for what, shown, known in [
        ("state", told.state, picture.state),
        ("run", told.run, picture.own),
        ("step_number", told.step_number, run.step),
        ("tool_calls", None if told.counters is None else told.counters.tool_calls, entered),
        ("children", [child.run for child in told.children], list(picture.runs)[1:]),
        ("open_requests", _requests(reply), {id: _unhurried(event) for id, event in picture.waiting.items()}),
    ]:
        if shown != known:
            yield f"{what} is {shown!r}, the events up to {reply.head} told {known!r}"
    history = _history(told)
    if history != picture.messages[-len(history) :] if history else picture.messages:
        yield f"the history is {history}, the events told {picture.messages}"


def _requests(reply: AttachReply) -> dict[str, Waiting]:
    """The open ones as their events; only the time left is another one."""
    found: dict[str, Waiting] = {}
    for request in reply.open_requests:
        kinds = {"continuation": ContinuationRequired, "approval": ApprovalRequired, "tools": RunPaused}
        kind: Any = RunPaused if isinstance(request, OpenPause) else kinds[str(request.__struct_config__.tag)]
        fields = {name: getattr(request, name) for name in kind.__struct_fields__}
        found[request.request] = _unhurried(kind(**fields))
    return found


def _unhurried(request: Waiting) -> Waiting:
    return request if isinstance(request, RunPaused) else msgspec.structs.replace(request, expires_in_seconds=None)


def _history(snapshot: Snapshot) -> list[Plain]:
    messages: list[Plain] = []
    for raw in snapshot.history:
        message: Message = decode(bytes(raw), Message)  # type: ignore[arg-type]
        match message:
            case UserMessage(text=text):
                messages.append(("user", text))
            case AssistantMessage(parts=parts):
                messages.append(("assistant", text_of(parts), *[(call.id, call.name) for call in calls_of(parts)]))
            case ToolMessage(results=results):
                messages.append(("tool", *[(result.call, result.status, result.text) for result in results]))
    return messages
