"""Which conditions a run has: the agent's, its own, or the default bound (S1, S5, R6)."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import attrs
import pytest

from actors import (
    AgentSpec,
    Limits,
    StopState,
    is_loop_finished,
    is_step_count,
    max_steps,
)
from actors.models.scripted import call, reply
from protocol.errors import SpecError, StopConditionError
from protocol.events import StepStarted
from protocol.usage import UNKNOWN_USAGE, Usage
from tests.support.ids import shown
from tests.support.play import play
from tests.support.scripts import Bench, calls_until
from tests.support.specs import agent
from tests.support.strict import StrictModel

CALL = reply("", call("t", {}, id="a"))


@attrs.frozen
class Prices:
    """A table with one price for everything: a cent a call."""

    def cost(self, model: str, usage: Usage) -> float | None:
        return 0.01

    def estimate(self, model: str, *, input_tokens: int, output_tokens: int) -> float | None:
        return 0.01


def test_a_condition_sees_usage_and_cost_with_the_step_in_them() -> None:
    """S1: both count the step just finished; an unknown cost is `None`, never 0."""
    seen: list[tuple[int, bool, float | None]] = []

    def look(state: StopState) -> None:
        seen.append((state.usage.total_tokens, state.usage.complete, state.cost))

    used = Usage(10, 0, 0, 5, 0, True)
    script = [reply("", call("t", {}, id=i), usage=used) for i in "ab"]
    play(agent([*script, "done"], Bench().tool(), stop_when=[look], prices=Prices()))
    play(agent([CALL, "done"], Bench().tool(), stop_when=[look]))

    assert [(15, True, 0.01), (30, True, 0.02), (0, UNKNOWN_USAGE.complete, None)] == seen


def test_the_conditions_of_a_run_take_the_place_of_the_agents() -> None:
    """R6, S5: for that run alone, and over `max_steps` too."""
    spec = agent(calls_until(9), Bench().tool(), max_steps=5)

    assert "maximum number of steps (2) reached" == play(spec, stop_when=[is_step_count(2)]).result.stop_reason
    assert (
        "maximum number of steps (5) reached"
        == play(agent(calls_until(9), Bench().tool(), max_steps=5)).result.stop_reason
    )


@pytest.mark.parametrize("conditions", [[], (), "model", 3, [3], [is_step_count]], ids=shown)
def test_what_are_no_conditions_is_refused(conditions: Any) -> None:
    """S5: an empty list is an error that says how to run without a condition; what cannot be called is one too."""
    if conditions == [is_step_count]:
        played = play(agent([CALL, "never"], Bench().tool(), stop_when=conditions))
        assert type(played.error) is StopConditionError
        return
    with pytest.raises(SpecError) as caught:
        agent(["yes"], stop_when=conditions)
    with pytest.raises(SpecError):
        play(agent(["yes"]), stop_when=conditions)

    assert "stop_when" in str(caught.value)
    if conditions in ([], ()):
        assert "is_loop_finished()" in str(caught.value)


BOUNDS: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "nothing": ({}, {}, True),
    "a limit that is no bound of steps": ({"max_tool_calls": 99, "wall_clock_seconds": 9999.0}, {}, True),
    "limits of the run": ({}, {"limits": Limits(max_llm_calls=99)}, False),
    "limits of the run take away the agent's": ({"max_llm_calls": 99}, {"limits": Limits(max_tool_calls=99)}, True),
    "conditions of the run": ({}, {"stop_when": [is_loop_finished()]}, False),
    "conditions": ({"stop_when": [is_loop_finished()]}, {}, False),
    "steps": ({"max_steps": 99}, {}, False),
    "rounds": ({"max_tool_iterations": 99}, {}, False),
    "calls": ({"max_llm_calls": 99}, {}, False),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_the_default_bound_holds_where_nothing_bounds_the_steps(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """S5: twenty steps, only where neither the agent nor the run says otherwise; a cut is logged, once."""
    options, given, bounded = BOUNDS[name]
    result = play(agent(calls_until(25), Bench().tool(), **options), **given).result
    logged = [record for record in caplog.records if record.levelno == logging.WARNING]

    assert (20 if bounded else 26) == len(result.steps)
    assert ("maximum number of steps (20) reached" if bounded else None) == result.stop_reason
    assert (1 if bounded else 0) == len(logged)


def test_that_max_steps_is_ignored_is_said_once() -> None:
    """S5: where the settings are made, and not again by every run with limits of its own."""
    with pytest.warns(DeprecationWarning, match="max_steps is ignored"):
        spec = AgentSpec(
            model=StrictModel(calls_until(9)), tools=[Bench().tool()], max_steps=2, stop_when=[max_steps(3)]
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        played = play(spec, limits=Limits(max_tool_calls=50))

    assert "maximum number of steps (3) reached" == played.result.stop_reason


def test_step_numbers_count_the_finished_steps() -> None:
    """S1: zero-based, and one less than the number of steps, whatever kind of step it was."""
    seen: list[tuple[int, int]] = []

    def look(state: StopState) -> None:
        seen.append((state.step_number, len(state.steps)))

    script = ["", CALL, "one", "two"]
    spec = agent(
        script, Bench().tool(), stop_when=[look], continue_when=lambda s: "More." if len(s.steps) == 3 else None
    )
    played = play(spec)

    assert [(0, 1), (1, 2), (2, 3)] == seen
    assert [0, 1, 2, 3] == [event.step for event in played.all(StepStarted)]


def test_a_reason_that_does_not_encode_is_cleaned() -> None:
    """R3: what a condition says stands in events and results."""
    played = play(agent([CALL, "never"], Bench().tool(), stop_when=[lambda _: "\ud800!"]))

    assert "\ufffd!" == played.result.stop_reason
