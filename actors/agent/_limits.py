"""Limits that are looked at before a model call: is the next one still in them, and may the run go on (F1, G1)."""

from __future__ import annotations

import msgspec

from protocol.ledger import Account
from protocol.limits import LimitState
from protocol.model import ModelRequest
from protocol.turns import UserMessage

from ._callbacks import EndRun
from ._core import RunCore
from ._gate import ask_gate, decline_without_calls, stopped
from ._services import Services

__all__ = ("ask_about_limits", "out_of_memory", "short_of")


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
            if decision.message is not None:
                core.history.append(UserMessage(decision.message))
        else:
            decline_without_calls(core, limit, decision)
    if state.stop_requested is not None:
        raise EndRun(stopped(core))


def out_of_memory(core: RunCore) -> LimitState | None:
    """The runtime's limit of memory for conversations, where that ends the run now: without a final call."""
    if core.state.final is not None:
        return None
    if core.spec.budget_finalization is not None and "history_bytes" not in core.state.unfinalized:
        return None
    memory = core.shared.memory
    return None if memory is None else memory.lacks(core.history)


def short_of(core: RunCore) -> LimitState | None:
    """The limit of tokens, cost, time or memory that leaves room for a final call, and for no step before it (F1)."""
    account, memory = core.account, core.shared.memory
    if memory is not None and (full := memory.lacks(core.history)) is not None:
        return full
    for above in account.chain:
        if _in_window(core, above):
            return above.state_of("wall_clock")
    return account.lacks(*_needed(core)) if account.holds_amounts else None


def _to_ask_about(core: RunCore) -> LimitState | None:
    """The limit of the run's own that the next step would exceed and that `gate_on` names, or `None`.

    Nobody is asked where an approval could not help, because another limit leaves no room for the step either.
    """
    account = core.account
    tokens, cost = _needed(core) if account.holds_amounts else (0, 0.0)
    if any(above.refuses(for_child=True) or above.lacks_itself(tokens, cost) for above in account.chain[1:]):
        return None
    refused = account.refuses(for_child=False) or account.lacks_itself(tokens, cost)
    found = [refused] if refused is not None else _used_up(core, account)
    return next((limit for limit in found if limit.name in core.spec.gate_on and _may_extend(account, limit)), None)


def _used_up(core: RunCore, account: Account) -> list[LimitState]:
    """The run's own limits that allow the next model call, and nothing after it."""
    limits = account.limits
    found: list[LimitState] = []
    if limits.max_llm_calls is not None and account.free_calls(for_child=False) == 1:
        found.append(account.state_of("llm_calls"))
    if limits.max_tool_calls is not None and account.tool_calls >= limits.max_tool_calls:
        found.append(account.state_of("tool_calls"))
    if _in_window(core, account):
        found.append(account.state_of("wall_clock"))
    return found


def _may_extend(account: Account, limit: LimitState) -> bool:
    """Whether the accounts above have more left than the run's own limit leaves anyway."""
    ceiling = account.ceiling(limit.name)
    return ceiling is None or ceiling > limit.max - limit.used


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


def _needed(core: RunCore) -> tuple[int, float]:
    """Tokens and US dollars that must be free: for the next step, and for a final call after it where that is wanted."""
    tokens, cost = _amounts(core, _next_input(core))
    if core.spec.budget_finalization is not None:
        last = core.state.context_tokens
        final_tokens, final_cost = _amounts(core, core.estimate if last is None else last)
        tokens, cost = tokens + final_tokens, cost + final_cost
    return tokens, cost


def _next_input(core: RunCore) -> int:
    """Input tokens of the next request, by the conversation as it stands."""
    stored, kept, spec = core.history.view(), core.state.kept, core.acting
    request = ModelRequest(
        messages=stored if kept.messages is None else (*kept.messages, *stored[kept.replaces :]),
        system=spec.system if isinstance(kept.system, msgspec.UnsetType) else kept.system,
        tools=core.definitions,
    )
    count = spec.model.profile.count_tokens
    return count(request) if count is not None else core.estimator.request(request, stored)


def _amounts(core: RunCore, input_tokens: int) -> tuple[int, float]:
    spec, output = core.acting, core.acting.max_tokens or 0
    cost = None
    if core.spec.prices is not None:
        cost = core.spec.prices.estimate(spec.model.name, input_tokens=input_tokens, output_tokens=output)
    return input_tokens + output, cost or 0.0
