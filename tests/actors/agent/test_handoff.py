"""Hand-off: the run goes on as another agent, once the turn's other calls have run (N4)."""

from __future__ import annotations

from typing import Any

import pytest

from actors import (
    AgentSpec,
    handoff,
)
from actors.models.scripted import call, reply
from protocol.errors import SpecError
from protocol.events import HandedOff, StepStarted, ToolFinished
from tests.support.deciders import results, statuses
from tests.support.handoffs import asked_of, named, play_all, transfer
from tests.support.play import Stage, perform
from tests.support.scripts import Bench
from tests.support.strict import StrictModel


def test_the_run_goes_on_as_the_target() -> None:
    """N4: model, system and tools are the target's; conversation, run and step numbers stay."""
    bench = Bench()
    b = named("b", [reply("", call("u", {}, id="y")), "from b"], bench.tool("u"), system="You are b.", temperature=0.5)
    a = named("a", [transfer(text="over to b")], bench.tool("t"), handoff(b), system="You are a.")
    played = play_all(a, b)
    (first,), (second, third) = asked_of(a), asked_of(b)
    handed = played.only(HandedOff)

    assert ("from b", True) == (played.result.text, played.result.answered)
    assert ("You are a.", ("t", "transfer_to_b"), None) == (first.system, first.tools, first.temperature)
    assert ("You are b.", ("u",), 0.5) == (second.system, second.tools, second.temperature)
    assert second.messages == played.messages[:3]
    assert third.messages == played.messages[:5]
    assert {"x": ("ok", "Handed over to b."), "y": ("ok", "1")} == results(played)
    assert [0, 1, 2] == [event.step for event in played.all(StepStarted)]
    assert ("b", "b-model") == (handed.agent, handed.model)
    assert (3, 2) == (played.result.counters.llm_calls, played.result.counters.tool_iterations)
    assert 1 == played.result.counters.tool_calls


def test_the_agent_itself_stays_what_it_was() -> None:
    """N4: a hand-off is the run's: the next run begins with the agent's own model."""
    b = named("b", ["from b"])
    a = named("a", [transfer(), "from a"], handoff(b))

    async def scene(stage: Stage) -> list[str]:
        await stage.spawn(b)
        one = await stage.spawn(a)
        return [(await stage.play(one)).result.text, (await stage.play(one)).result.text]

    assert ["from b", "from a"] == perform(scene)


def test_the_turns_other_calls_run_first() -> None:
    """N4: as the agent that asked for them; the hand-off is answered last, and stands in call order."""
    bench = Bench()
    turn = reply("", call("transfer_to_b", {}, id="x"), call("t", {}, id="y"), call("gone", {}, id="z"))
    b = named("b", ["from b"])
    played = play_all(named("a", [turn], bench.tool(seconds=3), handoff(b)), b)

    assert ["x", "y", "z"] == list(results(played))
    assert ({"x": "ok", "y": "ok", "z": "error"}, {"t": 1}) == (statuses(played), bench.runs)
    assert "x" == played.all(ToolFinished)[-1].call
    assert ["step_finished", "handed_off", "step_started"] == [
        kind for kind in played.types if kind in {"step_finished", "handed_off", "step_started"}
    ][1:4]


@pytest.mark.parametrize("same", [False, True])
def test_a_second_hand_off_is_not_run(same: bool) -> None:  # noqa: FBT001
    """N4: the first one wins, to whomever the second would go."""
    b, c = named("b", ["from b"]), named("c", ["from c"])
    second = "b" if same else "c"
    turn = reply("", call("transfer_to_b", {}, id="x"), call(f"transfer_to_{second}", {}, id="y"))
    played = play_all(named("a", [turn], handoff(b), handoff(c)), b, c)

    assert ("from b", 1) == (played.result.text, len(played.all(HandedOff)))
    assert ("not_run", "Not run: this turn already hands over to another agent.") == results(played)["y"]


def test_a_bad_hand_off_does_not_stand_in_the_way_of_a_good_one() -> None:
    """T3, N4: arguments are checked first; what cannot run hands nothing over."""
    b, c = named("b", ["from b"]), named("c", ["from c"])
    turn = reply("", call("transfer_to_b", {"why": 1}, id="x"), call("transfer_to_c", {}, id="y"))
    played = play_all(named("a", [turn], handoff(b), handoff(c)), b, c)

    assert ("from c", {"x": "error", "y": "ok"}) == (played.result.text, statuses(played))


def test_agents_that_hand_over_in_a_circle_draw_on_one_window_and_one_ledger() -> None:
    """N4: rounds and calls are the run's, whoever makes them; the limits of the first agent end it."""
    specs: dict[str, AgentSpec] = {}
    specs["b"] = named("b", lambda _r: transfer("a", id=""), handoff(lambda: specs["a"], agent="a"), max_llm_calls=1)
    specs["a"] = named(
        "a",
        lambda _r: transfer("b", id=""),
        handoff(lambda: specs["b"], agent="b"),
        max_llm_calls=7,
        max_tool_iterations=50,
    )
    played = play_all(specs["a"], specs["b"])

    assert ("llm_calls", 7, 7) == (
        played.result.stopped_by,
        played.result.counters.llm_calls,
        played.result.counters.tool_iterations,
    )
    assert ["b", "a"] * 3 + ["b"] == [event.agent for event in played.all(HandedOff)]
    assert (4, 3) == (len(asked_of(specs["a"])), len(asked_of(specs["b"])))


def test_agents_that_are_made_when_they_are_needed_may_form_a_circle() -> None:
    """N4: the function of a hand-off is asked when the hand-off happens, and not before."""
    made: list[str] = []
    model = StrictModel([transfer("b", id="x"), transfer("a", id="y"), "done"])

    def make(name: str) -> AgentSpec:
        made.append(name)
        other = "b" if name == "a" else "a"
        return AgentSpec(name=name, model=model, tools=[handoff(lambda: make(other), agent=other)])

    played = play_all(make("a"))

    assert ("done", ["a", "b", "a"]) == (played.result.text, made)
    assert ["b", "a"] == [event.agent for event in played.all(HandedOff)]


@pytest.mark.parametrize("fault", ["raises", "exits", "no agent"])
def test_a_hand_off_that_fails_is_an_error_result(fault: str) -> None:
    """N4, T4: the function of a hand-off is foreign code: the run goes on as the agent that it was."""

    def target() -> Any:
        if fault == "raises":
            raise KeyError("no such agent")
        if fault == "exits":
            raise SystemExit(3)
        return "b"

    a = named("a", [transfer(), "from a"], handoff(target, agent="b"))
    played = play_all(a)
    (status, text) = results(played)["x"]

    assert ("error", "from a", []) == (status, played.result.text, played.all(HandedOff))
    assert text.startswith("Not handed over to b: ")


@pytest.mark.parametrize("target", [None, "b", lambda: None], ids=["none", "text", "function without a name"])
def test_a_target_that_cannot_be_one_is_an_error_of_the_settings(target: Any) -> None:
    """N4: the error says what would be right."""
    with pytest.raises(SpecError, match="an AgentSpec, or a function that returns one"):
        handoff(target)
