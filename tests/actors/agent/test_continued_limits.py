"""Each continuation is a call of its own, drawn on every budget; a final call goes on with its tools off (B1, B2, F8)."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from actors import AgentSpec, Budget, ask_model
from actors.models.scripted import Scripted, call
from protocol.events import LimitReached
from protocol.ledger import Account
from protocol.limits import LimitState
from protocol.turns import AssistantMessage, TextPart
from tests.support.costs import Prices, counted
from tests.support.play import Stage, perform, play
from tests.support.scripts import Bench
from tests.support.strict import StrictModel

from ._cut import agent, cut, done, hops, last, profile


def never_ends(_request: Any) -> Any:
    return cut("bla ")


def test_a_refused_continuation_ends_the_run_as_that_turn() -> None:
    """`length`, with the limit that had no room; it is told once, directly before the end (B1, B6)."""
    played = play(agent(never_ends, max_llm_calls=3))
    limit = LimitState("llm_calls", 3, 3)

    assert 3 == len(played.asked)
    assert ("bla bla bla ", "length", "model", limit, False) == (
        played.result.text,
        played.result.finish_reason,
        played.result.stopped_by,
        played.result.limit,
        played.result.answered,
    )
    assert AssistantMessage((TextPart("bla bla bla "),), partial=True) == last(played.messages)
    assert limit == played.only(LimitReached).limit
    assert ["limit_reached", "run_finished"] == played.types[-2:]


def test_the_first_is_no_hop_where_none_follows() -> None:
    """A turn that could not be continued looks like any other that was cut."""
    played = play(agent(never_ends, max_llm_calls=1))

    assert ([], "length", 1) == (hops(played), played.result.finish_reason, len(played.asked))


def test_a_limit_that_is_just_enough_is_not_reached() -> None:
    """Using exactly the allowance is no overrun (B6)."""
    played = play(agent([cut("a"), done("b")], max_llm_calls=2))

    assert ("ab", True, None) == (played.result.text, played.result.answered, played.result.limit)


def test_budgets_above_count_it_too() -> None:
    """One that many share refuses like the run's own."""
    budget = Budget(max_llm_calls=2)
    played = play(agent(never_ends, budget=budget))

    assert ("bla bla ", LimitState("llm_calls", 2, 2), 2) == (
        played.result.text,
        played.result.limit,
        budget.statistics().llm_calls,
    )


@pytest.mark.parametrize(
    ("limits", "name"),
    [({"max_total_tokens": 100}, "total_tokens"), ({"max_cost": 1.0, "prices": Prices(token=0.01)}, "cost")],
)
def test_tokens_and_cost_are_held_for_it(limits: dict[str, Any], name: str) -> None:
    """Two requests of 40 fit into 100; a third one could take 40 more, and is not sent."""
    known = counted(40, continues_text="exact_prefix")
    played = play(agent(never_ends, known=known, **limits))

    assert (2, "length", name) == (len(played.asked), played.result.finish_reason, played.result.limit and played.result.limit.name)  # fmt: skip
    assert 2 == played.result.counters.llm_calls


def test_the_text_so_far_is_a_part_of_the_estimate() -> None:
    """It is sent, so it is held for: what would be too long with it is not sent."""
    script = [cut("x" * 400), done("never")]
    fits = play(agent(script, max_total_tokens=1000))
    refused = play(agent([cut("x" * 4000), done("never")], max_total_tokens=1000))

    assert (2, None) == (len(fits.asked), fits.result.limit)
    assert (1, "total_tokens") == (len(refused.asked), refused.result.limit and refused.result.limit.name)


# ---------------------------------------------------------------- the final call


@pytest.mark.parametrize("keeps", [True, False])
def test_a_final_call_goes_on_with_its_tools_off(keeps: bool) -> None:
    """On every request of it, its instruction too (F8); then it is the answer."""
    known = attrs.evolve(profile(), keeps_tools_when_off=keeps)
    script = [done("", call("t", {})), cut("The an"), cut("sw"), done("er.")]
    spec = agent(script, Bench().tool(), known=known, max_tool_iterations=1, tool_iteration_limit_finalization="Answer now.")  # fmt: skip
    played = play(spec)

    assert ("The answer.", True, "stop", "model") == (
        played.result.text,
        played.result.answered,
        played.result.finish_reason,
        played.result.finalized,
    )
    assert [True, False, False, False] == [asked.tools_on for asked in played.asked]
    assert [None, "Answer now.", "Answer now.", "Answer now."] == [asked.tail for asked in played.asked]
    assert LimitState("tool_iterations", 1, 1) == played.result.limit
    assert 4 == played.result.counters.llm_calls


def test_a_final_call_that_cannot_go_on_is_no_answer() -> None:
    """Its text is kept; the limit is the one that it was made for, whichever refused the rest."""
    script = [done("", call("t", {})), cut("half "), done("never")]
    spec = agent(script, Bench().tool(), max_llm_calls=2, max_tool_iterations=1, llm_call_limit_finalization="")
    played = play(spec)

    assert ("half ", False, "length", "model", LimitState("llm_calls", 2, 2)) == (
        played.result.text,
        played.result.answered,
        played.result.finish_reason,
        played.result.finalized,
        played.result.limit,
    )
    assert (2, True) == (len(played.asked), last(played.messages).partial)


def test_the_callers_own_cap_ends_a_final_call() -> None:
    """It is not continued then (F8); other turns of the run are."""
    script = [cut("I "), done("look.", call("t", {})), cut("half"), done("never")]
    spec = agent(script, Bench().tool(), max_tokens=10, max_tool_iterations=1, tool_iteration_limit_finalization="")
    played = play(spec)

    assert (3, "length", False) == (len(played.asked), played.result.finish_reason, played.result.answered)
    assert ["I look.", "half"] == [step.text for step in played.result.steps]


# ---------------------------------------------------------------- the call that is held


def test_the_call_that_is_held_continues_an_answer() -> None:
    """The last one is for a final call, or for this; no tool could be read after it, so tools are off (B2)."""
    bench = Bench()
    played = play(agent([cut("ha"), done("lf")], bench.tool(), max_llm_calls=2, llm_call_limit_finalization=""))

    assert ("half", True, None, None) == (
        played.result.text,
        played.result.answered,
        played.result.limit,
        played.result.finalized,
    )
    assert [True, False] == [asked.tools_on for asked in played.asked]


def test_a_call_that_comes_nevertheless_does_not_run() -> None:
    """Tools that a request did not offer cannot run (H3), and the run is out of calls."""
    bench = Bench()
    script = [cut("ha"), done("lf", call("t", {}))]
    played = play(agent(script, bench.tool(), max_llm_calls=2, llm_call_limit_finalization=""))

    assert ({}, "max_llm_calls", "half") == (bench.runs, played.result.finish_reason, played.result.text)


def test_cut_calls_leave_the_held_call_to_the_final_one() -> None:
    """To make them anew would take it; they are answered, and the final call is made (B2)."""
    known = profile(default_max_tokens=10, max_output_tokens=99)
    script = [cut("", call("t", '{"a', id="c1")), done("final")]
    played = play(agent(script, Bench().tool(), known=known, max_llm_calls=2, llm_call_limit_finalization=""))

    assert ("final", True, "model", 2) == (
        played.result.text,
        played.result.answered,
        played.result.finalized,
        played.result.counters.llm_calls,
    )


# ---------------------------------------------------------------- what no path passes by


def test_every_path_counts() -> None:
    """A helper of a hook, the final call and its continuation draw on one limit; the fourth request is not sent."""
    helper = Scripted(["sum"], name="helper")
    seen: list[int] = []

    async def prepare(state: Any) -> None:
        seen.append(state.step_number)
        if state.step_number == 1:
            await ask_model("Sum it up.", model=helper)

    model = StrictModel([done("", call("t", {})), cut("half "), done("never")], profile=profile())
    spec = AgentSpec(
        model=model,
        tools=[Bench().tool()],
        automatic_continuation=True,
        max_llm_calls=3,
        max_tool_iterations=1,
        tool_iteration_limit_finalization="",
        prepare_step=prepare,
    )

    async def scene(stage: Stage) -> Any:
        await stage.spawn(AgentSpec(model=helper))
        return await stage.play(await stage.spawn(spec))

    played = perform(scene)

    assert (2, 1, 3) == (len(model.asked), len(helper.requests), played.result.counters.llm_calls)
    assert ("half ", "length", LimitState("tool_iterations", 1, 1)) == (
        played.result.text,
        played.result.finish_reason,
        played.result.limit,
    )


def test_nothing_is_left_open() -> None:
    """No reservation, no tokens held, after a refusal that came when the call had been counted."""
    accounts: list[Account] = []

    async def scene(stage: Stage) -> None:
        known = counted(40, continues_text="exact_prefix")
        host = await stage.spawn(agent(never_ends, known=known, max_total_tokens=100))
        async with stage.run(host) as run:
            await run.result()
            accounts.extend(run._core.account.chain)

    perform(scene)

    assert [((), 0)] * len(accounts) == [(one.open_reservations, one.books.held_tokens) for one in accounts]
