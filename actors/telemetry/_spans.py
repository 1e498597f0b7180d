"""Spans and metrics of runs, model calls and tools.

Each is current in the task that does the work, so the nesting is that of the work itself. What a run says on its way, its
limits, questions, retries and hops, becomes an event of the span that it belongs to; a piece of a reply does not.

A run's span ends with its terminal event, whatever still has to be joined then; of a run that is suspended, when it stops.
A cut, by a cancel or by the end of the time, is an error. A limit, a question that was declined, a stop: none is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextvars import Token
from types import MappingProxyType, TracebackType
from typing import Any, ClassVar, Self, TypeAlias, cast

import trio
from opentelemetry import context as otel_context
from opentelemetry.context import Context
from opentelemetry.metrics import Meter
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context

from protocol.events import (
    ApprovalRequired,
    ApprovalResolved,
    ContinuationRequired,
    ContinuationResolved,
    Finalizing,
    HandedOff,
    HopFinished,
    HopStarted,
    LimitReached,
    ModelRetry,
    RunCancelled,
    RunEvent,
    RunFailed,
    RunFinished,
    RunPaused,
    RunResumed,
    Warned,
)
from protocol.model import Model, ModelRequest
from protocol.result import RunSummary
from protocol.turns import ToolStatus, Turn

from ..agent import ProbedRun
from . import _names as names
from ._content import input_text, json_text, output_text, system_text
from ._metrics import Meters

__all__ = ("Tracing",)

Attributes: TypeAlias = dict[str, Any]


class Tracing:
    """Puts spans around runs."""

    def __init__(self, tracer: Tracer, meter: Meter, *, capture_content: bool) -> None:
        self.tracer = tracer
        self.meters = Meters(meter)
        self.captures = capture_content

    def run(self, run: ProbedRun, /) -> RunSpan:
        """The span of a run."""
        return RunSpan(self, run)


class _CurrentSpan:
    """A span that is current inside the block, and ends with it."""

    def __init__(self, tracing: Tracing, name: str, kind: SpanKind, attributes: Attributes) -> None:
        self._tracing = tracing
        self._began = time.time_ns(), time.perf_counter_ns()
        self._span: Span = tracing.tracer.start_span(
            name, kind=kind, attributes=attributes, start_time=self._began[0], record_exception=False
        )
        self._error: str | None = None
        self._over = False
        self._token: Token[Context] | None = None

    def __enter__(self) -> Self:
        self._token = otel_context.attach(set_span_in_context(self._span))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            otel_context.detach(self._token)
        if error is not None and self._error is None:
            self._error = _word_of(error)
        self._end()

    def _end(self) -> None:
        if self._over:
            return
        self._over = True
        nanoseconds = time.perf_counter_ns() - self._began[1]
        if self._error is not None:
            self._span.set_attribute(names.ERROR, self._error)
            self._span.set_status(Status(StatusCode.ERROR))
        self._measure(nanoseconds / 1e9, {} if self._error is None else {names.ERROR: self._error})
        self._span.end(self._began[0] + nanoseconds)

    def _measure(self, seconds: float, error: Attributes) -> None:
        raise NotImplementedError


class RunSpan(_CurrentSpan):
    """`invoke_agent`: a run, from its first step to its terminal event."""

    def __init__(self, tracing: Tracing, run: ProbedRun) -> None:
        provider, model = names.provider_and_model(run.model.name)
        self._agent = run.agent_name
        self.common: Attributes = {names.AGENT_NAME: run.agent_name, names.CONVERSATION: run.agent}
        attributes = {
            names.OPERATION: "invoke_agent",
            names.PROVIDER: provider,
            names.MODEL: model,
            names.AGENT_ID: run.agent,
            "onward.run.id": run.run,
            **self.common,
        }
        if run.path:
            attributes["onward.agent.path"] = list(run.path)
        super().__init__(tracing, f"invoke_agent {run.agent_name}", SpanKind.INTERNAL, attributes)
        self.calls: list[ChatSpan] = []
        """The model calls in flight."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._over:
            self._span.set_attribute("onward.run.end", "suspended")
        super().__exit__(kind, error, trace)

    def heard(self, event: RunEvent) -> None:
        """Note what belongs to the run, or to the model call in flight."""
        if (note := _NOTES.get(type(event))) is not None:
            span = self.calls[-1].span if self.calls and isinstance(event, _OF_CALLS) else self._span
            span.add_event(f"onward.{event.type}", note(event))
        elif isinstance(event, _ENDS):
            self._end_with(event)

    def _end_with(self, event: RunFinished | RunFailed | RunCancelled) -> None:
        match event:
            case RunFailed(error=error):
                self._error = error.code
            case RunCancelled():
                self._error = "cancelled"
            case RunFinished():
                pass
        self._span.set_attributes(_summary_attributes(event.type.removeprefix("run_"), event.summary))
        self._end()

    def model_call(self, request: ModelRequest, model: Model) -> ChatSpan:
        """The span of a model call."""
        return ChatSpan(self._tracing, self, request, model)

    def tool_call(self, call: str, name: str, arguments: Mapping[str, Any]) -> ToolSpan:
        """The span of a tool's body."""
        return ToolSpan(self._tracing, self, call, name, arguments)

    def _measure(self, seconds: float, error: Attributes) -> None:
        self._tracing.meters.run_seconds.record(seconds, {names.AGENT_NAME: self._agent, **error})


class ChatSpan(_CurrentSpan):
    """`chat`: one model call, with the retries and hops that it took."""

    def __init__(self, tracing: Tracing, run: RunSpan, request: ModelRequest, model: Model) -> None:
        provider, name = names.provider_and_model(model.name)
        self._run = run
        self._labels: Attributes = {names.OPERATION: "chat", names.PROVIDER: provider, names.MODEL: name}
        given = {
            names.TEMPERATURE: request.temperature,
            names.MAX_TOKENS: request.max_tokens,
            "onward.resume.strategy": None if request.resume is None else request.resume.strategy,
        }
        attributes = {**self._labels, **run.common, **{key: value for key, value in given.items() if value is not None}}
        # A model that hands its requests to no transport runs in this process.
        kind = SpanKind.CLIENT if model.profile.reports_sending else SpanKind.INTERNAL
        super().__init__(tracing, f"chat {name}", kind, attributes)
        if self._captures:
            self._span.set_attribute(names.INPUT_MESSAGES, input_text(request))
            if request.system is not None:
                self._span.set_attribute(names.SYSTEM, system_text(request.system))

    @property
    def span(self) -> Span:
        """Where its events go."""
        return self._span

    @property
    def _captures(self) -> bool:
        return self._tracing.captures and self._span.is_recording()

    def __enter__(self) -> Self:
        self._run.calls.append(self)
        return super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run.calls.remove(self)
        super().__exit__(kind, error, trace)

    def came(self, turn: Turn) -> None:
        """Note what the call brought."""
        finish = turn.raw_finish if turn.finish == "other" else turn.finish
        attributes: Attributes = {**names.usage_attributes(turn.usage)}
        if finish is not None:
            attributes[names.FINISH] = [finish]
        if turn.response is not None:
            attributes[names.RESPONSE] = turn.response
        if turn.end == "lost":
            self._error = "lost"
        if self._captures:
            attributes[names.OUTPUT_MESSAGES] = output_text(turn, finish)
        self._span.set_attributes(attributes)
        for kind in ("input", "output"):
            tokens = attributes.get(f"gen_ai.usage.{kind}_tokens")
            if tokens is not None:
                self._tracing.meters.tokens.record(tokens, {**self._labels, names.TOKEN_TYPE: kind})

    def _measure(self, seconds: float, error: Attributes) -> None:
        self._tracing.meters.call_seconds.record(seconds, {**self._labels, **error})


class ToolSpan(_CurrentSpan):
    """`execute_tool`: the body of one tool call."""

    _WORDS: ClassVar[Mapping[ToolStatus, str]] = MappingProxyType({"error": "tool_error"})

    def __init__(self, tracing: Tracing, run: RunSpan, call: str, name: str, arguments: Mapping[str, Any]) -> None:
        self._labels: Attributes = {
            names.TOOL_NAME: name,
            names.TOOL_TYPE: "function",
            names.AGENT_NAME: run.common[names.AGENT_NAME],
        }
        attributes = {names.OPERATION: "execute_tool", names.CALL_ID: call, **self._labels, **run.common}
        super().__init__(tracing, f"execute_tool {name}", SpanKind.INTERNAL, attributes)
        self._captures = tracing.captures and self._span.is_recording()
        if self._captures:
            self._span.set_attribute(names.ARGUMENTS, json_text(arguments))

    def came(self, status: ToolStatus, text: str) -> None:
        """Note what the body came to."""
        if status != "ok":
            self._error = self._WORDS.get(status, status)
        elif self._captures and text:
            self._span.set_attribute(names.RESULT, text)

    def _measure(self, seconds: float, error: Attributes) -> None:
        self._tracing.meters.tool_seconds.record(seconds, {**self._labels, **error})


def _word_of(error: BaseException) -> str:
    """The word for what left a block: `cancelled` for a cancel, alone or among its like, or the kind of the error."""
    if not isinstance(error, BaseExceptionGroup):
        return "cancelled" if isinstance(error, trio.Cancelled) else type(error).__name__
    words = [_word_of(one) for one in cast("BaseExceptionGroup[BaseException]", error).exceptions]
    return next((word for word in words if word != "cancelled"), "cancelled")


def _summary_attributes(end: str, summary: RunSummary) -> Attributes:
    return {
        "onward.run.end": end,
        "onward.run.stopped_by": summary.stopped_by,
        "onward.run.answered": summary.answered,
        "onward.run.llm_calls": summary.counters.llm_calls,
        "onward.run.tool_calls": summary.counters.tool_calls,
        names.FINISH: [summary.finish_reason],
        **names.usage_attributes(summary.usage),
    }


_ENDS = (RunFinished, RunFailed, RunCancelled)
_OF_CALLS = (ModelRetry, HopStarted, HopFinished)
"""What is said in the middle of a model call."""
_NOTES: Mapping[type[RunEvent], Callable[[Any], Attributes]] = MappingProxyType({
    LimitReached: lambda e: {"limit": e.limit.name, "used": e.limit.used, "max": e.limit.max},
    ContinuationRequired: lambda e: {"request": e.request, "limit": e.limit.name, "calls": len(e.tool_calls)},
    ContinuationResolved: lambda e: {"request": e.request, "outcome": e.outcome, "by": e.by or ""},
    ApprovalRequired: lambda e: {"request": e.request, "call": e.call, "tool": e.name},
    ApprovalResolved: lambda e: {"request": e.request, "outcome": e.outcome, "by": e.by or ""},
    Finalizing: lambda e: {"limit": e.limit.name},
    RunPaused: lambda e: {"request": e.request, "calls": len(e.calls)},
    RunResumed: lambda _: {},
    HandedOff: lambda e: {"agent": e.agent, "model": e.model},
    ModelRetry: lambda e: {"attempt": e.attempt, "seconds": e.seconds},
    HopStarted: lambda e: {"hop": e.hop, "strategy": e.strategy},
    HopFinished: lambda e: {"hop": e.hop, "status": e.status, **names.usage_attributes(e.usage)},
    Warned: lambda e: {"code": e.code},
})
"""What is noted of each kind of event: numbers, ids and words, and nothing that anybody said."""
