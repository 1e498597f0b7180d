"""The handle of a run: start it, follow it, steer it, decide for it, end it, and take its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import attrs

from protocol.errors import (
    AnswerRejected,
    ApprovalProviderError,
    ContinuationProviderError,
    HookError,
    RunCancelledError,
    RunFailedError,
    RunOver,
    RunSuspended,
    SpecError,
    StopConditionError,
)
from protocol.events import PendingCall
from protocol.ledger import AccountStatistics
from protocol.limits import Counters
from protocol.requests import DecisionReply, Request, Response
from protocol.result import RunResult
from protocol.run import Cancelled, Failed
from protocol.turns import Message

from ..eventlog import EventReader, EventStream
from ..kit import waiting_for
from ._core import RunCore
from ._hooks import StepOverrides
from ._reading import StepReader
from ._steer import steer
from ._submit import submit, waiting_calls

__all__ = ("Run", "RunStatistics")

_ERRORS: dict[str, type[RunFailedError]] = {
    "answer_rejected": AnswerRejected,
    "approval_provider_error": ApprovalProviderError,
    "hook_error": HookError,
    "continuation_provider_error": ContinuationProviderError,
    "stop_condition_error": StopConditionError,
}


@attrs.frozen
class RunStatistics:
    """The state of a run."""

    run: str
    counters: Counters
    account: AccountStatistics
    over: bool
    paused: bool
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
    def before(self) -> int:
        """The number of the last event before the run's first one."""
        return self._before

    @property
    def over(self) -> bool:
        """Whether the terminal event is out."""
        return self._core.over.is_set()

    def events(self) -> EventReader:
        """A new reader of the run's events, from its first one; `reader.seq` is the number of the last it gave."""
        return self._stream.reader(after=self._before, log=self._core.log, party=self._core.turn)

    def __aiter__(self) -> EventReader:
        return self.events()

    def steps(self) -> StepReader:
        """An iterator of the run's finished steps that holds the loop (M1).

        The next model call is not made before the next step is asked for; between them, steer, stop, look at the
        messages, or `override_next`. `result()` lets the loop go.
        """
        return StepReader(self._core)

    def override_next(self, overrides: StepOverrides) -> None:
        """Change the next step, over what `prepare_step` makes of it; a second call replaces the first.

        Raises `RunOver` after the end.
        """
        if not isinstance(overrides, StepOverrides):
            raise SpecError(f"override_next takes StepOverrides(...); it is {overrides!r}")
        if self._core.over.is_set():
            raise RunOver(f"run {self.id} has ended and makes no more steps")
        self._core.overrides = overrides

    @property
    def pending(self) -> tuple[PendingCall, ...]:
        """The calls whose results the run waits for; `submit` gives them (T7)."""
        return waiting_calls(self._core)

    def submit(self, results: Mapping[str, Any]) -> None:
        """Give results of the caller's own tools, by call id: values as a tool returns them, or an exception.

        A part of them is kept; with the last one the run goes on. Raises `SubmissionRefused` for an id that is not
        waited for, or is answered already, and takes nothing then; `RunOver` after the end.
        """
        submit(self._core, results)

    async def wait_ended(self) -> None:
        """Wait for the terminal event, past any pause."""
        with waiting_for(self._core.turn):
            await self._core.over.wait()

    async def result(self) -> RunResult:
        """Wait for the end and return the result; at a pause, return what the run has come to (`pending_tools`).

        Raises `RunFailedError` (or its kind: `HookError`, `AnswerRejected`, `ContinuationProviderError`,
        `ApprovalProviderError`, `StopConditionError`) or `RunCancelledError`; each has what the run had come to in
        `partial`.
        """
        core = self._core
        core.steps_asked = None
        core.stir_steps()
        if not core.rests.is_set():
            with waiting_for(core.turn):
                await core.rests.wait()
        cut = core.state.stop_requested is not None or core.cancel_reason is not None
        if cut:  # a pause that is being cut is no rest
            await core.over.wait()
        if core.suspended:
            raise RunSuspended("the runtime has stopped, and the run waits to go on", partial=core.partial_result())
        if core.journal.durable:
            await core.journal.flushed()
        end, result = core.end, core.result
        if result is None:
            return core.partial_result()
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
        return steer(self._core, text)

    def stop(self, reason: str = "stopped by the caller") -> None:
        """End the run at its next boundary: the step in hand is finished, a wait for a decision is cut at once."""
        self._core.stop(reason)

    def cancel(self, reason: str = "cancelled by the caller") -> None:
        """Cancel the run now: what is running is cut, `result()` raises `RunCancelledError`."""
        self._core.cancel(reason)

    async def decide(self, request: str, response: Response, *, by: str | None = "host") -> DecisionReply:
        """Answer an open request. Raises `InvalidDecision` for what was not on offer; the request stays open.

        Late, repeated and misdirected answers change nothing: the reply says what stands.
        """
        reply = self._core.requests.decide(request, response, by)
        await self._core.journal.flushed()
        return reply

    @property
    def open_requests(self) -> tuple[Request, ...]:
        """The requests that wait for a decision, with `expires_in_seconds` as of when they were made.

        Those of sub-agents stand with the run that they all work for.
        """
        pending = self._core.requests.pending()
        return tuple(request for request, _ in pending if not self._core.path or request.run == self.id)

    def statistics(self) -> RunStatistics:
        """A frozen look at the run."""
        core = self._core
        return RunStatistics(
            self.id,
            core.state.counters(core.account.llm_calls),
            core.account.statistics(),
            core.over.is_set(),
            core.state.pause is not None,
            len(core.log.grammar.open_requests),
            core.log.refused,
        )
