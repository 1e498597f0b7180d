"""What must hold of the cases about budgets, beyond their checks."""

from __future__ import annotations

import pytest

from protocol.errors import LimitReachedError, SpecError
from protocol.events import LimitReached, StepStarted
from protocol.limits import LimitState

from .claims import claim
from .runner import run_case


@claim("BUD-03", "used_tool_calls is exactly 30 at the end, in 50 repetitions")
def no_update_is_lost() -> None:
    """A second of the case is 10 ms of real time here."""
    repeated = [run_case("BUD-03", order=order)[0] for order in range(50)]

    assert [(30, {"t": 15, "th": 15})] * 50 == [
        (came.last.result.counters.tool_calls, came.tool_runs) for came in repeated
    ]


@claim("BUD-04", "the check is made before sending; the stop message names the dimension and the limit")
def the_ceiling_holds() -> None:
    (came,) = run_case("BUD-04")

    assert 4 == len(came.asked) == len(came.last.all(StepStarted))
    assert LimitState("llm_calls", 4, 4) == came.last.only(LimitReached).limit == came.last.result.limit
    assert ("limit", "max_llm_calls") == (came.outcome, came.last.result.finish_reason)
    with pytest.raises(LimitReachedError, match=r"llm_calls \(4\)"):
        came.last.result.raise_for_limit()


@claim(
    "BUD-04",
    "variant max_llm_calls 1: one request. Variant 0: no request, or documented as unlimited and tested as such",
)
def one_is_one_and_none_is_refused() -> None:
    (came,) = run_case("BUD-04", "remote", ("config.max_llm_calls", 1))

    assert (1, LimitState("llm_calls", 1, 1)) == (len(came.asked), came.last.result.limit)
    with pytest.raises(SpecError, match="max_llm_calls must be an integer >= 1, or None for no limit; it is 0"):
        run_case("BUD-04", "remote", ("config.max_llm_calls", 0))
