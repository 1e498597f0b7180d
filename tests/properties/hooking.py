"""The hooks of a world: they hide, replace, force, deny, change, complain and break, in turn, and then do nothing."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import trio

from actors.agent import (
    CallConfig,
    CompactState,
    PendingTool,
    StepOverrides,
    StepState,
    ask_model,
    summarise,
    trim,
)
from protocol.model import ForceTool
from protocol.prune import prune_messages
from protocol.stop import StopState, has_tool_call, is_step_count, max_steps
from protocol.turns import Message, ToolMessage, UserMessage

from .truth import CHANGED, EDITED, HELPER_PROMPT, Truth
from .world import Around, Instruction, Prepared

BOUND = 25
"""Steps of a run that its settings do not bound."""


def hooks_of(truth: Truth) -> dict[str, Any]:
    """Settings of an `AgentSpec`."""
    plan = truth.world.hooks
    made: dict[str, Any] = {}
    if plan.call:
        made["prepare_call"] = lambda config: _prepare_call(truth, config)
    if plan.step:
        made["prepare_step"] = lambda state: _prepare_step(truth, state)
    if plan.continues:
        made["continue_when"] = lambda _state: _some_times(truth, "continue", plan.continues, "go on")
    if plan.rejects:
        made["check_answer"] = lambda _text: _some_times(truth, "reject", plan.rejects, "not good enough")
    if plan.around:
        made["around_tool"] = lambda call, proceed: _around(truth, call, proceed)
    if plan.shortens:
        made["on_context_overflow"] = _shortened
    if plan.compacts:
        made |= {"compact": lambda state: _compact(truth, state), "compact_at_tokens": 2}
    if plan.observes:
        made["on_step"] = made["on_run_end"] = lambda _seen: _raise("observer")
    return made


def conditions_of(truth: Truth, path: tuple[str, ...]) -> dict[str, Any]:
    """`stop_when`, with a bound of its own."""
    settings, gate = truth.world_of(path).settings, truth.world_of(path).gate
    # A gate that approves when nobody answers is no bound: such a run would go on for ever.
    if not settings.stop_when and (gate is None or not gate.approves_on_timeout):
        return {}

    def raises(state: StopState) -> bool:
        if truth.wild and len(state.steps) == 2:
            raise ValueError("condition")
        return False

    async def slow(_state: StopState) -> None:
        await trio.sleep(0.5)

    def wrong(state: StopState) -> Any:
        return 5 if truth.wild and len(state.steps) == 2 else None

    found: dict[str, Any] = {
        "third": is_step_count(3),
        "called": has_tool_call("t0"),
        "raises": raises,
        "slow": slow,
        "wrong": wrong,
    }
    return {"stop_when": [*(found[name] for name in settings.stop_when), max_steps(BOUND)]}


def instruction_of(instruction: Instruction | None) -> Any:
    """What a finalization is told."""

    def raises(_context: Any) -> str:
        raise ValueError("instruction")

    async def slow(_context: Any) -> None:
        await trio.sleep(0.5)

    return {"raises": raises, "slow": slow, "text": "wrap up"}.get(instruction or "", instruction)


def _raise(text: str) -> Any:
    raise ValueError(text)


def _some_times(truth: Truth, key: str, most: int, text: str) -> str | None:
    if not truth.wild:
        return None
    said: str | None = truth.next_of(key, (), (text,) * most, None)
    return said


def _shortened(messages: Sequence[Message]) -> Sequence[Message]:
    return [next(message for message in messages if isinstance(message, UserMessage))]


async def _compact(truth: Truth, state: CompactState) -> Sequence[Message] | None:
    if len(state.messages) < 4 or not truth.wild:  # there is nothing that could go
        return None
    plan = truth.next_of("compact", (), truth.world.hooks.compacts, None)
    match plan:
        case "raise":
            raise ValueError("compact")
        case "broken":
            return _broken(state.messages)
        case "summarise":
            shorter = summarise()(state)
            assert inspect.isawaitable(shorter)
            return await shorter
        case "helper":
            await ask_model(HELPER_PROMPT)
        case "slow":
            await trio.sleep(0.5)
        case None:
            return None
    shorter = trim(keep_last=0)(state)
    assert not inspect.isawaitable(shorter)
    return shorter


def _broken(messages: Sequence[Message]) -> list[Message]:
    """The messages without their first results."""
    place = next((place for place, message in enumerate(messages) if isinstance(message, ToolMessage)), None)
    return [message for index, message in enumerate(messages) if index != place]


def _messages(made: Prepared, messages: Sequence[Message]) -> Sequence[Message]:
    return prune_messages(messages, keep_last=2) if made == "prune" else _broken(messages)


def _planned(truth: Truth, plans: tuple[Prepared, ...]) -> Prepared:
    plan: Prepared = truth.next_of("prepare", (), plans, "nothing")
    truth.hidden = plan == "hide"
    return plan


def _prepare_call(truth: Truth, config: CallConfig) -> Any:
    plan = _planned(truth, truth.world.hooks.call)
    match plan:
        case "hide":
            return config.replace(tools=config.tools[1:])
        case "prune" | "broken":
            return config.replace(messages=_messages(plan, config.messages))
        case "system":
            return config.replace(system="other", temperature=0.5)
        case "raise":
            return _raise("hook")
        case "wrong":
            return 5
        case _:
            return config


def _prepare_step(truth: Truth, state: StepState) -> Any:
    plan = _planned(truth, truth.world.hooks.step)
    match plan:
        case "hide":
            return StepOverrides(active_tools=[tool.name for tool in state.tools[1:]])
        case "prune" | "broken":
            return StepOverrides(messages=_messages(plan, state.messages))
        case "required" | "none":
            return StepOverrides(tool_choice=plan)
        case "force":
            return StepOverrides(tool_choice=ForceTool("t0"))
        case "system":
            return StepOverrides(system="other", custom_data={"seen": state.step_number})
        case "raise":
            return _raise("hook")
        case "wrong":
            return 5
        case _:
            return None


async def _around(truth: Truth, call: PendingTool, proceed: Any) -> Any:
    plan: Around = truth.next_of("around", (), truth.world.hooks.around, "pass")
    truth.arounds[int(call.arguments["n"]) % EDITED] = plan
    match plan:
        case "deny":
            return "no"
        case "change":
            return await proceed({**call.arguments, "n": call.arguments["n"] + CHANGED})
        case "bad_change":
            return await proceed({"n": "x"})
        case "alter":
            await proceed()
            return "altered"
        case "raise":
            return _raise("around")
        case "raise_after":
            await proceed()
            return _raise("around")
        case "swallow":
            try:
                return await proceed()
            except BaseException:  # noqa: ASYNC103, BLE001  what a careless hook does
                return "swallowed"  # noqa: ASYNC104
        case "twice":
            await proceed()
            return await proceed()
        case _:
            return await proceed()
