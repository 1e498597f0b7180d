"""`prepare_step`: what it sees, what it changes, and for how long (H2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import pytest

from actors import AgentSpec, StepOverrides, StepState, StopState
from actors.models.scripted import Scripted, call, reply
from protocol.model import ModelRequest, Profile
from protocol.prune import prune_messages
from protocol.turns import Message, ToolMessage, UserMessage
from protocol.usage import Usage
from tests.actors.agent._step_hooks import SUMMARY, At, spec_with, three_calls
from tests.support.play import Played, play
from tests.support.scripts import Bench, calls_until
from tests.support.specs import agent

OTHER = Bench().tool("other")


def test_it_sees_where_the_run_stands() -> None:
    """H2: number, steps, messages, system, model, tools, usage, time, context and data, before every call."""
    hook = At(9, None)
    used = Usage(10, 0, 0, 5, 0, True)
    model = Scripted([reply("", call("t", {}, id="a"), usage=used), reply("done", usage=used)])
    spec = agent(model, Bench().tool(seconds=3), prepare_step=hook, system="Be exact.")
    play(spec, context={"for": "Ann"}, custom_data=7)
    first, second = hook.seen

    assert (0, None, [], [UserMessage("go")], "Be exact.", spec.model, ["t"], 0, 0.0, {"for": "Ann"}, 7) == (
        first.step_number,
        first.final,
        list(first.steps),
        list(first.messages),
        first.system,
        first.model,
        [tool.name for tool in first.tools],
        first.usage.total_tokens,
        first.elapsed_seconds,
        first.context,
        first.custom_data,
    )
    assert (1, 1, 3, 15, 3.0) == (
        second.step_number,
        len(second.steps),
        len(second.messages),
        second.usage.total_tokens,
        second.elapsed_seconds,
    )
    assert "a" == second.steps[0].results[0].call


@attrs.frozen
class Prices:
    """A table with one price for everything: a cent a call."""

    def cost(self, model: str, usage: Usage) -> float | None:
        return 0.01

    def estimate(self, model: str, *, input_tokens: int, output_tokens: int) -> float | None:
        return 0.01


def test_it_sees_the_cost_if_it_is_known() -> None:
    """H2: in US dollars with a table of prices, unknown without one."""
    priced, unpriced = At(9, None), At(9, None)
    play(agent(calls_until(1), Bench().tool(), prepare_step=priced, prices=Prices()))
    play(agent(calls_until(1), Bench().tool(), prepare_step=unpriced))

    assert [0.0, 0.01] == [state.cost for state in priced.seen]
    assert [0.0, None] == [state.cost for state in unpriced.seen]


def test_it_is_told_which_call_is_the_final_one() -> None:
    """H2: `final` is the limit that led to it."""
    hook = At(9, None)
    spec = agent(["never", "never"], prepare_step=hook, max_llm_calls=1, llm_call_limit_finalization="", name="one")
    play(spec)

    assert [("llm_calls", 1)] == [(s.final.name, s.final.max) for s in hook.seen if s.final is not None]


@attrs.frozen
class Row:
    """One field: the overrides, what of a request shows them, with and without, and whether it is kept."""

    overrides: StepOverrides
    read: Callable[[ModelRequest], object]
    with_it: object
    without: object
    kept: bool = False


ROWS = {
    "system": Row(StepOverrides(system="Be brief."), lambda r: r.system, "Be brief.", "Be exact.", kept=True),
    "no system": Row(StepOverrides(system=None), lambda r: r.system, None, "Be exact.", kept=True),
    "messages": Row(StepOverrides(messages=[SUMMARY]), lambda r: r.messages[0], SUMMARY, UserMessage("go"), kept=True),
    "tools": Row(
        StepOverrides(tools=[Bench().tool(), OTHER]), lambda r: [t.name for t in r.tools], ["t", "other"], ["t"]
    ),
    "active_tools": Row(StepOverrides(active_tools=[]), lambda r: [t.name for t in r.tools], [], ["t"]),
    "tool_choice": Row(StepOverrides(tool_choice="required"), lambda r: r.tool_choice, "required", "auto"),
    "provider options": Row(
        StepOverrides(provider_options={"seed": 2, "stop": ["x"]}),
        lambda r: r.provider_options,
        {"seed": 2, "top_p": 0.9, "stop": ["x"]},
        {"seed": 1, "top_p": 0.9},
    ),
    "temperature": Row(StepOverrides(temperature=0.0), lambda r: r.temperature, 0.0, 0.5),
    "no temperature": Row(StepOverrides(temperature=None), lambda r: r.temperature, None, 0.5),
    "max_tokens": Row(StepOverrides(max_tokens=7), lambda r: r.max_tokens, 7, 100),
    "no max_tokens": Row(StepOverrides(max_tokens=None), lambda r: r.max_tokens, None, 100),
    "nothing": Row(
        StepOverrides(),
        lambda r: (r.system, r.messages[0], r.temperature, r.max_tokens, r.provider_options, r.tool_choice),
        ("Be exact.", UserMessage("go"), 0.5, 100, {"seed": 1, "top_p": 0.9}, "auto"),
        ("Be exact.", UserMessage("go"), 0.5, 100, {"seed": 1, "top_p": 0.9}, "auto"),
    ),
}


def read_all(model: Scripted, row: Row) -> list[object]:
    return [row.read(request) for request in model.requests]


@pytest.mark.parametrize("name", ROWS)
def test_what_is_kept_and_what_holds_for_one_step(name: str) -> None:
    """H2: messages and system are kept for the run, the rest holds for one step; unset differs from `None`."""
    row = ROWS[name]
    model = three_calls()
    play(spec_with(At(1, row.overrides), model))

    assert [row.without, row.with_it, row.with_it if row.kept else row.without] == read_all(model, row)


def test_the_model_changes_for_one_step() -> None:
    """H2: another model makes that one call; the next is made by the agent's own."""
    model = Scripted([reply("", call("t", {}, id="a")), "done"])
    other = Scripted([reply("", call("t", {}, id="b"))])
    hook = At(1, StepOverrides(model=other))
    # The judge counts the agent's own model alone, and only if that is a strict one.
    played = play(AgentSpec(model=model, tools=[Bench().tool()], prepare_step=hook))

    assert ([1, 5], [3]) == ([len(r.messages) for r in model.requests], [len(r.messages) for r in other.requests])
    assert "done" == played.result.text


def test_context_and_custom_data_are_kept() -> None:
    """H2: later steps, conditions and tools see what a step put in their place."""
    hook = At(1, StepOverrides(context="new", custom_data=2))
    conditions: list[StopState] = []

    def condition(state: StopState) -> None:
        conditions.append(state)

    play(spec_with(hook, three_calls(), stop_when=[condition]), context="old", custom_data=1)

    assert [("old", 1), ("old", 1), ("new", 2)] == [(state.context, state.custom_data) for state in hook.seen]
    assert ["old", "new"] == [state.context for state in conditions]


def test_none_is_a_value_for_context_and_custom_data() -> None:
    """H2: unset leaves them, `None` empties them."""
    hook = At(0, StepOverrides(context=None, custom_data=None))
    play(spec_with(hook, three_calls()), context="old", custom_data=1)

    assert [("old", 1), (None, None), (None, None)] == [(state.context, state.custom_data) for state in hook.seen]


def test_kept_messages_grow_by_what_the_run_adds() -> None:
    """H2: what replaced the conversation stands at its beginning, exchanges follow, the stored history is whole."""
    hook = At(1, StepOverrides(messages=[SUMMARY]))
    model = three_calls()
    played = play(spec_with(hook, model))
    third = [request.messages for request in model.requests][2]

    assert [(SUMMARY,), (SUMMARY, *played.messages[3:5])] == [
        tuple(request.messages) for request in model.requests[1:3]
    ]
    assert isinstance(third[-1], ToolMessage)
    assert tuple(hook.seen[2].messages) == tuple(third)
    assert (UserMessage("go"), 6) == (played.messages[0], len(played.messages))


def test_messages_can_be_pruned_at_every_step() -> None:
    """H2: `prune_messages` in the hook keeps a long run short on the wire and whole in the store."""

    def prune(state: StepState) -> StepOverrides:
        return StepOverrides(messages=prune_messages(state.messages, keep_last=2))

    script = [*[reply("", call("t", {}, id=f"c{n}")) for n in range(6)], "done"]
    played = play(agent(script, Bench().tool(), prepare_step=prune))

    assert [1, 3, 3, 3, 3, 3, 3] == [len(asked.messages) for asked in played.asked]
    assert (14, "done") == (len(played.messages), played.result.text)


@pytest.mark.parametrize("place", ["last", "not last"])
def test_a_re_ask_cannot_be_kept(place: str) -> None:
    """H2, R5: messages that a hook keeps while it sees a re-ask are kept without it."""
    extra = UserMessage("By the way.")

    def keep(state: StepState) -> StepOverrides | None:
        if state.step_number != 1:
            return None
        more = [extra] if place == "not last" else []
        return StepOverrides(messages=[SUMMARY, state.messages[-1], *more])

    script = ["", reply("", call("t", {}, id="a")), "done"]
    played = play(agent(script, Bench().tool(), prepare_step=keep))
    reask = played.asked[1].texts[1]

    assert reask.startswith("Your last reply was empty")
    assert reask not in played.asked[2].texts
    assert reask not in [message.text for message in played.messages if isinstance(message, UserMessage)]
    assert SUMMARY.text == played.asked[2].texts[0]


def test_an_instruction_cannot_be_kept() -> None:
    """H2, F3: a final call that is made once more has its instruction once, at its end."""
    instruction, extra = "Résumé, please.", UserMessage("By the way.")

    def keep(state: StepState) -> StepOverrides | None:
        return StepOverrides(messages=[*state.messages, extra]) if len(state.steps) == 1 else None

    spec = agent(
        [reply("", call("t", {}, id="a")), "", "done"],
        Bench().tool(),
        prepare_step=keep,
        max_tool_iterations=1,
        tool_iteration_limit_finalization=instruction,
        finalization_retry=True,
    )
    played = play(spec)

    assert [["go", instruction, extra.text], ["go", extra.text, instruction]] == [a.texts for a in played.asked[1:]]


def test_provider_options_are_merged_without_touching_the_agents_own() -> None:
    """H2: the agent's mapping is the same after a step that overrode it."""
    own: Mapping[str, Any] = {"seed": 1}
    model = three_calls()
    play(spec_with(At(0, StepOverrides(provider_options={"seed": 2})), model, provider_options=own))

    assert ({"seed": 1}, [{"seed": 2}, {"seed": 1}, {"seed": 1}]) == (
        own,
        [request.provider_options for request in model.requests],
    )


def test_a_history_with_calls_stays_valid_without_tools() -> None:
    """H3, F4: where tool blocks need definitions, a step that hides all tools is sent as text."""
    profile = Profile(flatten_without_tools=True, reports_sending=True)
    model = Scripted(calls_until(1), profile=profile)
    played = play(agent(model, Bench().tool(), prepare_step=At(1, StepOverrides(active_tools=[]))))
    sent: tuple[Message, ...] = (UserMessage("go"), UserMessage("[Result of t]\n1"))

    assert sent == tuple(played.asked[1].messages)
    assert isinstance(played.messages[2], ToolMessage)


def test_a_hook_that_returns_nothing_changes_nothing() -> None:
    """H2: `None` and empty overrides are the run without the hook."""

    def run(hook: Any) -> Played:
        return play(agent(calls_until(2), Bench().tool(), prepare_step=hook, system="s"))

    plain = run(None)

    for hook in (At(0, None), At(0, StepOverrides())):
        hooked = run(hook)
        assert (plain.asked, plain.messages) == (hooked.asked, hooked.messages)
