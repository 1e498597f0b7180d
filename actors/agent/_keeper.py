"""Writes an agent down: its record in a commit of the journal, taken in one step, as the agent is at that moment.

The record holds the events since the last one, and beside them the facts: what was added to the conversation, and the run
in hand with its account, open requests and calls. So facts and events always tell the same story, and nobody has to work
out from the events what a run had come to. Where only pieces of a reply have come, the facts are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, final

import msgspec

from protocol.codec import encode, encode_strictly
from protocol.history import History
from protocol.idem import Answered, IdempotencyStore
from protocol.records import AgentFacts, Made, OpenRequest, Record, RunFacts, facts_of_end
from protocol.requests import RequestTable, Resolution

from ..journal import Journal

if TYPE_CHECKING:
    from ..eventlog import EventStream
    from ._core import RunCore

__all__ = ("Keeper",)

KEPT_RUNS = 1024
"""Runs whose end is written down again in a whole record: as many as requests are remembered."""
LEAST_BETWEEN_WHOLE = 1024 * 1024
"""Bytes of records after which a whole one is written; and at least four times what that one takes."""


@final
class Keeper:
    """Of one agent. It is a source of the journal's."""

    def __init__(self, journal: Journal, agent: str, name: str, history: History) -> None:
        self._journal = journal
        self.agent = agent
        self._name = name
        self.history = history
        self._stream: EventStream | None = None
        self._requests: RequestTable | None = None
        self._commands: IdempotencyStore | None = None
        self.made: Made | None = None
        """How a client had the agent made."""
        self.core: RunCore | None = None
        """The run in hand, or the last one."""
        self._retired = False
        self._closed: list[Resolution] = []
        self._answered: list[Answered] = []
        self._heavy = self._whole = True
        self._messages = 0
        self._rewrites: int = 0
        self._message = ""
        self._written: dict[str, tuple[int, int]] = {}
        """By run, how many of its steps and texts have been written."""
        self._end = 0
        self._bytes = self._bytes_whole = 0
        self._sealed = False
        self._last: Record | None = None
        self._last_end = 0

    def keep(self, stream: EventStream, requests: RequestTable, commands: IdempotencyStore) -> None:
        """What is to be written down; before the first record."""
        self._stream, self._requests, self._commands = stream, requests, commands

    def touch(self) -> None:
        """Something has changed: it will be in the next commit."""
        self._heavy = True
        self._journal.touch(self)

    def appended(self, size: int, *, more: bool) -> None:
        """An event has been appended; `more` than a piece of a reply."""
        if more:
            self._heavy = True
        self._journal.touch(self, size)

    def commit(self, resolution: Resolution, release: Callable[[], None]) -> None:
        """A request has been closed: whoever decided waits for the disk, as does whatever the run does outside."""
        self._closed.append(resolution)
        self.touch()
        release()

    def answered(self, answered: Answered) -> None:
        """A client's command has been accepted: in the same record as what it has done, if that was in the same step."""
        self._answered.append(answered)
        self.touch()

    def retire(self) -> None:
        """The agent has been stopped for good."""
        if not self._sealed:
            self._retired = self._whole = True
            self.touch()

    def seal(self) -> None:
        """Take the last record now: nothing that happens after it is written."""
        if not self._sealed:
            self._heavy = True  # the time that is left to open requests has gone on, without a word
            shown = self._end  # what is being written just now goes no further
            self._last = self.take()
            self._end, self._last_end = shown, self._end
            self._sealed = True
            self._journal.touch(self)

    def take(self) -> Record | None:
        """The record of what is new."""
        if self._sealed:
            last, self._last = self._last, None
            self._end = self._last_end
            return last
        stream, core = self._stream, self.core
        assert stream is not None
        first, events = stream.take_unsaved()
        self._end = stream.end
        whole, facts = False, b""
        if self._heavy or (core is not None and core.message != self._message):
            whole, self._whole, self._heavy = self._whole, False, False
            facts = _encoded(self._facts(whole=whole))
        if not events and not facts:
            return None
        lines = b"\n".join(events)
        self._count(len(lines) + len(facts), whole=whole)
        return Record(self.agent, first, len(events), lines, facts, whole)

    def written(self) -> None:
        """What was taken last is durable, and may be shown."""
        assert self._stream is not None
        self._stream.show(self._end)

    def _count(self, size: int, *, whole: bool) -> None:
        """Begin anew with a whole record now and then, so that what lies before it can go."""
        if whole:
            self._bytes, self._bytes_whole = 0, size
            return
        self._bytes += size
        if self._bytes > LEAST_BETWEEN_WHOLE and self._bytes > 4 * self._bytes_whole:
            self._whole = True

    def _facts(self, *, whole: bool) -> AgentFacts:
        stream, requests, commands = self._stream, self._requests, self._commands
        core, history = self.core, self.history
        assert stream is not None
        assert requests is not None
        assert commands is not None
        facts = AgentFacts(retired=self._retired, ended=stream.take_ended())
        if whole:
            facts.name, facts.epoch, facts.made = self._name, stream.epoch, self.made
            facts.closed, facts.numbers = list(requests.closed), requests.numbers
            facts.answered = list(commands.answers())
            ended = {run: end for run, end in stream.runs.items() if end is not None}
            facts.ended = dict(list(ended.items())[-KEPT_RUNS:])
        else:
            if self._closed:
                numbers = ((one.request, requests.number(one.request)) for one in self._closed)
                facts.closed = self._closed
                facts.numbers = {request: number for request, number in numbers if number is not None}
            facts.answered = self._answered
        self._closed, self._answered = [], []
        if whole or history.rewrites != self._rewrites:
            facts.anew = True
            self._messages = 0
            self._rewrites = history.rewrites
        if len(history) > self._messages:
            facts.messages = list(history.view()[self._messages :])
            self._messages = len(history)
        if core is None or core.log.over:
            self._written.clear()
        else:
            facts.run = self._run_facts(core, whole=whole)
            self._message = core.message
        return facts

    def _run_facts(self, core: RunCore, *, whole: bool) -> RunFacts:
        state, grammar = core.state, core.log.grammar
        steps, texts = (0, 0) if whole else self._written.get(core.run, (0, 0))
        facts = RunFacts(
            core.run,
            core.spec.name,
            _head(core),
            core.account.facts(),
            core.given,
            state.steps[steps:],
            state.texts[texts:],
            elapsed_seconds=core.elapsed_seconds,
            observed=core.observed,
            message=core.message,
            own=core.own,
            cancel=core.cancel_reason,
            bodies_allowed=core.bodies_allowed,
        )
        self._written[core.run] = len(state.steps), len(state.texts)
        if grammar.calls:
            facts.calls = dict(grammar.calls)
        if grammar.open_requests:
            facts.asked = [
                OpenRequest(request, left) for request, left in core.requests.pending() if request.run == core.run
            ]
        if core.coming_end is not None:
            facts.end = facts_of_end(core.coming_end)
        if core.failure is not None:
            facts.failure = f"{type(core.failure).__name__}: {core.failure}"
        other = next((keeper for keeper in core.keepers if keeper.history is core.history), self)
        if other is not self:
            facts.conversation = other.agent
        if core.children:
            facts.children = [self._run_facts(child, whole=whole) for child in core.children if not child.log.over]
        return facts


def _head(core: RunCore) -> msgspec.Raw:
    """The state without the lists that grow, whatever a hook has put into it."""
    state = core.state
    steps, texts = state.steps, state.texts
    state.steps, state.texts = [], []
    try:
        return msgspec.Raw(_encoded(state))
    finally:
        state.steps, state.texts = steps, texts


def _encoded(value: object) -> bytes:
    try:
        return encode_strictly(value)
    except Exception:  # noqa: BLE001  what JSON has no form for is written as its `repr`
        return encode(value)
