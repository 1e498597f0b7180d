"""What a run's model calls are charged: held before they leave, booked when the reply arrives, settled at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.errors import PriceUnknown
from protocol.estimate import turn_tokens
from protocol.events import UsageReport
from protocol.limits import LimitState
from protocol.model import Model, ModelRequest
from protocol.spending import Spending
from protocol.turns import Turn
from protocol.usage import UNKNOWN_USAGE, Usage

if TYPE_CHECKING:
    from ._core import RunCore

__all__ = ("amounts_of", "book", "estimate_of", "hold", "report_usage", "settle_ledger", "spending_of")


def estimate_of(core: RunCore, request: ModelRequest, model: Model) -> int:
    """Input tokens of a request, before anybody has counted them; 0 where nothing needs to know."""
    if core.spec.prices is None and not core.account.holds_amounts:
        return 0
    count = model.profile.count_tokens
    return count(request) if count is not None else core.estimator.request(request, core.history.view())


def amounts_of(core: RunCore, request: ModelRequest, model: Model, input_tokens: int) -> tuple[int, float]:
    """Tokens and US dollars to hold for a request (B1). Raises `PriceUnknown` where cost is limited."""
    prices, output = core.spec.prices, request.max_tokens or 0
    cost = None
    if prices is not None:
        cost = prices.estimate(model.name, input_tokens=input_tokens, output_tokens=output)
    if cost is None and core.account.limits_cost:
        raise PriceUnknown(
            f"the price of model {model.name!r} is unknown and the cost is limited: give prices= one for it"
        )
    return input_tokens + output, cost or 0.0


def hold(core: RunCore, request: ModelRequest, model: Model) -> LimitState | None:
    """Hold the tokens and the cost of the request that is about to leave; one that is too big is given back (B1)."""
    core.estimate = estimate_of(core, request, model)
    if not core.account.holds_amounts:
        return None
    tokens, cost = amounts_of(core, request, model, core.estimate)
    lacking = core.account.hold(core.state.reservation, tokens, cost)
    if lacking is not None:
        core.account.release(core.state.reservation)
        core.state.reservation = 0
    return lacking


def report_usage(core: RunCore) -> None:
    """Tell what the run has used so far, where its books have changed in the middle of a step."""
    core.log.emit(
        UsageReport(
            run=core.run,
            agent_path=core.path,
            usage=core.usage,
            cost=core.cost,
            context_tokens=core.state.context_tokens,
        )
    )


def spending_of(core: RunCore, usage: Usage, turn: Turn | None, model: str, input_tokens: int) -> Spending:
    """What a call used, as it is booked: what it did not report is charged as an estimate (B3)."""
    prices = core.spec.prices
    if prices is None and not core.account.holds_amounts:
        return Spending(usage)
    cost = prices.cost(model, usage) if prices is not None else None
    if usage.complete:
        return Spending(usage, cost)
    output = turn_tokens(turn) if turn is not None else 0
    tokens = max(0, input_tokens + output - usage.total_tokens)
    guess = prices.estimate(model, input_tokens=input_tokens, output_tokens=output) if prices is not None else None
    return Spending(usage, cost, tokens, 0.0 if cost is not None else guess or 0.0)


def book(core: RunCore, turn: Turn, model: str) -> None:
    """Book what the call in flight used, at once: what its tools start draws on what is left."""
    state = core.state
    state.spent = spending_of(core, turn.usage, turn, model, core.estimate)
    core.account.settle(state.reservation, state.spent)
    state.reservation = 0
    state.leaving = False


def settle_ledger(core: RunCore) -> None:
    """Settle what was sent, give back what was not: also a grant that its asker never came to see."""
    state = core.state
    for number in core.account.open_reservations:
        if number == state.reservation and state.sent:
            core.account.settle(number, spending_of(core, UNKNOWN_USAGE, None, core.acting.model.name, core.estimate))
        else:
            core.account.release(number)
    state.reservation = 0
    state.leaving = False
