"""Settings that cannot be right: refused where they are made, with the field, what it was, and what would be right."""

from __future__ import annotations

import math
from typing import Any

import pytest

from actors import AgentSpec, Limits, is_step_count, remote
from protocol.errors import SpecError
from protocol.events import RunStarted
from protocol.turns import UserMessage
from tests.support.play import Stage, perform, play
from tests.support.scripts import Bench
from tests.support.specs import agent
from tests.support.strict import StrictModel

NO_LIMIT = "must be an integer >= 1, or None for no limit; it is"
SECONDS = "must be a number above 0; it is"


@pytest.mark.parametrize("value", [0, -1, 1.0, True, "3", math.inf], ids=repr)
@pytest.mark.parametrize("make", [AgentSpec, Limits], ids=["AgentSpec", "Limits"])
@pytest.mark.parametrize("field", ["max_tool_iterations", "max_llm_calls"])
def test_limits_below_one_and_of_other_kinds(make: Any, field: str, value: object) -> None:
    """Section 6: a limit is an integer >= 1 or `None`, else `ValueError` at construction."""
    extra = {"model": StrictModel([])} if make is AgentSpec else {}
    with pytest.raises(SpecError) as caught:
        make(**extra, **{field: value})

    assert f"{field} {NO_LIMIT} {value!r}" == str(caught.value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("field", ["max_tool_iterations", "max_llm_calls"])
def test_limits_of_one_and_none(field: str) -> None:
    """Section 6: one is the least, `None` is no limit."""
    assert [1, None] == [getattr(Limits(**{field: value}), field) for value in (1, None)]


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ({"max_steps": 0}, f"max_steps {NO_LIMIT} 0"),
        ({"max_grant": 0}, f"max_grant {NO_LIMIT} 0"),
        ({"max_parallel_tools": 0}, f"max_parallel_tools {NO_LIMIT} 0"),
        ({"max_tokens": -5}, f"max_tokens {NO_LIMIT} -5"),
        ({"max_reasks": -1}, "max_reasks must be an integer >= 0; it is -1"),
        ({"max_reasks": True}, "max_reasks must be an integer >= 0; it is True"),
        ({"max_tool_output_chars": 0}, "max_tool_output_chars must be an integer >= 1; it is 0"),
        ({"max_tool_output_chars": None}, "max_tool_output_chars must be an integer >= 1; it is None"),
        ({"continuation_timeout_seconds": 0}, f"continuation_timeout_seconds {SECONDS} 0"),
        ({"continuation_timeout_seconds": "5"}, f"continuation_timeout_seconds {SECONDS} '5'"),
        ({"continuation_timeout_seconds": True}, f"continuation_timeout_seconds {SECONDS} True"),
        ({"tool_timeout_seconds": -0.5}, f"tool_timeout_seconds {SECONDS} -0.5"),
        ({"callback_timeout_seconds": None}, f"callback_timeout_seconds {SECONDS} None"),
        ({"callback_timeout_seconds": math.nan}, f"callback_timeout_seconds {SECONDS} nan"),
        ({"cancel_grace_seconds": None}, f"cancel_grace_seconds {SECONDS} None"),
        ({"continuation_on_timeout": "ask"}, "continuation_on_timeout must be 'decline' or 'approve'; it is 'ask'"),
        ({"continuation": "remote"}, "continuation must be a function, a policy or remote(); it is 'remote'"),
        (
            {"tool_iteration_limit_finalization": True},
            "tool_iteration_limit_finalization must be None (off), '' (the built-in text), a text, or a function; it is True",
        ),
        (
            {"llm_call_limit_finalization": 5},
            "llm_call_limit_finalization must be None (off), '' (the built-in text), a text, or a function; it is 5",
        ),
        ({"finalization_retry": "yes"}, "finalization_retry must be True or False; it is 'yes'"),
        ({"system": 5}, "system must be a text or None; it is 5"),
        ({"temperature": "hot"}, "temperature must be a number or None; it is 'hot'"),
        ({"name": " "}, "name must be a text that is not empty; it is ' '"),
        ({"name": 5}, "name must be a text that is not empty; it is 5"),
        ({"tools": None}, "tools must be a sequence of tools or functions; it is None"),
        ({"tools": "ls"}, "tools must be a sequence of tools or functions; it is 'ls'"),
        ({"stop_when": []}, "stop_when=[] has no condition: to run until the model is done, say [is_loop_finished()]"),
        ({"stop_when": "never"}, "stop_when must be a sequence of conditions; it is 'never'"),
        ({"stop_when": [3]}, "stop_when: 3 is no condition: it must be callable with a StopState"),
        ({"model": "gpt"}, "model must be a model, such as OpenAIChat('...') or Planner(); it is 'gpt'"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_setting_that_cannot_be_right(setting: dict[str, Any], told: str) -> None:
    """The error names the setting, what it was, and what would be right."""
    with pytest.raises(SpecError) as caught:
        AgentSpec(**{"model": StrictModel([]), **setting})

    assert told == str(caught.value)


def test_a_condition_without_its_list_is_named() -> None:
    """S1: `stop_when` is a sequence: one condition alone is not."""
    with pytest.raises(SpecError, match="stop_when must be a sequence of conditions; it is <function"):
        AgentSpec(model=StrictModel([]), stop_when=is_step_count(3))  # type: ignore[arg-type]


def test_a_model_that_cannot_be_called() -> None:
    """A function is no model: its `turn` is missing."""
    with pytest.raises(SpecError, match="model must be a model"):
        AgentSpec(model=print)  # type: ignore[arg-type]


def test_two_tools_of_one_name() -> None:
    """Tools of one name cannot be told apart: the error names it."""
    bench = Bench()
    tools = [bench.tool("look"), bench.tool("find"), bench.tool("look")]
    with pytest.raises(SpecError) as caught:
        AgentSpec(model=StrictModel([]), tools=tools)

    assert "tools: look is there more than once; every tool needs a name of its own" == str(caught.value)


@pytest.mark.parametrize("prompt", ["", "  \n\t", None, 5, b"go"], ids=repr)
def test_an_empty_prompt_is_refused_and_changes_nothing(prompt: Any) -> None:
    """A prompt without a visible character is the caller's mistake: no run begins, nothing is stored."""

    async def scene(stage: Stage) -> int:
        one = await stage.spawn(agent(["never"]))
        with pytest.raises(SpecError) as caught:
            async with one.run(prompt):
                raise AssertionError

        assert f"the prompt is empty: say what the agent should do; it is {prompt!r}" == str(caught.value)
        assert ("idle", None) == (one.statistics().state, one.statistics().run)
        return len(one.messages)

    assert 0 == perform(scene)


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ({"if_busy": "wait"}, "if_busy must be 'refuse' or 'queue'; it is 'wait'"),
        ({"limits": {"max_llm_calls": 2}}, "limits must be a Limits(...); it is {'max_llm_calls': 2}"),
        ({"stop_when": []}, "stop_when=[] has no condition"),
        ({"continuation": 5}, "continuation must be a function, a policy or remote(); it is 5"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_a_run_is_given_is_checked_before_it_begins(option: dict[str, Any], told: str) -> None:
    """R6: options of one run are checked as the agent's are, and the agent stays free for the next run."""

    async def scene(stage: Stage) -> str:
        one = await stage.spawn(agent(["yes"], continuation=remote()))
        with pytest.raises(SpecError) as caught:
            async with one.run("go", **option):
                raise AssertionError

        assert told in str(caught.value)
        return (await stage.play(one)).result.text

    assert "yes" == perform(scene)


def test_surrogates_in_prompt_and_system_are_replaced() -> None:
    """R3: a prompt and a system prompt with lone surrogates are sent and stored as text that encodes as UTF-8."""
    played = play(agent(["yes"], system="be \udc80 kind"), "go \ud800 on")

    assert (UserMessage("go \ufffd on"), "be \ufffd kind") == (played.asked[0].messages[0], played.asked[0].system)
    assert "go \ufffd on" == played.only(RunStarted).prompt
