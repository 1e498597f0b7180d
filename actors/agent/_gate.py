"""The gate's question, and what becomes of a turn that it, or the limit, does not let go on (loop.md G1-G7)."""

from __future__ import annotations

from protocol.codec import digest_of
from protocol.events import ContinuationRequired, ContinuationResolved, PendingCall
from protocol.finalization import allowance, decline_texts
from protocol.ids import new_id
from protocol.limits import LimitState, finish_reason_for
from protocol.normalise import parse_arguments
from protocol.run import FinalCall, Finished, RunEnd
from protocol.turns import UserMessage

from ._arbiter import ProviderFault, Question
from ._callbacks import EndRun, failed
from ._core import RunCore
from ._policies import Remote
from ._services import Services

__all__ = (
    "ask_gate",
    "decline",
    "decline_without_calls",
    "end_at_limit",
    "leave_unrun",
    "stopped",
    "stopped_at_gate",
    "store_declined",
)


async def ask_gate(core: RunCore, services: Services, limit: LimitState) -> ContinuationResolved:
    """Ask whoever may decide, and wait for the one answer; meanwhile the run's time stands still (B5).

    Raises `EndRun` if the provider fails (G7).
    """
    provider = core.spec.continuation
    assert provider is not None
    core.activity.wait()
    try:
        decision = await services.arbiter.ask(Question(_question_of(core, limit), provider))
    except ProviderFault as fault:
        cause = fault.__cause__
        assert isinstance(cause, Exception)
        raise EndRun(failed("continuation_provider_error", "the continuation provider", cause)) from cause
    finally:
        core.activity.resume()
    core.state.open_request = None
    return decision


def _question_of(core: RunCore, limit: LimitState) -> ContinuationRequired:
    """The question about a limit, and the turn in hand if there is one; a restored one keeps its id."""
    spec, state = core.spec, core.state
    provider = spec.continuation
    seconds, on_timeout = spec.continuation_timeout_seconds, spec.continuation_on_timeout
    if isinstance(provider, Remote):
        on_timeout = provider.on_timeout
        if provider.timeout_seconds is None or isinstance(provider.timeout_seconds, (int, float)):
            seconds = provider.timeout_seconds
    window = limit.name == "tool_iterations"
    grant: float = spec.limits().of(limit.name) or 1
    ceiling = None if window else core.account.ceiling(limit.name)  # a window is the run's own
    most: float = spec.max_grant or grant
    if ceiling is not None:
        grant, most = min(grant, ceiling), min(most, ceiling)
    calls = tuple([PendingCall(call.id, call.name, parse_arguments(call.arguments) or {}) for call in core.calls])
    return ContinuationRequired(
        run=core.run,
        agent_path=core.path,
        request=state.open_request or new_id("q"),
        limit=limit,
        max_iterations=state.window_max if window else None,
        total_iterations=state.tool_iterations,
        tool_calls=calls,
        text=core.text,
        usage=core.usage,
        cost=core.cost,
        elapsed_seconds=core.elapsed_seconds,
        expires_in_seconds=seconds,
        decisions=("approve", "decline"),
        default_grant=grant,
        max_grant=most,
        on_timeout=on_timeout,
        digest=digest_of((core.run, limit, calls, core.text)),
    )


def decline(core: RunCore, decision: ContinuationResolved) -> None:
    """Answer every pending call (G5)."""
    result, _ = _decline_texts(core.state.tool_limit(), decision)
    for call in core.calls:
        core.answer(call, "discarded", decision.tool_message or result)


def store_declined(core: RunCore, decision: ContinuationResolved) -> None:
    """Store the exchange, tell the model why in it, and make the next call the final one."""
    limit = core.state.tool_limit()
    core.store_exchange(_decline_texts(limit, decision)[1])
    core.state.final = FinalCall(limit, after_decision=True)


def decline_without_calls(core: RunCore, limit: LimitState, decision: ContinuationResolved) -> None:
    """The same at a step boundary, where no call is pending."""
    core.history.append(UserMessage(_decline_texts(limit, decision)[1]))
    core.state.final = FinalCall(limit, after_decision=True)


def _decline_texts(limit: LimitState, decision: ContinuationResolved) -> tuple[str, str]:
    return decline_texts(limit, timed_out=decision.outcome == "timed_out", message=decision.message)


def end_at_limit(core: RunCore, limit: LimitState) -> RunEnd:
    """End the run at a limit that nobody was asked about: the pending calls are not run."""
    leave_unrun(core, f"Not run: the limit of {allowance(limit)} was reached.")
    return Finished(limit.name, finish_reason_for(limit.name), limit=limit, tell_limit=True)


def stopped_at_gate(core: RunCore) -> RunEnd:
    """End the run because its caller stopped it before the gate had an answer."""
    leave_unrun(core, "Not run: the run was stopped.")
    return stopped(core)


def stopped(core: RunCore) -> RunEnd:
    """End the run at a boundary, as its caller asked."""
    steps = core.state.steps
    word = steps[-1].finish_reason if steps else None
    return Finished("caller", word or "stop", stop_reason=core.state.stop_requested)


def leave_unrun(core: RunCore, text: str) -> None:
    """Answer every call of the turn in hand that has no result yet, and store the exchange."""
    for call in core.calls:
        core.answer(call, "not_run", text)
    core.store_exchange()
