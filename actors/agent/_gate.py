"""The gate's question, and what becomes of a turn that it, or the limit, does not let go on (loop.md G1-G6)."""

from __future__ import annotations

from protocol.codec import digest_of
from protocol.events import ContinuationRequired, ContinuationResolved, PendingCall
from protocol.finalization import UNITS, decline_texts
from protocol.ids import new_id
from protocol.limits import LimitState, finish_reason_for
from protocol.normalise import parse_arguments
from protocol.run import FinalCall, Finished, RunEnd

from ._core import RunCore
from ._policies import Remote

__all__ = ("decline", "end_at_limit", "question_of", "stopped", "stopped_at_gate")


def question_of(core: RunCore) -> ContinuationRequired:
    """The question about the turn in hand; a restored one keeps its id."""
    spec, state = core.spec, core.state
    provider = spec.continuation
    seconds, on_timeout = spec.continuation_timeout_seconds, spec.continuation_on_timeout
    if isinstance(provider, Remote):
        on_timeout = provider.on_timeout
        if provider.timeout_seconds is None or isinstance(provider.timeout_seconds, (int, float)):
            seconds = provider.timeout_seconds
    limit = state.tool_limit()
    grant = spec.max_tool_iterations or 1
    calls = tuple([PendingCall(call.id, call.name, parse_arguments(call.arguments) or {}) for call in core.calls])
    return ContinuationRequired(
        run=core.run,
        agent_path=core.path,
        request=state.open_request or new_id("q"),
        limit=limit,
        max_iterations=state.window_max,
        total_iterations=state.tool_iterations,
        tool_calls=calls,
        text=core.text,
        usage=core.usage,
        cost=None,
        elapsed_seconds=core.elapsed_seconds,
        expires_in_seconds=seconds,
        decisions=("approve", "decline"),
        default_grant=grant,
        max_grant=spec.max_grant or grant,
        on_timeout=on_timeout,
        digest=digest_of((core.run, limit, calls, core.text)),
    )


def decline(core: RunCore, decision: ContinuationResolved) -> None:
    """Answer every pending call, tell the model why, and make the next call the final one (G5)."""
    limit = core.state.tool_limit()
    timed_out = decision.outcome == "timed_out"
    result, notice = decline_texts(limit, timed_out=timed_out, message=decision.message)
    for call in core.calls:
        core.answer(call, "discarded", decision.tool_message or result)
    core.store_exchange(notice)
    core.state.final = FinalCall(limit, after_decision=True)


def end_at_limit(core: RunCore, limit: LimitState) -> RunEnd:
    """End the run at a limit that nobody was asked about: the pending calls are not run."""
    _leave_unrun(core, f"Not run: the limit of {limit.max:g} {UNITS[limit.name]} was reached.")
    return Finished(limit.name, finish_reason_for(limit.name), limit=limit, tell_limit=True)


def stopped_at_gate(core: RunCore) -> RunEnd:
    """End the run because its caller stopped it before the gate had an answer."""
    _leave_unrun(core, "Not run: the run was stopped.")
    return stopped(core)


def stopped(core: RunCore) -> RunEnd:
    """End the run at a boundary, as its caller asked."""
    steps = core.state.steps
    word = steps[-1].finish_reason if steps else None
    return Finished("caller", word or "stop", stop_reason=core.state.stop_requested)


def _leave_unrun(core: RunCore, text: str) -> None:
    for call in core.calls:
        core.answer(call, "not_run", text)
    core.store_exchange()
