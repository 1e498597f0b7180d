"""The request of a step: the agent's settings, what hooks make of them, and tools off where the call is final.

Without a hook there is nothing to build but the request. With one, settings are built anew for each step; what it may
change for longer stands in `RunState.kept`. Tools go off last, after every hook (F4).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import attrs
import msgspec

from protocol.finalization import flatten_tools
from protocol.model import ForceTool, Model, ModelRequest, Profile, ToolChoice
from protocol.run import NOTHING_KEPT
from protocol.turns import Message, UserMessage
from protocol.views import View

from ..tools import Tool
from ._callbacks import call_hook
from ._core import RunCore
from ._given import (
    active_tools,
    given_automatic_continuation,
    given_max_tokens,
    given_messages,
    given_model,
    given_options,
    given_system,
    given_temperature,
    given_tool_choice,
    given_tools,
    hook_fault,
)
from ._hooks import UNSET, CallConfig, StepOverrides, StepState

__all__ = ("is_changed", "plain_request", "prepare", "tools_off")


@attrs.define(eq=False)
class _Draft:
    """A request in the making."""

    model: Model
    system: str | None
    messages: Sequence[Message]
    tail: str | None
    tools: tuple[Tool, ...]
    tool_choice: ToolChoice
    temperature: float | None
    max_tokens: int | None
    options: dict[str, Any] | None
    automatic_continuation: bool | None

    def shown(self) -> tuple[Sequence[Message], UserMessage | None]:
        """The messages as hooks see them, and the transient one at their end."""
        if self.tail is None:
            return self.messages, None
        tail = UserMessage(self.tail)
        return (*self.messages, tail), tail


def is_changed(core: RunCore) -> bool:
    """Whether anything may change the request: a hook, what one has kept, a forced choice, or tools that are not there."""
    state = core.state
    return not (core.plain_requests and state.final is None and core.overrides is None and state.kept is NOTHING_KEPT)


def plain_request(core: RunCore) -> tuple[ModelRequest, Model]:
    """The request of a step that nothing changes."""
    spec = core.acting
    core.offered = core.tools
    request = ModelRequest(
        messages=core.history.view(),
        system=spec.system,
        tail=core.state.reask,
        tools=core.definitions,
        temperature=spec.temperature,
        max_tokens=spec.max_tokens,
        provider_options=spec.provider_options,
        automatic_continuation=spec.automatic_continuation,
    )
    return request, spec.model


async def prepare(core: RunCore) -> tuple[ModelRequest, Model]:
    """The request of a step, and the model that it goes to. Raises `EndRun`."""
    spec, kept = core.acting, core.state.kept
    draft = _draft(core)
    if kept.messages is not None:
        draft.messages = (*kept.messages, *core.history.view()[kept.replaces :])
    if not isinstance(kept.system, msgspec.UnsetType):
        draft.system = kept.system
    if spec.prepare_call is not None:
        await _prepare_call(core, draft, spec.prepare_call)
    if spec.prepare_step is not None or core.overrides is not None:
        await _prepare_step(core, draft)
    core.offered = core.tools if draft.tools is spec.tools else {tool.name: tool for tool in draft.tools}
    return _finished(core, draft)


def _draft(core: RunCore) -> _Draft:
    spec, state = core.acting, core.state
    final = state.final
    choice = spec.tool_choice
    if choice != "auto" and state.spent_choice and choice != "none":
        choice = "auto"
    return _Draft(
        spec.model,
        spec.system,
        core.history.view(),
        final.instruction if final is not None else state.reask,
        cast("tuple[Tool, ...]", spec.tools),
        choice,
        spec.temperature,
        spec.max_tokens,
        None if spec.provider_options is None else dict(spec.provider_options),
        spec.automatic_continuation,
    )


def _finished(core: RunCore, draft: _Draft) -> tuple[ModelRequest, Model]:
    state = core.state
    same = core.offered is core.tools
    definitions = core.definitions if same else tuple([tool.definition for tool in draft.tools])
    choice = draft.tool_choice
    if state.final is None and choice != "auto":
        if choice == "none":
            core.offered = {}
        else:
            choice = _forced(core, choice)
    if core.offered is not core.tools:
        state.offered = tuple(core.offered)
    request = ModelRequest(
        messages=draft.messages,
        system=draft.system,
        tail=draft.tail,
        tools=definitions,
        tool_choice=choice,
        temperature=draft.temperature,
        max_tokens=draft.max_tokens,
        provider_options=draft.options,
        automatic_continuation=draft.automatic_continuation,
    )
    profile = draft.model.profile
    if state.final is not None:
        request = tools_off(request, profile)
    elif profile.flatten_without_tools and not definitions:
        request = msgspec.structs.replace(request, messages=tuple(flatten_tools(draft.messages)))
    return request, draft.model


def tools_off(request: ModelRequest, profile: Profile) -> ModelRequest:
    """The request of a final call: whatever a hook has put there, no tool can be called (F4)."""
    definitions = request.tools if profile.keeps_tools_when_off else ()
    messages = request.messages
    if profile.flatten_without_tools and not definitions:
        messages = tuple(flatten_tools(messages))
    return msgspec.structs.replace(request, messages=messages, tools=definitions, tool_choice="none")


def _forced(core: RunCore, choice: ToolChoice) -> ToolChoice:
    """A choice that forces a tool; `auto` in the step after one was obeyed, and where there is nothing to call (H3)."""
    if core.state.obeyed_choice:
        return "auto"
    if isinstance(choice, ForceTool) and choice.name not in core.offered:
        offered = ", ".join(core.offered) or "none"
        raise hook_fault(f"tool_choice forces {choice.name!r}, which the step does not offer; it offers {offered}")
    return choice if core.offered else "auto"


async def _prepare_call(core: RunCore, draft: _Draft, hook: Any) -> None:
    """H1: what it returns holds for this call; `custom_data` alone is carried on."""
    messages, tail = draft.shown()
    config = CallConfig(
        step_number=core.state.step,
        system=draft.system,
        messages=messages,
        tools=draft.tools,
        temperature=draft.temperature,
        max_tokens=draft.max_tokens,
        accumulated_usage=core.usage,
        custom_data=core.state.custom_data,
    )
    made = await call_hook(core, "prepare_call", hook, config)
    if not isinstance(made, CallConfig):
        raise hook_fault(f"prepare_call must return the CallConfig, changed or not; it returned {type(made).__name__}")
    draft.system = given_system(made.system, "prepare_call")
    if made.messages is not messages:
        _send(draft, given_messages(made.messages, "prepare_call"), tail)
    if made.tools is not draft.tools:
        draft.tools = given_tools(made.tools, "prepare_call")
    draft.temperature = given_temperature(made.temperature, "prepare_call")
    draft.max_tokens = given_max_tokens(made.max_tokens, "prepare_call")
    core.state.custom_data = made.custom_data


async def _prepare_step(core: RunCore, draft: _Draft) -> None:
    """H2: messages, system, context and custom data are kept for the run; the rest holds for this step."""
    hook = core.acting.prepare_step
    state = core.state
    messages, tail = draft.shown()
    made: object = None
    if hook is not None:
        view = StepState(
            step_number=state.step,
            final=state.final.limit if state.final is not None else None,
            steps=View(state.steps),
            messages=messages,
            system=draft.system,
            model=draft.model,
            tools=draft.tools,
            usage=core.usage,
            cost=core.cost,
            elapsed_seconds=core.elapsed_seconds,
            context=core.context,
            custom_data=state.custom_data,
        )
        made = await call_hook(core, "prepare_step", hook, view)
        if made is not None and not isinstance(made, StepOverrides):
            raise hook_fault(f"prepare_step must return StepOverrides or None; it returned {type(made).__name__}")
    overrides, where = made if isinstance(made, StepOverrides) else _NO_OVERRIDES, "prepare_step"
    if core.overrides is not None:
        where = "override_next" if hook is None else "prepare_step or override_next"
        overrides, core.overrides = core.overrides.over(overrides), None
    _keep(core, draft, overrides, messages, tail, where)
    _for_this_step(draft, overrides, where)


def _keep(
    core: RunCore, draft: _Draft, made: StepOverrides, shown: Sequence[Message], tail: UserMessage | None, where: str
) -> None:
    state = core.state
    system: Any = made.system
    if system is not UNSET:
        draft.system = given_system(system, where)
        state.kept = attrs.evolve(state.kept, system=draft.system)
    messages: Any = made.messages
    if messages is not UNSET and messages is not shown:
        _send(draft, given_messages(messages, where), tail)
        kept = tuple([message for message in draft.messages if message is not tail])
        state.kept = attrs.evolve(state.kept, messages=kept, replaces=len(core.history))
    if made.context is not UNSET:
        core.context = made.context
    if made.custom_data is not UNSET:
        state.custom_data = made.custom_data


def _for_this_step(draft: _Draft, made: StepOverrides, where: str) -> None:
    if made.model is not UNSET:
        draft.model = given_model(made.model, where)
    if made.tools is not UNSET:
        draft.tools = given_tools(made.tools, where)
    if made.active_tools is not UNSET:
        draft.tools = active_tools(draft.tools, made.active_tools, where)
    if made.tool_choice is not UNSET:
        draft.tool_choice = given_tool_choice(made.tool_choice, where)
    if made.provider_options is not UNSET:
        draft.options = {**(draft.options or {}), **given_options(made.provider_options, where)}
    if made.temperature is not UNSET:
        draft.temperature = given_temperature(made.temperature, where)
    if made.max_tokens is not UNSET:
        draft.max_tokens = given_max_tokens(made.max_tokens, where)
    if made.automatic_continuation is not UNSET:
        draft.automatic_continuation = given_automatic_continuation(made.automatic_continuation, where)


def _send(draft: _Draft, messages: tuple[Message, ...], tail: UserMessage | None) -> None:
    """Send what a hook gave. The transient message stays one where it is still the last, as itself or as a copy."""
    if tail is not None and messages[-1] == tail:
        draft.messages = messages[:-1]
    else:
        draft.messages, draft.tail = messages, None


_NO_OVERRIDES = StepOverrides()
