"""Hand-off: what is the run's stays, what is the agent's changes (N4)."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from actors import (
    Run,
    StepOverrides,
    StepState,
    StopRun,
    StopState,
    deny,
    external_tool,
    handoff,
    has_tool_call,
    max_steps,
    tool,
)
from actors.models.scripted import call, reply
from protocol.events import ApprovalRequired, Finalizing, RunPaused
from protocol.usage import Usage
from tests.support.deciders import Approver, payer, results, statuses
from tests.support.handoffs import always, asked_of, named, play_all, transfer
from tests.support.play import event_of
from tests.support.scripts import Bench
from tests.support.specs import APPROVE, DECLINE, Answers


def test_the_window_is_the_runs() -> None:
    """N4, G2: rounds before and after the hand-off fill one window; the gate is the first agent's."""
    bench = Bench()
    gate = Answers(APPROVE, DECLINE)
    b = named("b", always(), bench.tool(), max_tool_iterations=1)
    a = named("a", [transfer()], handoff(b), max_tool_iterations=2, continuation=gate)
    played = play_all(a, b)

    assert [(2, 2), (2, 4)] == [(request.max_iterations, request.total_iterations) for request in gate.asked]
    assert ({"t": 3}, "final", "tool_iterations") == (bench.runs, played.result.text, played.result.stopped_by)


def test_a_due_final_call_is_the_targets() -> None:
    """N4, F3: model, system and tools of the target, the instruction of the run."""
    b = named("b", ["from b"], Bench().tool("u"), system="You are b.", tool_iteration_limit_finalization="b's")
    a = named("a", [transfer()], handoff(b), max_tool_iterations=1, tool_iteration_limit_finalization="Sum up.")
    played = play_all(a, b)
    (final,) = asked_of(b)

    assert ("from b", "model", "tool_iterations") == (
        played.result.text,
        played.result.finalized,
        played.result.stopped_by,
    )
    assert ("You are b.", ("u",), "none", "Sum up.") == (final.system, final.tools, final.tool_choice, final.tail)
    assert ["handed_off", "limit_reached", "finalizing"] == [
        kind for kind in played.types if kind in {"handed_off", "limit_reached", "finalizing"}
    ]
    assert 1 == len(played.all(Finalizing))


def test_the_last_call_of_the_run_is_the_targets() -> None:
    """N4, B2: `max_llm_calls` with its finalization holds over the hand-off."""
    b = named("b", always(), Bench().tool())
    a = named("a", [transfer()], handoff(b), max_llm_calls=3, llm_call_limit_finalization="")
    played = play_all(a, b)

    assert ("final", "llm_calls", 3) == (
        played.result.text,
        played.result.stopped_by,
        played.result.counters.llm_calls,
    )
    assert [True, False] == [asked.tools_on for asked in asked_of(b)]


def test_conditions_are_the_runs() -> None:
    """N4, S2: they are asked after the round of the hand-off, and go on counting after it."""
    seen: list[int] = []

    def look(state: StopState) -> None:
        seen.append(len(state.steps))

    b = named("b", always(), Bench().tool(), stop_when=[has_tool_call("t")])
    a = named("a", [transfer()], handoff(b), stop_when=[look, max_steps(3)])
    played = play_all(a, b)
    other = named("b", [])
    stopped = play_all(named("a", [transfer()], handoff(other), stop_when=[has_tool_call("transfer_to_b")]), other)

    assert ("stop_condition", [1, 2, 3]) == (played.result.stopped_by, seen)
    assert ("stop_condition", 1) == (stopped.result.stopped_by, len(stopped.result.steps))


def test_hooks_are_the_acting_agents() -> None:
    """N4: each agent's own hooks see its own steps."""
    seen: list[str] = []

    def hook(name: str) -> Any:
        def prepare(state: StepState) -> None:
            seen.append(f"{name} prepares {state.step_number}")

        return prepare

    def around(name: str) -> Any:
        async def hook(call: Any, proceed: Any) -> Any:
            seen.append(f"around of {name}: {call.name}")
            return await proceed()

        return hook

    def check(text: str) -> str | None:
        seen.append(f"b checks {text}")
        return None

    bench = Bench()
    b = named(
        "b",
        [reply("", call("u", {})), "from b"],
        bench.tool("u"),
        prepare_step=hook("b"),
        around_tool=around("b"),
        check_answer=check,
    )
    turn = reply("", call("transfer_to_b", {}), call("t", {}))
    a = named(
        "a",
        [turn],
        bench.tool("t"),
        handoff(b),
        prepare_step=hook("a"),
        around_tool=around("a"),
        check_answer=lambda text: "a complains",
    )
    played = play_all(a, b)

    assert [
        "a prepares 0",
        "around of a: t",
        "b prepares 1",
        "around of b: u",
        "b prepares 2",
        "b checks from b",
    ] == seen
    assert "from b" == played.result.text


def test_what_a_hook_kept_of_the_system_goes_with_its_agent() -> None:
    """N4, H2: the system is the target's; messages and custom data that a hook keeps are the run's."""

    def prepare(state: StepState) -> StepOverrides:
        return StepOverrides(system="kept by a's hook", custom_data="carried", messages=state.messages)

    seen: list[Any] = []

    def look(state: StepState) -> None:
        seen.append(state.custom_data)

    b = named("b", ["from b"], system="You are b.", prepare_step=look)
    a = named("a", [transfer()], handoff(b), system="You are a.", prepare_step=prepare)
    play_all(a, b)

    assert ["kept by a's hook"] == [asked.system for asked in asked_of(a)]
    assert (["You are b."], ["carried"]) == ([asked.system for asked in asked_of(b)], seen)


def test_tool_settings_are_the_targets() -> None:
    """N4: timeouts and parallelism of the acting agent hold."""
    bench = Bench()
    turn = reply("", call("u", {}, id="y"), call("u", {}, id="z"))
    b = named("b", [turn, "from b"], bench.tool("u", seconds=4), tool_timeout_seconds=5, max_parallel_tools=1)
    a = named("a", [transfer()], handoff(b), tool_timeout_seconds=1)
    played = play_all(a, b)

    assert ({"x": "ok", "y": "ok", "z": "ok"}, 8.0) == (statuses(played), played.seconds)


def test_what_a_cannot_do_b_can_and_the_other_way_round() -> None:
    """N4, H3: the tools of the agent that handed over are gone."""
    bench = Bench()
    b = named("b", [reply("", call("t", {}, id="y")), "from b"], bench.tool("u"))
    a = named("a", [transfer()], bench.tool("t"), handoff(b))
    played = play_all(a, b)

    assert ("error", {}) == (statuses(played)["y"], bench.runs)


def test_a_forced_choice_of_the_target_holds_for_it() -> None:
    """N4, H3: what the first agent's model has obeyed does not release the second's."""
    bench = Bench()
    b = named("b", [reply("", call("u", {})), "from b"], bench.tool("u"), tool_choice="required")
    a = named("a", [transfer()], handoff(b), tool_choice="required")
    play_all(a, b)

    assert ["required"] == [asked.tool_choice for asked in asked_of(a)]
    assert ["required", "auto"] == [asked.tool_choice for asked in asked_of(b)]


@pytest.mark.parametrize("whose", ["a", "b"])
def test_approvals_of_the_targets_tools(whose: str) -> None:
    """N4, T8: the acting agent's provider is asked, with its deadline; the first agent's need not be there."""
    pay, paid = payer()
    of_b = Approver(y=deny("b says no"))
    b = named(
        "b", [reply("", call("pay", {"n": 1}, id="y")), "from b"], pay, approval=of_b, approval_timeout_seconds=30
    )
    options: dict[str, Any] = {"approval": Approver()} if whose == "a" else {}
    played = play_all(named("a", [transfer()], handoff(b), **options), b)

    assert ({"x": "ok", "y": "denied"}, [], 1) == (statuses(played), paid, len(of_b.asked))
    assert 30.0 == played.only(ApprovalRequired).expires_in_seconds


def test_usage_and_cost_are_the_runs() -> None:
    """N4: one account over both agents, each call at its own model's price."""

    class Prices:
        def cost(self, model: str, usage: Usage) -> float | None:
            return {"a-model": 1.0, "b-model": 10.0}[model] * usage.total_tokens

        def estimate(self, model: str, *, input_tokens: int, output_tokens: int) -> float | None:
            return 0.0

    usage = Usage(10, 0, 0, 1, 0, True)
    b = named("b", [reply("from b", usage=usage)])
    first = reply("", call("transfer_to_b", {}), usage=usage)
    a = named("a", [first], handoff(b), prices=Prices())
    played = play_all(a, b)

    assert (22, 121.0) == (played.result.usage.total_tokens, played.result.cost)


def test_steering_reaches_the_target() -> None:
    """N4, M3: what waits at the boundary of the hand-off is said to the agent that goes on."""

    async def act(run: Run) -> None:
        await trio.sleep(1)
        run.steer("hurry")

    b = named("b", ["from b"])
    turn = reply("", call("transfer_to_b", {}), call("t", {}))
    play_all(named("a", [turn], Bench().tool(seconds=3), handoff(b)), b, act=act)

    assert ["go", "hurry"] == asked_of(b)[0].texts


@pytest.mark.parametrize("how", ["stop run", "ends run", "stop"])
def test_a_run_that_ends_with_the_turn_is_not_handed_over(how: str) -> None:
    """N4, T6, M2: the hand-off is answered, and no further model is asked."""
    b = named("b", ["from b"])

    async def body() -> str:
        await trio.sleep(2)
        if how == "stop run":
            raise StopRun("end")
        return "bye"

    async def act(run: Run) -> None:
        if how == "stop":
            await trio.sleep(1)
            run.stop()

    ending = tool(body, name="t", description="T.", ends_run=how == "ends run")
    turn = reply("", call("transfer_to_b", {}, id="x"), call("t", {}, id="y"))
    played = play_all(named("a", [turn], ending, handoff(b)), b, act=act)

    assert ("caller" if how == "stop" else "tool", []) == (played.result.stopped_by, asked_of(b))
    assert {"x": "ok", "y": "ok"} == statuses(played)


def test_a_pause_of_the_same_turn_comes_before_the_hand_off() -> None:
    """N4, T7: the caller's own calls are the turn's other calls too."""
    ask = external_tool("ask", "Ask.", {"type": "object", "properties": {}})
    b = named("b", ["from b"])
    turn = reply("", call("transfer_to_b", {}, id="x"), call("ask", {}, id="y"))

    async def act(run: Run) -> None:
        await event_of(run, RunPaused)
        run.submit({"y": "yes"})

    played = play_all(named("a", [turn], ask, handoff(b)), b, act=act)

    assert ({"x": ("ok", "Handed over to b."), "y": ("ok", "yes")}, "from b") == (results(played), played.result.text)
    assert played.types.index("run_resumed") < played.types.index("handed_off")


def test_a_hand_off_is_no_body() -> None:
    """B4, H7: it uses up no tool call and meets no `around_tool`."""
    met: list[str] = []

    async def around(call: Any, proceed: Any) -> Any:
        met.append(call.name)
        return await proceed()

    b = named("b", ["from b"])
    turn = reply("", call("t", {}, id="y"), call("transfer_to_b", {}, id="x"))
    played = play_all(named("a", [turn], Bench().tool(), handoff(b), max_tool_calls=1, around_tool=around), b)

    assert (["t"], "from b", {"x": "ok", "y": "ok"}) == (met, played.result.text, statuses(played))
