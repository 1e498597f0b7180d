"""The hooks of a case, in the words of the cases, as real functions."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

import attrs
import trio

from actors import FailRun, RunResult, StepOverrides, ask_model
from actors.agent import StepState
from protocol.stop import StopState
from protocol.turns import Message, UserMessage

from .phrases import Phrases
from .program import HOOKS as SETTINGS
from .program import Case


@attrs.define(eq=False)
class Kept:
    """What the hooks of a case were told."""

    checked: list[str] = attrs.field(factory=list[str])
    """Answers that were checked."""
    stored: list[RunResult] = attrs.field(factory=list[RunResult])
    """Results that the end of a run stored; one of a hook that was cut is not here."""
    asked_to_continue: list[StopState] = attrs.field(factory=list[StopState])
    """When it was asked whether to go on."""


Proceed: TypeAlias = Callable[[], Awaitable[Any]]
Hook: TypeAlias = tuple[str, Callable[..., Any]]
"""The setting of the runtime's that it is, and the function."""
Maker: TypeAlias = Callable[[Kept, re.Match[str]], Hook]

HOOKS = Phrases[Maker]("hooks")
VARIANT = "_variant"
"""Ends the name of what stands in a hook's place in a variant of the case."""


def hooks_of(program: Case, kept: Kept) -> dict[str, Any]:
    """The hooks of a program, and its settings that are hooks in the runtime."""
    told = {name: does for name, does in program.get("hooks", {}).items() if not name.endswith(VARIANT)}
    config = program.get("config", {})
    told |= {name: config[name] for name in SETTINGS & config.keys()}
    made: dict[str, Any] = {}
    for name, does in told.items():
        maker, found = HOOKS.find(f"{name}: {does}")
        setting, hook = maker(kept, found)
        assert setting not in made, setting
        made[setting] = hook
    return made


@HOOKS.says(r"prepare_step: from the second step on \(step_number >= 1\): active_tools = \[\]")
def _hides_the_tools(_kept: Kept, _told: re.Match[str]) -> Hook:
    def prepare_step(state: StepState) -> StepOverrides | None:
        return StepOverrides(active_tools=[]) if state.step_number >= 1 else None

    return "prepare_step", prepare_step


@HOOKS.says(r"prepare_step: before the second step: calls the model once to summarise")
def _summarises(_kept: Kept, _told: re.Match[str]) -> Hook:
    async def prepare_step(state: StepState) -> None:
        if state.step_number == 1:
            await ask_model("Summarise.")

    return "prepare_step", prepare_step


@HOOKS.says(r"around_tool: try: call tool; except Exception: return '(.*)'")
def _catches_errors(_kept: Kept, told: re.Match[str]) -> Hook:
    async def around_tool(_call: Any, proceed: Proceed) -> Any:
        try:
            return await proceed()
        except Exception:  # noqa: BLE001  as the case has it
            return told[1]

    return "around_tool", around_tool


@HOOKS.says(r"after_validate: (\w+) = min\(\1, (\d+)\)(?:; when it has been shown: \1 = (\d+))?")
def _bounds_an_argument(_kept: Kept, told: re.Match[str]) -> Hook:
    async def around_tool(call: Any, proceed: Callable[[dict[str, Any]], Awaitable[Any]]) -> Any:
        arguments = {**call.arguments, told[1]: min(call.arguments[told[1]], int(told[2]))}
        async with trio.open_nursery() as nursery:
            if told[3]:
                nursery.start_soon(_change_soon, arguments, told[1], int(told[3]))
            came = await proceed(arguments)
        return came  # noqa: RET504  not inside the nursery

    return "around_tool", around_tool


async def _change_soon(arguments: dict[str, Any], name: str, value: int) -> None:
    await trio.sleep(0.5)
    arguments[name] = value


@HOOKS.says(r"prepare_step: raises")
def _fails(_kept: Kept, _told: re.Match[str]) -> Hook:
    def prepare_step(_state: StepState) -> StepOverrides | None:
        raise RuntimeError("no step can be prepared")

    return "prepare_step", prepare_step


@HOOKS.says(r"around_tool: except BaseException")
def _catches_everything(_kept: Kept, _told: re.Match[str]) -> Hook:
    async def around_tool(_call: Any, proceed: Proceed) -> Any:
        try:
            return await proceed()
        except BaseException:  # noqa: BLE001, ASYNC103  a hook that does what no hook may
            return "error"  # noqa: ASYNC104

    return "around_tool", around_tool


@HOOKS.says(r"on_tool_failure: abort run")
def _fails_the_run(_kept: Kept, _told: re.Match[str]) -> Hook:
    async def around_tool(_call: Any, proceed: Proceed) -> Any:
        try:
            return await proceed()
        except Exception as error:
            raise FailRun(error) from error

    return "around_tool", around_tool


@HOOKS.says(r"output_check: text must be a JSON object")
def _checks_for_an_object(kept: Kept, _told: re.Match[str]) -> Hook:
    def check_answer(text: str) -> str | None:
        kept.checked.append(text)
        try:
            return None if isinstance(json.loads(text), dict) else "It is JSON, but no object."
        except ValueError:
            return "It is no JSON."

    return "check_answer", check_answer


@HOOKS.says(r"on_run_end: await save_to_store\(\) \(has (\d+) checkpoints\)")
def _stores(kept: Kept, told: re.Match[str]) -> Hook:
    async def on_run_end(result: RunResult) -> None:
        for _ in range(int(told[1])):
            await trio.lowlevel.checkpoint()
        kept.stored.append(result)

    return "on_run_end", on_run_end


@HOOKS.says(r"on_run_end: await forever")
def _hangs(_kept: Kept, _told: re.Match[str]) -> Hook:
    async def on_run_end(_result: RunResult) -> None:
        await trio.sleep_forever()

    return "on_run_end", on_run_end


@HOOKS.says(r"on_run_end: if work is left: continue automatically")
def _continues(kept: Kept, _told: re.Match[str]) -> Hook:
    """In the runtime the end of a run only tells of it: what continues a run is asked while it still goes on."""

    def continue_when(state: StopState) -> str:
        kept.asked_to_continue.append(state)
        return "continue"

    return "continue_when", continue_when


@HOOKS.says(r"on_context_overflow: drop the oldest complete exchange")
def _drops_the_oldest(_kept: Kept, _told: re.Match[str]) -> Hook:
    def on_context_overflow(messages: Sequence[Message]) -> Sequence[Message]:
        later = [place for place, message in enumerate(messages) if place and isinstance(message, UserMessage)]
        return messages[later[0] :] if later else messages

    return "on_context_overflow", on_context_overflow


@HOOKS.says(r"continue_when: asks for the next answer, (\d+) times")
def _asks_for_more(kept: Kept, told: re.Match[str]) -> Hook:
    def continue_when(state: StopState) -> str | None:
        kept.asked_to_continue.append(state)
        return "the next one" if len(kept.asked_to_continue) <= int(told[1]) else None

    return "continue_when", continue_when


def keeps_books(seconds: float, kept: Kept) -> Callable[[RunResult], Awaitable[None]]:
    """What a run does at its end, if that takes time."""

    async def on_run_end(result: RunResult) -> None:
        await trio.sleep(seconds)
        kept.stored.append(result)

    return on_run_end
