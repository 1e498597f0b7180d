"""A loop that runs its tools itself and gives their results: rounds like any other, behind the limit and the gate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from actors import (
    AgentSpec,
    ContinuationResponse,
    Loop,
    append_exchange,
    generate_step,
    should_continue,
    tool,
    unanswered_calls,
)
from actors.models.scripted import call, reply
from protocol.events import RunFinished, ToolFinished, ToolStarted
from protocol.limits import LimitState
from protocol.turns import ToolMessage

from ...support.play import Played, Stage, perform
from ...support.scripts import Bench, calls_until, calls_while_on
from ...support.specs import APPROVE, DECLINE, Answers, agent


def driven(spec: AgentSpec, loop: Any, **options: Any) -> Played:
    """A run, judged; that a result without a body is `ok` is what these tests are about."""
    seen: list[Played] = []

    async def scene(stage: Stage) -> None:
        seen.append(await stage.play(await stage.spawn(spec), loop=loop, **options))

    try:
        perform(scene)
    except AssertionError as error:
        faults = str(error).splitlines()[1:]
        if not all(fault.endswith("tool_finished: ok without a start") for fault in faults):
            raise
    return seen[0]


@attrs.define
class Hand:
    """A loop that answers every call itself: by name, or with the text `mine`."""

    values: Mapping[str, Any] = attrs.field(factory=dict[str, Any])
    asked: list[str] = attrs.field(factory=list)

    async def __call__(self, loop: Loop) -> None:
        while should_continue(loop):
            await generate_step(loop)
            wanted = unanswered_calls(loop.messages)
            self.asked += [call.id for call in wanted]
            await append_exchange(loop, {call.id: self.values.get(call.name, "mine") for call in wanted})


def results(played: Played) -> list[tuple[str, str, str]]:
    return [
        (result.call, result.status, result.text)
        for message in played.messages
        if isinstance(message, ToolMessage)
        for result in message.results
    ]


def test_values_and_errors() -> None:
    """Values are made text as a tool's are, an exception is an error result; no body is entered, the round counts."""
    wanted = reply("", call("t", {}, id="a"), call("u", {}, id="b"), call("nobody", {}, id="c"))
    bench = Bench()
    played = driven(
        agent([wanted, "done"], bench.tool("t"), bench.tool("u")), Hand({"t": {"x": 1}, "u": ValueError("no")})
    )

    assert [("a", "ok", '{"x":1}'), ("b", "error", "ValueError: no"), ("c", "ok", "mine")] == results(played)
    assert ["ok", "error", "ok"] == [event.status for event in played.all(ToolFinished)]
    assert ([], {}) == (played.all(ToolStarted), bench.runs)
    assert (1, 0, "done") == (
        played.result.counters.tool_iterations,
        played.result.counters.tool_calls,
        played.result.text,
    )


def test_the_window_holds() -> None:
    """At a full window the run ends: what the loop brings then is not stored."""
    bench, hand = Bench(), Hand()
    played = driven(agent(calls_while_on(), bench.tool(), max_tool_iterations=2), hand)

    assert LimitState("tool_iterations", 2, 2) == played.result.limit
    assert ["c1", "c2", "c3"] == hand.asked
    assert [("c1", "ok"), ("c2", "ok"), ("c3", "not_run")] == [(id, status) for id, status, _ in results(played)]


def test_the_final_call_comes() -> None:
    """Rounds by hand lead to the final call like any other."""
    played = driven(
        agent(calls_while_on(), Bench().tool(), max_tool_iterations=2, tool_iteration_limit_finalization=""), Hand()
    )

    assert ("final", "model", 2) == (
        played.result.text,
        played.result.finalized,
        played.result.counters.tool_iterations,
    )


def test_the_gate_is_asked_first() -> None:
    """What the gate lets run has the loop's result and is round 1 of the new window; what it declines does not."""
    answers = Answers(APPROVE, DECLINE)
    played = driven(agent(calls_while_on(), Bench().tool(), max_tool_iterations=1, continuation=answers), Hand())

    assert [("c1", "ok"), ("c2", "ok"), ("c3", "discarded")] == [(id, status) for id, status, _ in results(played)]
    assert [(1, 1), (1, 2)] == [(asked.max_iterations, asked.total_iterations) for asked in answers.asked]
    assert ("final", 2) == (played.result.text, played.result.counters.tool_iterations)


def test_the_gate_discards_one() -> None:
    """A discarded call has the text that the gate gives it, the other one the loop's."""
    two = [reply("", call("t", {}, id=f"a{n}"), call("t", {}, id=f"b{n}")) for n in range(2)]
    answers = Answers(ContinuationResponse("approve", discard_tool_calls=["a1"], tool_message="not that"))
    played = driven(agent([*two, "done"], Bench().tool(), max_tool_iterations=1, continuation=answers), Hand())

    assert [("a1", "discarded", "not that"), ("b1", "ok", "mine")] == results(played)[2:]
    assert 2 == played.result.counters.tool_iterations


def test_all_discarded_is_no_round() -> None:
    """As in the engine: the window is new, and empty."""
    answers = Answers(ContinuationResponse("approve", discard_tool_calls=True), DECLINE)
    played = driven(agent(calls_while_on(), Bench().tool(), max_tool_iterations=1, continuation=answers), Hand())

    assert ["ok", "discarded", "ok", "discarded"] == [status for _, status, _ in results(played)]
    assert 2 == played.result.counters.tool_iterations


def test_a_cut_turn_has_no_calls_to_run() -> None:
    """Calls that a token limit cut are not shown to the loop, and are answered as ever."""
    cut = reply("half", call("t", {}, id="a"), finish="length")
    hand = Hand()
    played = driven(agent([cut, "done"], Bench().tool()), hand)

    assert [] == hand.asked
    assert [("a", "error")] == [(id, status) for id, status, _ in results(played)]
    assert "cut by the token limit" in results(played)[0][2]
    assert "done" == played.result.text


def test_the_final_call_has_no_calls_to_run() -> None:
    """Calls beside its text are neither shown nor stored."""
    both = reply("enough", call("t", {}, id="x"))
    hand = Hand()
    played = driven(
        agent(
            [reply("", call("t", {}, id="a")), both], Bench().tool(), max_llm_calls=2, llm_call_limit_finalization=""
        ),
        hand,
    )

    assert ["a"] == hand.asked
    assert ("enough", "model") == (played.result.text, played.result.finalized)


def test_a_tool_that_ends_the_run() -> None:
    """`ends_run` holds for a result that the loop gives: it is the success of that tool."""

    async def hand_in() -> str:
        """Hand it in."""
        return "never"

    spec = agent(calls_while_on(name="hand_in"), tool(hand_in, ends_run=True))
    played = driven(spec, Hand())

    assert ("tool", 1) == (played.only(RunFinished).summary.stopped_by, played.result.counters.steps)


def test_a_call_is_counted_once() -> None:
    """Over many rounds the counters are those of the engine."""
    played = driven(agent(calls_until(4), Bench().tool(), max_tool_iterations=9), Hand())

    assert (4, 4, 5) == (
        played.result.counters.tool_iterations,
        played.result.counters.window,
        played.result.counters.llm_calls,
    )
