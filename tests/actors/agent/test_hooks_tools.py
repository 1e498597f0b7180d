"""Hooks and tools: what is hidden cannot run, what is forced is forced once, and the final call has none (H3, F4)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from actors import CallConfig, ForceTool, StepOverrides, StepState
from actors.models.scripted import ScriptedTurn, call, reply
from actors.tools import Tool
from protocol.errors import HookError, SpecError
from protocol.model import Profile, ToolChoice
from protocol.turns import Turn
from tests.support.play import Played, play
from tests.support.scripts import Bench, calls_while_on
from tests.support.specs import agent
from tests.support.strict import StrictModel


def calling(*names: str) -> list[ScriptedTurn]:
    """A turn for each name that calls it with a fresh id (a, b, ...), then an answer."""
    return [*[reply("", call(name, {}, id=chr(97 + n))) for n, name in enumerate(names)], "end"]


def at(step: int, overrides: StepOverrides, *, later: bool = False) -> Any:
    def hook(state: StepState) -> StepOverrides | None:
        chosen = state.step_number >= step if later else state.step_number == step
        return overrides if chosen else None

    return hook


def test_a_call_to_a_tool_hidden_from_the_second_step_on_is_answered_and_not_run() -> None:
    """Case PRE-01, H3: the tool set of the request is the tool set of the execution."""
    bench = Bench()
    hook = at(1, StepOverrides(active_tools=[]), later=True)
    played = play(agent(calling("t", "t"), bench.tool(), prepare_step=hook))
    second = played.result.steps[1].results[0]

    assert {"t": 1} == bench.runs
    assert ("b", "error", False) == (second.call, second.status, second.entered)
    assert "The tool t is not available in this step" in second.text
    assert ([("t",), (), ()], "end") == ([asked.tools for asked in played.asked], played.result.text)


def hide_by_call(config: CallConfig) -> CallConfig:
    return config.replace(tools=[tool for tool in config.tools if tool.name != "hidden"])


HIDING: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "prepare_call": ({"prepare_call": hide_by_call}, ("t",)),
    "active_tools": ({"prepare_step": at(0, StepOverrides(active_tools=["t"]))}, ("t",)),
    "tools": ({"prepare_step": at(0, StepOverrides(tools=[Bench().tool()]))}, ("t",)),
    "choice none": ({"prepare_step": at(0, StepOverrides(tool_choice="none"))}, ("hidden", "t")),
    "own choice none": ({"tool_choice": "none"}, ("hidden", "t")),
}


@pytest.mark.parametrize("how", HIDING)
def test_what_is_hidden_cannot_run(how: str) -> None:
    """H3: however it was hidden, the call gets an error that says what is there, and its siblings run if they may."""
    options, offered = HIDING[how]
    bench = Bench()
    script = [reply("", call("hidden", {}, id="a")), "end"]
    played = play(agent(script, bench.tool("hidden"), bench.tool(), **options))
    result = played.result.steps[0].results[0]

    assert {} == bench.runs
    assert ("error", "end") == (result.status, played.result.text)
    assert f"Available are: {'none' if 'none' in how else 't'}." in result.text
    assert offered == played.asked[0].tools


def test_a_tool_that_a_hook_brings_in_runs_in_that_step_alone() -> None:
    """H2, H3: a tool of a hook is offered and run as any other, and is gone in the next step."""
    bench = Bench()
    hook = at(0, StepOverrides(tools=[bench.tool("extra")]))
    played = play(agent(calling("extra", "extra"), bench.tool(), prepare_step=hook))
    first, second = (step.results[0] for step in played.result.steps[:2])

    assert {"extra": 1} == bench.runs
    assert (("ok", ("extra",)), ("error", ("t",))) == (
        (first.status, played.asked[0].tools),
        (second.status, played.asked[1].tools),
    )


def test_a_hooks_tool_takes_the_place_of_one_with_its_name() -> None:
    """H3: what was offered is what runs, also where the agent has a tool of that name."""
    hook = at(0, StepOverrides(tools=[Bench().tool(value="the hook's")]))
    played = play(agent(calling("t", "t"), Bench().tool(value="the agent's"), prepare_step=hook))

    assert ["the hook's", "the agent's"] == [step.results[0].text for step in played.result.steps[:2]]


def choices(played: Played) -> list[ToolChoice]:
    return [asked.tool_choice for asked in played.asked]


T = ForceTool("t")
AUTO: ToolChoice = "auto"
FORCED: dict[str, tuple[ToolChoice, Iterable[ScriptedTurn], list[ToolChoice]]] = {
    "required": ("required", calling("t", "t", "t"), ["required", AUTO, "required", AUTO]),
    "required, any tool": ("required", calling("s", "t"), ["required", AUTO, "required"]),
    "a tool": (T, calling("t", "s"), [T, AUTO, T]),
    "a tool, another called": (T, calling("s", "t", "s"), [T, T, AUTO, T]),
    "both called": (T, [reply("", call("s", {}, id="a"), call("t", {}, id="b")), "end"], [T, AUTO]),
    "not obeyed": (T, ["", "end"], [T, T]),
}


@pytest.mark.parametrize("name", FORCED)
def test_a_choice_that_a_hook_forces_falls_back_for_the_step_after_it_was_obeyed(name: str) -> None:
    """H3: a hook that forces a tool at every step does not keep the model from answering."""
    choice, script, expected = FORCED[name]
    bench = Bench()
    hook = at(0, StepOverrides(tool_choice=choice), later=True)
    played = play(agent(script, bench.tool(), bench.tool("s"), prepare_step=hook))

    assert (expected, "end") == (choices(played), played.result.text)


@pytest.mark.parametrize("choice", ["required", T])
def test_the_agents_own_forced_choice_holds_until_it_was_obeyed(choice: ToolChoice) -> None:
    """H3: the setting forces the first call, and no later one."""
    played = play(agent(calling("t", "t", "t"), Bench().tool(), tool_choice=choice))

    assert ([choice, AUTO, AUTO, AUTO], "end") == (choices(played), played.result.text)


def test_the_agents_own_forced_choice_waits_for_a_model_that_does_not_obey() -> None:
    """H3: a re-ask is forced again."""
    played = play(agent(["", *calling("t")], Bench().tool(), tool_choice="required"))

    assert ["required", "required", AUTO] == choices(played)


def test_required_without_a_tool_is_auto() -> None:
    """H3: where a hook hides all tools there is nothing that could be required, and servers refuse the request."""
    hook = at(0, StepOverrides(active_tools=[], tool_choice="required"))
    played = play(agent(["end"], Bench().tool(), prepare_step=hook))

    assert ([AUTO], "end") == (choices(played), played.result.text)


def test_forcing_a_hidden_tool_is_the_hooks_error() -> None:
    """H3: a tool that the step does not offer cannot be forced; the error says which are offered."""
    bench = Bench()
    hook = at(0, StepOverrides(active_tools=["s"], tool_choice=T))
    played = play(agent(calling("t"), bench.tool(), bench.tool("s"), prepare_step=hook))

    assert isinstance(played.error, HookError)
    assert "tool_choice forces 't', which the step does not offer; it offers s" in str(played.error)
    assert () == played.asked


def test_a_hidden_tool_may_be_forced_in_a_step_that_falls_back() -> None:
    """H3: the step after an obeyed choice is `auto`, whatever the hook forces then."""
    bench = Bench()

    def hook(state: StepState) -> StepOverrides:
        return StepOverrides(tool_choice=T, active_tools=["s"] if state.step_number == 1 else ["t"])

    played = play(agent(calling("t"), bench.tool(), bench.tool("s"), prepare_step=hook))

    assert ([T, AUTO], "end") == (choices(played), played.result.text)


def test_the_agent_cannot_force_a_tool_that_it_has_not() -> None:
    """H3: told when the settings are made, unless a hook may bring the tool in."""
    bench = Bench()
    with pytest.raises(SpecError, match="tool_choice forces 'x', which is no tool; there are t"):
        agent(["end"], bench.tool(), tool_choice=ForceTool("x"))
    hook = at(0, StepOverrides(tools=[bench.tool("x")]), later=True)
    played = play(agent(calling("x"), bench.tool(), tool_choice=ForceTool("x"), prepare_step=hook))

    assert ({"x": 1}, "end") == (bench.runs, played.result.text)


def turns_tools_on(extra: Tool) -> dict[str, Any]:
    def by_call(config: CallConfig) -> CallConfig:
        return config.replace(tools=[*config.tools, extra])

    forced = StepOverrides(tools=[extra], tool_choice=ForceTool("extra"))
    required = StepOverrides(tool_choice="required")
    return {
        "prepare_call": {"prepare_call": by_call},
        "prepare_step": {"prepare_step": at(1, forced)},
        "required": {"prepare_step": at(1, required)},
    }


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("how", ["prepare_call", "prepare_step", "required"])
def test_tools_are_off_in_the_final_call_whatever_a_hook_does(how: str, keeps: bool) -> None:
    """F4: the final call has its tools off after every hook has run; a call in its reply is neither run nor stored."""
    bench = Bench()
    script = [reply("", call("t", {}, id="a")), reply("So far.", call("extra", {}, id="b"), call("t", {}, id="c"))]
    model = StrictModel(script, profile=Profile(keeps_tools_when_off=keeps, reports_sending=True))
    options = turns_tools_on(bench.tool("extra"))[how]
    spec = agent(model, bench.tool(), max_tool_iterations=1, tool_iteration_limit_finalization="", **options)
    played = play(spec)
    final = model.asked[-1]

    assert {"t": 1} == bench.runs
    assert ("none", False) == (final.tool_choice, final.tools_on)
    assert keeps == bool(final.tools)
    assert ("So far.", "model") == (played.result.text, played.result.finalized)


def test_provider_options_do_not_reach_into_the_final_calls_tools() -> None:
    """F4: the request itself says what a tool choice is; options stand beside it."""
    seen: list[Any] = []

    def follow(request: Any) -> Turn | str:
        seen.append((request.tool_choice, dict(request.provider_options)))
        return calls_while_on()(request)  # type: ignore[return-value]

    spec = agent(
        follow,
        Bench().tool(),
        provider_options={"seed": 1},
        max_tool_iterations=1,
        tool_iteration_limit_finalization="",
    )
    play(spec)

    assert [("auto", {"seed": 1}), ("none", {"seed": 1})] == seen
