"""What must hold of the cases about budgets, beyond their checks."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
import trio

from protocol.errors import LimitReachedError, RunCancelledError, SpecError
from protocol.events import ApprovalRequired, ApprovalResolved, LimitReached, StepStarted
from protocol.limits import LimitState
from protocol.model import ModelEmit, ModelRequest, Profile, RequestSent
from protocol.turns import Turn
from tests.support.play import Stage, perform

from .claims import answered, claim
from .crowd import crowd_of
from .program import CALL_SECONDS, Change, Gate, input_of
from .runner import run_case

ROOT = Path(__file__).parents[2]
AT_THE_LIMIT: tuple[Change, ...] = (
    ("turns", ("call pay with a fresh id until the request holds 2 results of pay, then text 'ok'",)),
    ("tools.pay", "return 1"),
    ("config.on_limit", "ask"),
    ("config.max_tool_iterations", 1),
)
"""BUD-13 with a limit prompt in place of the approval prompt."""


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


@claim("BUD-01", "spend after the run is at most 10.0 (9.0 + 2.0 would exceed it, so no call is admitted)")
def a_ceiling_that_is_shared_holds() -> None:
    (came,) = run_case("BUD-01")
    assert came.budget is not None

    assert 9.0 == came.budget.statistics().cost
    assert ([LimitState("cost", 10.0, 9.0)] * 5, 5) == ([played.result.limit for played in came.played], len(came.ends))
    assert 0 == len(came.asked)


@claim("BUD-01", "variant: ceiling 12.0: exactly 1 call is admitted, 4 children get a budget stop")
def one_is_admitted_where_one_fits() -> None:
    """In whatever order the tasks wake."""
    for order in range(10):
        (came,) = run_case("BUD-01", "remote", ("config.shared_max_cost", 12.0), order=order)
        assert came.budget is not None

        assert ["budget"] * 4 + ["stop"] == sorted(played.result.finish_reason for played in came.played)
        assert [("cost", 12.0)] * 4 == [(r.limit.name, r.limit.max) for p in came.played if (r := p.result).limit]
        assert (1, 11.0, 0) == (
            len(came.asked),
            came.budget.statistics().cost,
            came.budget.statistics().open_reservations,
        )


@claim(
    "BUD-01",
    "a reservation whose request never reached the transport is given back: variant cancel child 1 before its request is sent, then child 2 is admitted",
)
def what_was_not_sent_is_given_back() -> None:
    """Where it had been sent, what is held for it stays charged."""
    unsent, sent = cancel_the_first(sends_after=5.0), cancel_the_first(sends_after=0.0)

    assert (LimitState("cost", 12.0, 9.0), "stop", 11.0) == unsent
    assert (LimitState("cost", 12.0, 9.0), "budget") == sent[:2]


class Connecting:
    """A model that reaches its server only after some seconds, and never gets an answer."""

    def __init__(self, sends_after: float) -> None:
        self._sends_after = sends_after

    @property
    def name(self) -> str:
        return "case"

    @property
    def profile(self) -> Profile:
        return Profile(reports_sending=True)

    async def turn(self, _request: ModelRequest, emit: ModelEmit) -> Turn:
        await trio.sleep(self._sends_after)
        emit(RequestSent())
        await trio.sleep_forever()
        raise AssertionError


def cancel_the_first(*, sends_after: float) -> tuple[LimitState | None, str, float | None]:
    """At a ceiling of 12.0, the first child is cancelled while its call is held.

    The limit that a child meets in the meantime, how the second one ends afterwards, and what is spent at the end.
    """
    told = input_of("BUD-01", [("config.shared_max_cost", 12.0)])

    async def scene(stage: Stage) -> tuple[LimitState | None, str, float | None]:
        crowd = await crowd_of(told, stage)
        first = await stage.spawn(attrs.evolve(crowd.spec, model=Connecting(sends_after)))
        async with stage.run(first) as run:
            await trio.sleep(1)
            meanwhile = await stage.play(await stage.spawn(crowd.spec))
            run.cancel("not wanted")
            with pytest.raises(RunCancelledError):
                await run.result()
        second = await stage.play(await stage.spawn(crowd.spec))
        return meanwhile.result.limit, second.result.finish_reason, crowd.budget.statistics().cost

    return perform(scene)


@claim(
    "BUD-05",
    "the floor price of the request (200000 tokens = 2.0) is above what is left, so it is refused before sending",
)
def what_is_too_dear_is_not_sent() -> None:
    (came,) = run_case("BUD-05")
    (fits,) = run_case("BUD-05", "remote", ("config.max_cost", 2.0))

    assert (0, 0) == (len(came.asked), came.last.result.counters.llm_calls)
    assert LimitState("cost", 1.0, 0.0) == came.last.only(LimitReached).limit == came.last.result.limit
    assert (0.0, False, 0) == (
        came.last.result.cost,
        came.last.result.answered,
        len(came.stream) - len(came.last.events),
    )
    # 2.0 is what it costs: where that is left, it is sent.
    assert ("answer", "never") == (fits.outcome, fits.last.result.text)


@claim(
    "BUD-05",
    "if a runtime only checks afterwards it must say so: the overshoot is at most one call and the documentation test states it",
)
def only_output_without_a_cap_can_overshoot() -> None:
    """The output counts beforehand where `max_tokens` bounds it; where nothing does, one call may go over, and no more."""
    dear = (
        ("config.price_out_per_mtok", 1_000_000.0),
        ("request_size_tokens", 10),
        ("turns", ("every turn: one call to missing with a fresh id",)),
    )
    (capped,) = run_case("BUD-05", "remote", *dear)
    (open_ended,) = run_case("BUD-05", "remote", *dear, ("config.max_output_tokens", None))
    guide = " ".join((ROOT / "docs" / "guide" / "budgets.md").read_text().split())

    assert (0, "budget") == (len(capped.asked), capped.outcome)
    assert (1, "budget") == (len(open_ended.asked), open_ended.outcome)
    assert open_ended.statistics[0].account.estimated_cost > 1.0
    assert "its tokens and cost once its request is known (the input, and `max_tokens` where that is set)" in guide


@claim(
    "BUD-13",
    "the documented rule holds and is the same for limit prompts and approvals. If waiting does not count: the run answers 'ok' and used wall clock is below 5 s. If waiting counts: the run ends at t=100 with outcome budget, the request is closed at the same moment, and the approve at 500 is answered 'not pending'",
)
def waiting_for_a_person_costs_no_time(gate: Gate) -> None:
    (asked_to_approve,) = run_case("BUD-13", gate)
    (asked_at_the_limit,) = run_case("BUD-13", gate, *AT_THE_LIMIT)
    guide = (ROOT / "docs" / "guide" / "budgets.md").read_text()

    for came, calls in ((asked_to_approve, 2), (asked_at_the_limit, 3)):
        assert ("answer", "ok", calls) == (came.outcome, came.last.result.text, len(came.asked))
        assert calls * CALL_SECONDS == came.statistics[0].account.work_seconds
        assert came.last.seconds > 500
    assert (1, 0) == (len(asked_to_approve.last.all(ApprovalRequired)), len(asked_to_approve.prompts))
    assert (0, 1) == (len(asked_at_the_limit.last.all(ApprovalRequired)), len(asked_at_the_limit.prompts))
    assert "| `wall_clock_seconds` | seconds of work: waiting for a decision does not count |" in guide


@claim("BUD-13", "never: approve accepted, then instant budget stop with the tool's effect unrecorded")
def what_was_approved_is_done_and_recorded(gate: Gate) -> None:
    (came,) = run_case("BUD-13", gate)
    (resolved,) = came.last.all(ApprovalResolved)

    assert ("approved", {"pay": 1}) == (resolved.outcome, came.tool_runs)
    assert ["accepted"] * (gate == "remote") == [reply.status for reply in came.replies]
    assert [("c1", "ok")] == answered(came.messages) == answered(came.asked[1].messages)
    assert [] == came.last.all(LimitReached)
    assert 500 == came.times["tool_started:c1"]
