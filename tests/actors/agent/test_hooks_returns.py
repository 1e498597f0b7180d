"""What hooks may not return: the error says which hook, what it gave, and what would be right (H4, R2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from actors import ForceTool, StepOverrides
from protocol.errors import HookError
from protocol.turns import ToolMessage, ToolResult, UserMessage
from tests.actors.agent._failing_hooks import HOOKS, spec_with
from tests.support.play import Stage, perform, play
from tests.support.scripts import Bench
from tests.support.specs import agent


def wrong(**fields: Any) -> StepOverrides:
    """Overrides that no type checker lets through."""
    return StepOverrides(**fields)


WRONG: dict[str, tuple[str, Any, str]] = {
    "call: nothing": ("prepare_call", lambda _: None, "prepare_call must return the CallConfig"),
    "call: another kind": ("prepare_call", lambda _: StepOverrides(), "it returned StepOverrides"),
    "call: system": ("prepare_call", lambda c: c.replace(system=3), "prepare_call: system must be a text or None"),
    "call: messages": ("prepare_call", lambda c: c.replace(messages="go"), "messages must be a sequence"),
    "call: tools": ("prepare_call", lambda c: c.replace(tools=[3]), "prepare_call: "),
    "call: no tools": ("prepare_call", lambda c: c.replace(tools=None), "tools must be a sequence"),
    "call: temperature": (
        "prepare_call",
        lambda c: c.replace(temperature="hot"),
        "temperature must be a number or None",
    ),
    "call: max_tokens": (
        "prepare_call",
        lambda c: c.replace(max_tokens=0),
        "max_tokens must be an integer >= 1 or None",
    ),
    "step: another kind": ("prepare_step", lambda _: {"system": "x"}, "prepare_step must return StepOverrides or None"),
    "step: system": ("prepare_step", lambda _: wrong(system=b"x"), "system must be a text or None"),
    "step: messages": ("prepare_step", lambda _: wrong(messages=7), "messages must be a sequence"),
    "step: a message": (
        "prepare_step",
        lambda _: wrong(messages=["go"]),
        "messages[0] is no message but a str",
    ),
    "step: a text": (
        "prepare_step",
        lambda _: wrong(messages=[cast("Any", UserMessage)(3)]),
        "messages[0].text must be a text",
    ),
    "step: no message": ("prepare_step", lambda _: wrong(messages=[]), "messages must not be empty"),
    "step: model": ("prepare_step", lambda _: wrong(model="gpt"), "model must be a model"),
    "step: tools twice": (
        "prepare_step",
        lambda _: wrong(tools=[Bench().tool(), Bench().tool()]),
        "t is there more than once",
    ),
    "step: active_tools": ("prepare_step", lambda _: wrong(active_tools="t"), "a sequence of names"),
    "step: active_tools, no name": (
        "prepare_step",
        lambda _: wrong(active_tools=[["t"]]),
        "a sequence of names",
    ),
    "step: active_tools, a number": ("prepare_step", lambda _: wrong(active_tools=5), "a sequence of names"),
    "step: an unknown tool": (
        "prepare_step",
        lambda _: wrong(active_tools=["t", "x"]),
        "active_tools names x; there are t",
    ),
    "step: tool_choice": ("prepare_step", lambda _: wrong(tool_choice="t"), "tool_choice must be 'auto'"),
    "step: a forced tool": (
        "prepare_step",
        lambda _: wrong(tool_choice=ForceTool("x")),
        "forces 'x', which the step does not offer",
    ),
    "step: options": (
        "prepare_step",
        lambda _: wrong(provider_options=None),
        "provider_options must be a mapping",
    ),
    "step: names of options": (
        "prepare_step",
        lambda _: wrong(provider_options={1: 2}),
        "provider_options must be a mapping",
    ),
    "step: temperature": ("prepare_step", lambda _: wrong(temperature=True), "temperature must be a number"),
    "step: max_tokens": ("prepare_step", lambda _: wrong(max_tokens=1.5), "max_tokens must be an integer"),
    "check_answer": ("check_answer", lambda _: ["bad"], "the hook"),
    "continue_when": ("continue_when", lambda _: 1, "the hook"),
    "overflow": ("on_context_overflow", lambda _: 5, "on_context_overflow: messages must be a sequence"),
    "overflow: a message": ("on_context_overflow", lambda _: ["go"], "on_context_overflow: messages[0] is no message"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_hook_that_returns_what_it_may_not_ends_the_run(name: str) -> None:
    """H4: the error says which hook, what it gave, and what would be right; the model is not asked."""
    hook, act, told = WRONG[name]
    played = play(spec_with(hook, act))
    text = f"{played.error} {played.error.__cause__ if played.error else ''}"

    assert type(played.error) is HookError
    assert told.replace("the hook", hook) in text
    assert HOOKS[hook][1] == len(played.asked)


BROKEN: dict[str, Callable[[tuple[Any, ...]], list[Any]]] = {
    "a call without its result": lambda messages: list(messages[:2]),
    "a result without its call": lambda messages: [messages[0], messages[2]],
    "a message between": lambda messages: [*messages[:2], UserMessage("hm"), messages[2]],
    "an answer to another call": lambda messages: [
        *messages[:2],
        ToolMessage((ToolResult("z", "t", "ok", "1"),)),
    ],
}


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("hook", ["prepare_call", "prepare_step", "on_context_overflow"])
def test_messages_that_part_a_call_from_its_result_end_the_run(hook: str, how: str) -> None:
    """H4, R2: no broken conversation leaves; the error says where it is broken, and names what cuts without breaking."""
    breaks = BROKEN[how]

    def act(seen: Any) -> Any:
        if hook == "prepare_call":
            return seen.replace(messages=breaks(tuple(seen.messages)))
        if hook == "prepare_step":
            return StepOverrides(messages=breaks(tuple(seen.messages)))
        return breaks(tuple(seen))

    played = play(spec_with(hook, act))

    assert type(played.error) is HookError
    assert hook in str(played.error)
    assert "prune_messages()" in str(played.error)
    assert "message " in str(played.error)
    assert HOOKS[hook][1] == len(played.asked)


def test_what_override_next_got_wrong_is_told_as_its_own() -> None:
    """M1: the error does not blame a hook that there is not."""

    async def scene(stage: Stage) -> str:
        async with stage.run(await stage.spawn(agent(["yes"]))) as run:
            run.override_next(StepOverrides(active_tools=["x"]))
            with pytest.raises(HookError) as caught:
                await run.result()
            return str(caught.value)

    assert "override_next: active_tools names x; there are none" == perform(scene)
