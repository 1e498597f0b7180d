"""When the gate is asked, and what it is asked (G1, G2, G9, B6)."""

from __future__ import annotations

import pytest
import trio

from actors import ContinuationRequest, ContinuationResponse, remote, up_to
from actors.models.scripted import call, reply
from actors.tools import tool
from protocol.events import (
    ContinuationRequired,
    ContinuationResolved,
    LimitReached,
    PendingCall,
    StepFinished,
    ToolFinished,
    ToolRequested,
    ToolStarted,
)
from protocol.limits import LimitState
from protocol.turns import ToolMessage, ToolResult
from protocol.usage import Usage
from tests.support.play import Stage, perform, play
from tests.support.scripts import Bench, calls_until, calls_while_on
from tests.support.specs import APPROVE, DECLINE, DISCARD, Answers, agent


def test_it_is_not_asked_before_the_window_is_full() -> None:
    """G1, B6: rounds up to the allowance are no overrun: nobody is asked and no limit is reached."""
    gate = Answers()
    played = play(agent(calls_until(2), Bench().tool(), max_tool_iterations=2, continuation=gate))

    assert [] == gate.asked
    assert [] == played.all(LimitReached)
    assert ("done", None, "model") == (played.result.text, played.result.limit, played.result.stopped_by)


def test_it_is_not_asked_without_calls_at_a_full_window() -> None:
    """G1: an answer, an empty turn or a cut text at a full window are no reason to ask."""
    bench = Bench()
    gate = Answers()
    script = [reply("", call("t", {}, id="a")), reply(""), "done"]
    played = play(agent(script, bench.tool(), max_tool_iterations=1, continuation=gate))

    assert ([], "done") == (gate.asked, played.result.text)


def test_it_is_asked_before_anything_is_run_or_validated() -> None:
    """G1: at the question no pending call has been looked at: neither an unknown tool nor bad arguments are answered."""
    bench = Bench()
    script = [
        reply("", call("t", {}, id="a")),
        reply("", call("nowhere", {}, id="b"), call("t", "[1]", id="c"), call("t", {}, id="d")),
        "done",
    ]
    gate = Answers(DECLINE)
    played = play(agent(script, bench.tool(), max_tool_iterations=1, continuation=gate))
    before = played.events[: played.types.index("continuation_required")]

    assert ["a"] == [event.call for event in before if isinstance(event, ToolFinished)]
    assert {"t": 1} == bench.runs
    assert [PendingCall("b", "nowhere", {}), PendingCall("c", "t", {}), PendingCall("d", "t", {})] == list(
        gate.asked[0].tool_calls
    )


def test_a_round_is_counted_whatever_became_of_its_calls() -> None:
    """Section 1: a turn whose calls are all unknown is a round, so the window fills."""
    script = [reply("", call("nowhere", {}, id="a")), reply("", call("t", {}, id="b")), "done"]
    gate = Answers(APPROVE)
    played = play(agent(script, Bench().tool(), max_tool_iterations=1, continuation=gate))

    assert [(1, 1)] == [(asked.max_iterations, asked.total_iterations) for asked in gate.asked]
    assert (2, 1) == (played.result.counters.tool_iterations, played.result.counters.tool_calls)


def test_what_the_question_holds() -> None:
    """G2: limit, window, totals, calls with their arguments, text, usage and what may be decided."""
    usage = Usage(10, 0, 0, 5, 0, complete=True)
    script = [
        reply("first", call("t", {"n": 1}, id="a"), usage=usage),
        reply("look", call("t", {"n": 2}, id="b"), call("t", {"n": 3}, id="c"), usage=usage),
        "done",
    ]

    async def body(n: int) -> int:
        return n

    gate = Answers(DECLINE)
    spec = agent(script, tool(body, name="t"), max_tool_iterations=1, continuation=gate, max_grant=7)
    played = play(spec)
    asked = gate.asked[0]

    assert played.only(ContinuationRequired) is asked
    assert played.run == asked.run
    assert () == asked.agent_path
    assert LimitState("tool_iterations", 1, 1) == asked.limit
    assert (1, 1) == (asked.max_iterations, asked.total_iterations)
    assert (PendingCall("b", "t", {"n": 2}), PendingCall("c", "t", {"n": 3})) == asked.tool_calls
    assert "look" == asked.text
    assert usage + usage == asked.usage
    assert asked.cost is None
    assert 600.0 == asked.expires_in_seconds
    assert ("approve", "decline") == asked.decisions
    assert (1, 7) == (asked.default_grant, asked.max_grant)


def test_elapsed_seconds_are_those_of_the_run() -> None:
    """G2: `elapsed_seconds` runs from the run's beginning, waits for decisions included."""
    gate = Answers(APPROVE, DECLINE)
    played = play(agent(calls_while_on(), Bench().tool(seconds=5), max_tool_iterations=1, continuation=gate))

    assert [5.0, 10.0] == [asked.elapsed_seconds for asked in gate.asked]
    assert 10.0 == played.result.elapsed_seconds


def test_totals_run_over_all_windows_and_the_window_is_the_one_just_filled() -> None:
    """G2: `max_iterations` is the window just filled, which a grant may have resized; totals go on."""
    gate = up_to(4)
    played = play(agent(calls_while_on(), Bench().tool(), max_tool_iterations=3, continuation=gate))

    assert [(3, 3), (1, 4)] == [
        (event.max_iterations, event.total_iterations) for event in played.all(ContinuationRequired)
    ]
    assert [LimitState("tool_iterations", 3, 3), LimitState("tool_iterations", 1, 1)] == [
        event.limit for event in played.all(ContinuationRequired)
    ]


def test_the_order_of_events_at_the_gate() -> None:
    """R4, G9, B6: requests of the turn, then limit, question, its answer, and only then the tools."""
    played = play(agent(calls_until(2), Bench().tool(), max_tool_iterations=1, continuation=Answers(APPROVE)))
    kinds = (ToolRequested, LimitReached, ContinuationRequired, ContinuationResolved, ToolStarted, ToolFinished)
    second = played.events[played.types.index("step_finished") :]

    assert list(kinds) == [type(event) for event in second if isinstance(event, kinds)]


def test_every_question_has_an_id_of_its_own() -> None:
    """G2: ids are unique over questions, runs and agents."""

    async def scene(stage: Stage) -> list[str]:
        ids: list[str] = []
        gate = Answers(*[APPROVE, DECLINE] * 4)
        for _ in range(2):
            one = await stage.spawn(agent(calls_while_on(), Bench().tool(), max_tool_iterations=1, continuation=gate))
            for _ in range(2):
                played = await stage.play(one)
                ids += [event.request for event in played.all(ContinuationRequired)]
        return ids

    ids = perform(scene)

    assert 8 == len(ids) == len(set(ids))


@pytest.mark.parametrize("calls", [2, 3])
def test_with_no_call_left_it_is_not_asked(calls: int) -> None:
    """G1: with no model call left to go on with, calls are `not_run`, the limit is `llm_calls`, nobody is asked."""
    bench = Bench()
    gate = Answers()
    played = play(
        agent(
            calls_while_on(),
            bench.tool(),
            max_tool_iterations=calls - 1,
            max_llm_calls=calls,
            continuation=gate,
        )
    )

    assert [] == gate.asked
    assert LimitState("llm_calls", calls, calls) == played.result.limit == played.only(LimitReached).limit
    assert "max_llm_calls" == played.result.finish_reason
    last = played.messages[-1]
    assert isinstance(last, ToolMessage)
    assert [(f"c{calls}", "not_run", False)] == [(r.call, r.status, r.entered) for r in last.results]
    assert {"t": calls - 1} == bench.runs


def test_discarded_turns_leave_the_window_full_of_nothing() -> None:
    """G4: a turn discarded whole is no round: the new window has all its rounds left."""
    bench = Bench()
    gate = Answers(DISCARD, DECLINE)
    played = play(agent(calls_while_on(), bench.tool(), max_tool_iterations=2, continuation=gate))

    assert [(2, 2), (2, 4)] == [(asked.max_iterations, asked.total_iterations) for asked in gate.asked]
    assert {"t": 4} == bench.runs
    assert ToolResult("c3", "t", "discarded", "Tool execution canceled by user during continuation.") in [
        result for message in played.messages if isinstance(message, ToolMessage) for result in message.results
    ]


def test_a_cut_turn_at_a_full_window_goes_through_the_gate() -> None:
    """Step 6: cut calls are asked about like any others; approved, they are answered `error`, not run, and are a round."""
    bench = Bench()
    cut = reply("", call("t", {}, id="b"), finish="length")
    gate = Answers(APPROVE)
    played = play(
        agent([reply("", call("t", {}, id="a")), cut, "done"], bench.tool(), max_tool_iterations=1, continuation=gate)
    )

    assert [("b",)] == [tuple(call.id for call in asked.tool_calls) for asked in gate.asked]
    assert ["ok", "error"] == [event.status for event in played.all(ToolFinished)]
    assert ({"t": 1}, 2, "done") == (bench.runs, played.result.counters.tool_iterations, played.result.text)


def test_an_async_provider_is_awaited() -> None:
    """G: a provider may be an async function; time passes while it thinks."""

    async def think(_request: ContinuationRequest) -> ContinuationResponse:
        await trio.sleep(7)
        return DECLINE

    played = play(agent(calls_while_on(), Bench().tool(), max_tool_iterations=1, continuation=think))

    assert (7.0, "final") == (played.seconds, played.result.text)
    assert StepFinished in [type(event) for event in played.events[played.types.index("continuation_resolved") :]]


def test_remote_expires_by_the_agents_own_timeout() -> None:
    """G8: `remote()` without a timeout of its own has the agent's."""
    played = play(
        agent(
            calls_while_on(),
            Bench().tool(),
            max_tool_iterations=1,
            continuation=remote(),
            continuation_timeout_seconds=45.0,
        )
    )

    assert (45.0, 45.0) == (played.seconds, played.only(ContinuationRequired).expires_in_seconds)
