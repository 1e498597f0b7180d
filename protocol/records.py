"""What a journal holds of an agent, and how it is read again.

A record is one agent's part of one commit: the events since its last record, and the facts as they are at that moment.
Both are taken in one step without an await, so that they always tell the same story, and a record is on disk whole or not
at all: whatever record is the last, an agent that is read from its records is one that had been. Events are numbered and
kept apart, lists that grow are written as what was added, everything else as it stands.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs
import msgspec

from .codec import decode
from .events import ApprovalRequired, ApprovalResolved, ContinuationRequired, ContinuationResolved
from .grammar import CallState
from .idem import Answered
from .limits import Limits, LimitState
from .requests import Resolution
from .result import StepResult
from .run import Cancelled, Failed, Finished, RunEnd, RunState
from .spending import AccountFacts
from .turns import AssistantMessage, Message, ToolMessage, UserMessage

__all__ = (
    "BUDGET_PREFIX",
    "AgentFacts",
    "EndFacts",
    "Made",
    "OpenRequest",
    "Record",
    "RunFacts",
    "StoredAgent",
    "StoredEvents",
    "end_of",
    "facts_of_end",
    "fold",
    "fold_until",
)


BUDGET_PREFIX = "budget/"
"""Before the name of a budget, where an agent's id would stand: its records hold `AccountFacts`, and each is whole."""


class OpenRequest(msgspec.Struct, frozen=True):
    """A question that waits for an answer."""

    request: ContinuationRequired | ApprovalRequired
    seconds_left: float | None
    """`None`: it has no deadline."""


class EndFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a run ends that has come to its end and has not said so yet: one of the three."""

    finished: Finished | None = None
    cancelled: str | None = None
    code: str = ""
    message: str = ""
    error: str = ""
    """Of a failure: its cause in words."""
    limit: LimitState | None = None


class RunFacts(msgspec.Struct, omit_defaults=True):
    """A run that is not over."""

    run: str
    agent: str
    """The name of the agent whose run it is."""
    state: msgspec.Raw
    """A `RunState` without the lists that grow."""
    account: AccountFacts
    given: Limits
    """The limits that it was started with."""
    steps: list[StepResult] = []
    """Those since the last record."""
    texts: list[str] = []
    calls: dict[str, CallState] = {}
    """The calls without an end, by the events."""
    asked: list[OpenRequest] = []
    message: str = ""
    """The message that is being shown."""
    end: EndFacts | None = None
    cancel: str | None = None
    """Why its caller cancelled it, if that has happened."""
    failure: str | None = None
    """What a tool failed it with."""
    bodies_allowed: int = 0
    elapsed_seconds: float = 0.0
    observed: int = 0
    own: tuple[str, ...] = ()
    """What was given for this run alone and cannot be written down, by name."""
    children: list[RunFacts] = []
    conversation: str = ""
    """Of a child: the id of the agent that is written down too and whose conversation it speaks in; empty: it has none left."""

    def whole_state(self) -> RunState:
        """The state with its lists. Raises `msgspec.ValidationError` for one that is broken."""
        state = decode(bytes(self.state), RunState)
        state.steps, state.texts = self.steps, self.texts
        return state


class Made(msgspec.Struct, frozen=True):
    """How a client had an agent made: what it takes to make it again, and the command, which is done once."""

    template: str
    overrides: dict[str, Any]
    command: Answered


class AgentFacts(msgspec.Struct, omit_defaults=True):
    """What one record says of an agent beside its events."""

    name: str = ""
    """In whole records, as are the next two."""
    epoch: str = ""
    made: Made | None = None
    """`None`: it is the host's own."""
    anew: bool = False
    """The messages are all there are."""
    messages: list[UserMessage | AssistantMessage | ToolMessage] = []
    """Those since the last record."""
    closed: list[ContinuationResolved | ApprovalResolved] = []
    """Requests that were closed since the last record."""
    numbers: dict[str, int] = {}
    """The numbers of the events that told it, by request."""
    ended: dict[str, str] = {}
    """Runs that ended since the last record, each with the type of its terminal event."""
    answered: list[Answered] = []
    """Clients' commands that were accepted since the last record."""
    run: RunFacts | None = None
    retired: bool = False
    """The agent was stopped for good: it is kept to be looked at, and not brought back."""


@attrs.frozen
class Record:
    """One agent's part of one commit."""

    agent: str
    first: int
    """Number of the first of its events."""
    count: int
    """How many numbers its events take."""
    events: bytes
    """JSON texts, one on each line."""
    facts: bytes
    """`AgentFacts` as JSON; empty where nothing but deltas has come."""
    whole: bool = False
    """It says all of the agent: no earlier record is needed to bring it back."""


@attrs.define
class StoredEvents:
    """The newest events of an agent, in order and without a gap."""

    first: int
    """Number of the first one."""
    events: list[bytes]


@attrs.define
class StoredAgent:
    """An agent as its records tell of it."""

    id: str
    name: str = ""
    epoch: str = ""
    messages: list[UserMessage | AssistantMessage | ToolMessage] = attrs.field(factory=list[Message])
    made: Made | None = None
    closed: list[ContinuationResolved | ApprovalResolved] = attrs.field(factory=list[Resolution])
    numbers: dict[str, int] = attrs.field(factory=dict[str, int])
    ended: dict[str, str] = attrs.field(factory=dict[str, str])
    answered: list[Answered] = attrs.field(factory=list[Answered])
    run: RunFacts | None = None
    retired: bool = False
    end: int = 0
    """Number of the last event."""

    def add(self, record: Record) -> None:
        """Go on to the next record."""
        self.end = max(self.end, record.first + record.count - 1)
        if not record.facts:
            return
        facts = decode(record.facts, AgentFacts)
        if record.whole:
            self.name, self.epoch, self.made = facts.name, facts.epoch, facts.made
            self.closed, self.numbers, self.ended, self.answered, self.run = [], {}, {}, [], None
        if record.whole or facts.anew:
            self.messages = []
        self.messages += facts.messages
        self.closed += facts.closed
        self.numbers |= facts.numbers
        self.ended |= facts.ended
        self.answered += facts.answered
        self.retired = facts.retired
        self.run = facts.run if facts.run is None else _grown(self.run, facts.run)


def _grown(before: RunFacts | None, now: RunFacts) -> RunFacts:
    """The facts of a run with all its steps: of what grows, they hold what is new."""
    if before is not None and before.run == now.run:
        now.steps = before.steps + now.steps
        now.texts = before.texts + now.texts
        children = {child.run: child for child in before.children}
        now.children = [_grown(children.get(child.run), child) for child in now.children]
    return now


def fold(agent: str, records: Iterable[Record]) -> StoredAgent:
    """The agent as it was when the last of these records was written. Raises what `msgspec` raises for a broken one."""
    stored = StoredAgent(agent)
    for record in records:
        stored.add(record)
    return stored


def fold_until(agent: str, records: Iterable[Record], run: str, step: int) -> StoredAgent | None:
    """The agent as it was when that step of that run had ended; `None` if the records do not tell of it."""
    stored = StoredAgent(agent)
    seen = False
    for record in records:
        stored.add(record)
        going = stored.run is not None and stored.run.run == run
        if going and stored.run is not None and len(stored.run.steps) > step:
            return stored if len(stored.run.steps) == step + 1 else None  # what told of it is gone
        if not going and _ended_with(record, run, step):
            return stored
        if seen and not going:
            return None
        seen = going
    return None


def _ended_with(record: Record, run: str, step: int) -> bool:
    """Whether the step ended in this very record, and the run with it."""
    tag, ours, number = b'"type":"step_finished"', f'"run":"{run}"'.encode(), f'"step":{step},'.encode()
    return any(tag in line and ours in line and number in line for line in record.events.split(b"\n"))


def facts_of_end(end: RunEnd) -> EndFacts:
    """What is written down of a run's end."""
    match end:
        case Finished():
            return EndFacts(finished=end)
        case Cancelled(reason=reason):
            return EndFacts(cancelled=reason)
        case Failed(error=error, code=code, message=message, limit=limit):
            return EndFacts(code=code, message=message, error=f"{type(error).__name__}: {error}", limit=limit)


def end_of(facts: EndFacts) -> RunEnd:
    """The end that was written down; of a failure's cause, its words are left."""
    if facts.finished is not None:
        return facts.finished
    if facts.cancelled is not None:
        return Cancelled(facts.cancelled)
    return Failed(RuntimeError(facts.error), facts.code, facts.message, facts.limit)
