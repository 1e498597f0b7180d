"""The handle of a run: start it, follow it, steer it, decide for it, end it, and take its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import attrs

from protocol.errors import (
    ContinuationProviderError,
    RunCancelledError,
    RunFailedError,
    RunOver,
    SpecError,
    StopConditionError,
)
from protocol.events import ContinuationRequired, MessageQueued
from protocol.gate import ContinuationResponse, DecisionReply
from protocol.ids import new_id
from protocol.limits import Counters
from protocol.result import RunResult
from protocol.run import Cancelled, Failed, QueuedMessage
from protocol.text import clean, is_visible
from protocol.turns import Message

from ..eventlog import EventReader, EventStream
from ._core import RunCore

__all__ = ("Run", "RunStatistics")

_ERRORS: dict[str, type[RunFailedError]] = {
    "continuation_provider_error": ContinuationProviderError,
    "stop_condition_error": StopConditionError,
}


@attrs.frozen
class RunStatistics:
    """The state of a run."""

    run: str
    counters: Counters
    over: bool
    open_requests: int
    refused_events: int
    """Events that came where the grammar allows none: a fault of ours if it is not 0."""


@final
class Run:
    """One run of an agent; `async with agent.run(prompt) as run` makes it, nobody else does.

    Iterating gives its events, in order, up to the terminal one. A reader that falls behind what the log holds gets
    `EventsLost`; the result is never affected.
    """

    def __init__(self, core: RunCore, stream: EventStream, before: int) -> None:
        self._core = core
        self._stream = stream
        self._before = before

    def __repr__(self) -> str:
        return f"<Run {self.id} of {self._core.spec.name}>"

    @property
    def id(self) -> str:
        """The run's id, as its events carry it."""
        return self._core.state.run

    @property
    def over(self) -> bool:
        """Whether the terminal event is out."""
        return self._core.over.is_set()

    def events(self) -> EventReader:
        """A new reader of the run's events, from its first one; `reader.seq` is the number of the last it gave."""
        return self._stream.reader(after=self._before, log=self._core.log)

    def __aiter__(self) -> EventReader:
        return self.events()

    async def result(self) -> RunResult:
        """Wait for the end and return the result.

        Raises `RunFailedError` (or its kind: `ContinuationProviderError`, `StopConditionError`) or `RunCancelledError`;
        each has what the run had come to in `partial`.
        """
        await self._core.over.wait()
        end, result = self._core.end, self._core.result
        assert result is not None
        if isinstance(end, Failed):
            kind = _ERRORS.get(end.code, RunFailedError)
            raise kind(end.message, partial=result) from end.error
        if isinstance(end, Cancelled):
            raise RunCancelledError(end.reason, partial=result)
        return result

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation up to now, read-only."""
        return self._core.history.view()

    def steer(self, text: str) -> str:
        """Queue a user message for the next boundary; returns its id.

        It never cuts what is running: it is appended after the results of the turn in hand. What still waits when the
        run ends is in `result.undelivered`. Raises `SpecError` for an empty text, `RunOver` after the end.
        """
        if not isinstance(text, str) or not is_visible(text):
            raise SpecError(f"steer(text): say what the model should know or do; it is {text!r}")
        core = self._core
        if core.over.is_set():
            raise RunOver(f"run {self.id} has ended and takes no more messages")
        message = QueuedMessage(new_id("msg"), clean(text))
        core.state.steering.append(message)
        core.log.emit(MessageQueued(run=core.run, agent_path=core.path, message=message.id, text=message.text))
        return message.id

    def stop(self, reason: str = "stopped by the caller") -> None:
        """End the run at its next boundary: the step in hand is finished, a wait for a decision is cut at once."""
        self._core.stop(reason)

    def cancel(self, reason: str = "cancelled by the caller") -> None:
        """Cancel the run now: what is running is cut, `result()` raises `RunCancelledError`."""
        self._core.cancel(reason)

    async def decide(self, request: str, response: ContinuationResponse, *, by: str | None = "host") -> DecisionReply:
        """Answer an open request. Raises `InvalidDecision` for what was not on offer; the request stays open.

        Late, repeated and misdirected answers change nothing: the reply says what stands.
        """
        reply = self._core.requests.decide(request, response, by)
        await self._core.journal.flushed()
        return reply

    @property
    def open_requests(self) -> tuple[ContinuationRequired, ...]:
        """The requests that wait for a decision, with `expires_in_seconds` as of when they were made."""
        return tuple(request for request, _ in self._core.requests.pending() if request.run == self.id)

    def statistics(self) -> RunStatistics:
        """A frozen look at the run."""
        core = self._core
        return RunStatistics(
            self.id,
            core.state.counters(core.account.llm_calls),
            core.over.is_set(),
            len(core.log.grammar.open_requests),
            core.log.refused,
        )
