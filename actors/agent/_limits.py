"""Limits that are looked at before a model call: is the next one still in them, and may the run go on (F1, G1)."""

from __future__ import annotations

from protocol.estimate import tokens_of
from protocol.ledger import Account
from protocol.limits import LimitName, LimitState

from ._callbacks import EndRun
from ._core import RunCore
from ._gate import ask_gate, decline_without_calls, stopped
from ._services import Services

__all__ = ("ask_about_limits", "short_of")


async def ask_about_limits(core: RunCore, services: Services) -> None:
    """Ask the gate about each limit that it is asked about and that the next step would exceed. Raises `EndRun`."""
    state = core.state
    while state.final is None and state.stop_requested is None:
        limit = _to_ask_about(core)
        if limit is None:
            return
        decision = await ask_gate(core, services, limit)
        if decision.outcome in {"cancelled", "agent_ended"}:
            raise EndRun(stopped(core))
        if decision.goes_on:
            _extend(core, limit, decision.granted or 0)
        else:
            decline_without_calls(core, limit, decision)
    if state.stop_requested is not None:
        raise EndRun(stopped(core))


def short_of(core: RunCore) -> LimitState | None:
    """The limit of tokens, cost or time that leaves room for a final call, and for no step before it (F1)."""
    account = core.account
    for above in account.chain:
        if _in_window(core, above):
            return above.state_of("wall_clock")
    if not account.holds_amounts:
        return None
    tokens, cost = _next_step(core)
    last = core.state.context_tokens or core.estimate
    final_tokens, final_cost = _amounts(core, last)
    return account.lacks(tokens + final_tokens, cost + final_cost)


def _to_ask_about(core: RunCore) -> LimitState | None:
    """The first of the limits in `gate_on` that is the run's own and that the next step would exceed."""
    names, account = core.spec.gate_on, core.account
    limits = account.limits
    found: list[LimitState] = []
    if limits.max_llm_calls is not None and account.free_calls(for_child=False) <= 1:
        found.append(account.state_of("llm_calls"))
    if limits.max_tool_calls is not None and account.tool_calls >= limits.max_tool_calls:
        found.append(account.state_of("tool_calls"))
    if account.holds_amounts:
        tokens, cost = _next_step(core)
        lacking = account.lacks_itself(tokens, cost)
        found += [] if lacking is None else [lacking]
    if _in_window(core, account):
        found.append(account.state_of("wall_clock"))
    return next((limit for limit in found if limit.name in names and _may_extend(account, limit.name)), None)


def _may_extend(account: Account, name: LimitName) -> bool:
    """Whether a decision could let the run go on: what its own limit leaves, those above it may have used up."""
    ceiling = account.ceiling(name)
    return ceiling is None or ceiling > 0


def _extend(core: RunCore, limit: LimitState, granted: float) -> None:
    """Raise the run's own limit by what was granted, cut to what those above it have left (G3)."""
    ceiling = core.account.ceiling(limit.name)
    core.account.extend(limit.name, granted if ceiling is None else min(granted, ceiling))
    core.state.limits = core.account.limits


def _in_window(core: RunCore, account: Account) -> bool:
    """Whether an account's time is in its last seconds."""
    watch = account.stopwatch
    if watch is None:
        return False
    window = min(core.spec.finalization_window_seconds, watch.limit / 2)
    return watch.limit - watch.used <= window


def _next_step(core: RunCore) -> tuple[int, float]:
    """Tokens and US dollars that the next step will need, by the conversation as it stands."""
    size = core.estimator.conversation(core.history.view())
    return _amounts(core, tokens_of(size) + core.estimator.definitions(core.definitions))


def _amounts(core: RunCore, input_tokens: int) -> tuple[int, float]:
    spec, output = core.acting, core.acting.max_tokens or 0
    cost = None
    if core.spec.prices is not None:
        cost = core.spec.prices.estimate(spec.model.name, input_tokens=input_tokens, output_tokens=output)
    return input_tokens + output, cost or 0.0
