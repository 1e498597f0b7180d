"""Whatever a run meets, the rules hold: random worlds, played in virtual time, held against what really happened.

`ONWARD_SWEEP=full` draws thousands of them, and cuts the chosen ones at every step of the scheduler.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import attrs
import pytest
from hypothesis import HealthCheck, example, given, settings

from protocol.events import Event, ToolFinished, ToolStarted

from .drawing import worlds
from .judge import faults_of
from .play import act_out, play
from .truth import Truth
from .world import Act, Approver, Call, Disturbance, Does, Gate, Hooks, Say, Settings, World

FULL = os.environ.get("ONWARD_SWEEP") == "full"
CALL = Say(calls=(Call(),))
CUT, CUT_CALL = Say("text", finish="length"), Say("text", calls=(Call(args="cut"),), finish="length")
THREE = Say("text", calls=(Call(0), Call(1), Call(2)))
USUAL: tuple[Act, ...] = ("nursery", "leave", "cancel", "steer")
CHOSEN = {
    "a sub-agent": World(turns=(CALL,), tools=(Does("agent"),), child=World(turns=(CALL,), tools=(Does(),))),
    "one agent for two tasks": World(
        turns=(Say(calls=(Call(), Call())),),
        tools=(Does("agent"),),
        shared_child=True,
        child=World(
            turns=(Say("text", calls=(Call(),)), CALL),
            tools=(Does(approval=True),),
            settings=Settings(max_tool_iterations=1),
            gate=Gate(answers=("approve",)),
            approver=Approver(answers=("edit",)),
        ),
    ),
    "all that is asked": World(
        turns=(THREE,),
        again=True,
        tools=(Does(), Does(approval=True), Does("external")),
        settings=Settings(max_tool_iterations=1, max_llm_calls=5, llm_final="slow"),
        gate=Gate("function", answers=("some", "approve"), seconds=1),
        approver=Approver("function", answers=("edit", "deny", "approve"), seconds=1),
    ),
    "hooks and time": World(
        turns=(THREE,),
        again=True,
        tools=(Does(seconds=1), Does(approval=True), Does("stubborn", seconds=1)),
        settings=Settings(
            max_tool_iterations=2, max_tool_calls=4, tool_final="", max_parallel_tools=1, wall_clock_seconds=5.0
        ),
        hooks=Hooks(
            around=("change", "alter", "swallow", "pass", "deny"), step=("hide", "prune"), continues=1, rejects=1
        ),
    ),
    "pieces": World(
        turns=(CUT, CUT_CALL, Say("text", calls=(Call(),)), Say("text", finish="paused"), CUT),
        settings=Settings(automatic_continuation=True, continues_text="user_turn", bigger_cap=True, max_llm_calls=9),
    ),
    "compacted": World(
        turns=(Say("text", calls=(Call(), Call())), CUT_CALL, CALL, Say(fails="overflow")),
        again=True,
        tools=(Does(seconds=1), Does("odd"), Does("external")),
        settings=Settings(max_llm_calls=14, llm_final="", wall_clock_seconds=9.0),
        hooks=Hooks(compacts=("raise", "broken", "helper", "slow", "summarise", "trim") * 3),
    ),
    "all limits": World(
        turns=(THREE,),
        again=True,
        tools=(Does("odd"), Does(), Does("agent")),
        settings=Settings(
            max_llm_calls=4,
            max_tool_calls=3,
            max_total_tokens=1000,
            max_cost=1.0,
            budget_final="slow",
            stop_final="",
            stop_when=("third",),
        ),
        gate=Gate(
            answers=("approve", "grant"), gate_on=("llm_calls", "tool_calls", "total_tokens", "cost", "wall_clock")
        ),
        child=World(turns=(CALL,), settings=Settings(max_llm_calls=2, llm_final="slow")),
    ),
}


@pytest.mark.slow
@settings(
    max_examples=4000 if FULL else 300,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    report_multiple_bugs=False,
)
@example(World(turns=(CALL,), again=True, disturbances=(Disturbance(act="leave"),)))
@example(World(turns=(Say(calls=(Call(), Call(), Call())),), tools=(Does("cancel"),)))
@example(World(turns=(CALL,), settings=Settings(flatten=True), hooks=Hooks(step=("nothing", "hide"))))
@example(World(turns=(CALL,), settings=Settings(flatten=True), hooks=Hooks(call=("nothing", "hide"))))
@example(
    World(
        turns=(Say("text", calls=(Call(),), finish="content_filter"),),
        settings=Settings(max_llm_calls=1, llm_final=""),
    )
)
@example(World(turns=(CALL,), tools=(Does("agent"),), settings=Settings(max_cost=0.05), child=World()))
@example(World(turns=(CALL,), settings=Settings(stop_final="", stop_when=("called",))))
@example(World(turns=(CALL,), tools=(Does("external"),)))
@example(World(turns=(CUT,), again=True, settings=Settings(automatic_continuation=True, max_llm_calls=3, llm_final="")))
@example(World(turns=(CUT_CALL, CALL), settings=Settings(bigger_cap=True, max_llm_calls=2, llm_final="")))
@example(World(turns=(CUT, Say("broken", fails="after")), settings=Settings(automatic_continuation=True)))
@given(worlds)
def test_the_rules_hold(world: World) -> None:
    """No turn, tool, setting or disturbance breaks a rule of the loop, and the agent takes the next run."""
    assert [] == play(world)


@pytest.mark.slow
@pytest.mark.parametrize("name", CHOSEN)
def test_a_disturbance_at_any_step(name: str) -> None:
    """A run may be cut, or spoken to, between any two steps of the scheduler: no rule breaks, and nothing is left."""
    world = CHOSEN[name]
    acts: tuple[Act, ...] = (*USUAL, "stop", "stop_agent") if FULL else USUAL
    found = {
        (act, step): faults
        for act in acts
        for step in range(1, 260, 1 if FULL else 4)
        if (faults := play(attrs.evolve(world, disturbances=(Disturbance(step, act),))))
    }

    assert {} == found


def without(events: list[Event], kind: type[Event]) -> None:
    events.remove(next(event for event in events if isinstance(event, kind)))


def unseen_body(truth: Truth, events: list[Event]) -> None:
    without(events, ToolStarted)


def untrue_status(truth: Truth, events: list[Event]) -> None:
    truth.entered[0].how = "raised"


def other_arguments(truth: Truth, events: list[Event]) -> None:
    truth.entered[0].arguments = {"n": 20_001}


def hidden_tool(truth: Truth, events: list[Event]) -> None:
    truth.asked[0].offered = frozenset()


def secret_request(truth: Truth, events: list[Event]) -> None:
    truth.asked.append(truth.asked[0])


def lost_result(truth: Truth, events: list[Event]) -> None:
    without(events, ToolFinished)


def other_answer(truth: Truth, events: list[Event]) -> None:
    truth.results[0] = attrs.evolve(truth.results[0], text="made up")


def slow_end(truth: Truth, events: list[Event]) -> None:
    truth.cut_at = truth.ended_at - 60


def decided_twice(truth: Truth, events: list[Event]) -> None:
    truth.accepted[next(iter(truth.accepted))] += 1


@pytest.mark.parametrize(
    "spoil",
    [
        unseen_body,
        untrue_status,
        other_arguments,
        hidden_tool,
        secret_request,
        lost_result,
        other_answer,
        slow_end,
        decided_twice,
    ],
)
def test_the_judge_sees_a_fault(spoil: Callable[[Truth, list[Event]], None]) -> None:
    """The judge is no rubber stamp: a world that is right becomes a fault when its record is spoilt."""
    world = World(
        turns=(CALL, CALL), settings=Settings(max_tool_iterations=1), gate=Gate(answers=("approve", "approve"))
    )
    truth, events, messages = act_out(world)
    before = faults_of(truth, events, messages)
    spoil(truth, events)

    assert [] == before
    assert [] != faults_of(truth, events, messages)


def test_a_world_prints_as_it_is_written() -> None:
    """What a failure prints can be pasted as an example."""
    names = {name: value for name, value in globals().items() if isinstance(value, type)}

    assert list(CHOSEN.values()) == [eval(repr(world), names) for world in CHOSEN.values()]
