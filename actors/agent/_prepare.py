"""The request of a step: the agent's settings, what hooks make of them, and tools off where the call is final.

Without a hook there is nothing to build but the request. With one, settings are built anew for each step; what it may
change for longer stands in `RunState.kept`. Tools go off last, after every hook (F4).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import attrs
import msgspec

from protocol.errors import SpecError
from protocol.finalization import flatten_tools
from protocol.history import first_fault
from protocol.model import ForceTool, Model, ModelRequest, ToolChoice
from protocol.run import NOTHING_KEPT
from protocol.text import clean
from protocol.turns import AssistantMessage, Message, ToolMessage, UserMessage
from protocol.views import View

from ..tools import Tool
from ._callbacks import EndRun, call_hook, failed
from ._checks import tools_of
from ._core import RunCore
from ._hooks import UNSET, CallConfig, StepOverrides, StepState

__all__ = ("is_changed", "plain_request", "prepare")

CHOICES = ("auto", "none", "required")
MESSAGE_TYPES = (UserMessage, AssistantMessage, ToolMessage)


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

    def shown(self) -> tuple[Sequence[Message], UserMessage | None]:
        """The messages as hooks see them, and the transient one at their end."""
        if self.tail is None:
            return self.messages, None
        tail = UserMessage(self.tail)
        return (*self.messages, tail), tail


def is_changed(core: RunCore) -> bool:
    """Whether anything may change the request: a hook, what one has kept, a forced choice, or tools that go off."""
    spec, state = core.acting, core.state
    return (
        state.final is not None
        or spec.prepare_step is not None
        or spec.prepare_call is not None
        or spec.tool_choice != "auto"
        or core.overrides is not None
        or state.kept is not NOTHING_KEPT
    )


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
    )
    return request, spec.model


async def prepare(core: RunCore) -> tuple[ModelRequest, Model]:
    """The request of a step, and the model that it goes to. Raises `EndRun`."""
    spec, state, kept = core.acting, core.state, core.state.kept
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
    forced = draft.tool_choice
    if isinstance(forced, ForceTool) and forced.name not in core.offered and state.final is None:
        offered = ", ".join(core.offered) or "none"
        raise _fault(f"tool_choice forces {forced.name!r}, which the step does not offer; it offers {offered}")
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
    )


def _finished(core: RunCore, draft: _Draft) -> tuple[ModelRequest, Model]:
    state = core.state
    same = core.offered is core.tools
    definitions = core.definitions if same else tuple([tool.definition for tool in draft.tools])
    messages = draft.messages
    choice = draft.tool_choice
    if state.final is not None:
        profile = draft.model.profile
        if profile.flatten_without_tools:
            messages = flatten_tools(messages)
        definitions = definitions if profile.keeps_tools_when_off else ()
        choice = "none"
    elif choice != "auto":
        if choice != "none" and (state.obeyed_choice or not definitions):
            choice = "auto"
        if choice == "none":
            core.offered = {}
    if core.offered is not core.tools:
        state.offered = tuple(core.offered)
    request = ModelRequest(
        messages=messages,
        system=draft.system,
        tail=draft.tail,
        tools=definitions,
        tool_choice=choice,
        temperature=draft.temperature,
        max_tokens=draft.max_tokens,
        provider_options=draft.options,
    )
    return request, draft.model


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
        raise _fault(f"prepare_call must return the CallConfig, changed or not; it returned {type(made).__name__}")
    draft.system = _system(made.system, "prepare_call")
    if made.messages is not messages:
        draft.messages, draft.tail = _messages(made.messages, tail, draft, "prepare_call")
    if made.tools is not draft.tools:
        draft.tools = _tools(made.tools, "prepare_call")
    draft.temperature, draft.max_tokens = made.temperature, made.max_tokens
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
            raise _fault(f"prepare_step must return StepOverrides or None; it returned {type(made).__name__}")
    overrides = made if isinstance(made, StepOverrides) else _NO_OVERRIDES
    if core.overrides is not None:
        overrides, core.overrides = core.overrides.over(overrides), None
    _keep(core, draft, overrides, messages, tail)
    _for_this_step(draft, overrides)


def _keep(
    core: RunCore, draft: _Draft, made: StepOverrides, shown: Sequence[Message], tail: UserMessage | None
) -> None:
    state = core.state
    system: Any = made.system
    if system is not UNSET:
        draft.system = _system(system, "prepare_step")
        state.kept = attrs.evolve(state.kept, system=draft.system)
    messages: Any = made.messages
    if messages is not UNSET and messages is not shown:
        draft.messages, draft.tail = _messages(messages, tail, draft, "prepare_step")
        state.kept = attrs.evolve(state.kept, messages=draft.messages, replaces=len(core.history))
    if made.context is not UNSET:
        core.context = made.context
    if made.custom_data is not UNSET:
        state.custom_data = made.custom_data


def _for_this_step(draft: _Draft, made: StepOverrides) -> None:
    model: Any = made.model
    if model is not UNSET:
        if not callable(getattr(model, "turn", None)):
            raise _fault(f"prepare_step: model must be a model, such as OpenAIChat('...'); it is {model!r}")
        draft.model = model
    if made.tools is not UNSET:
        draft.tools = _tools(made.tools, "prepare_step")
    if made.active_tools is not UNSET:
        draft.tools = _active(draft.tools, made.active_tools)
    choice: Any = made.tool_choice
    if choice is not UNSET:
        if choice not in CHOICES and not isinstance(choice, ForceTool):
            raise _fault(f"prepare_step: tool_choice must be auto, none, required or ForceTool; it is {choice!r}")
        draft.tool_choice = choice
    options: Any = made.provider_options
    if options is not UNSET:
        draft.options = {**(draft.options or {}), **options}
    if not isinstance(made.temperature, msgspec.UnsetType):
        draft.temperature = made.temperature
    if not isinstance(made.max_tokens, msgspec.UnsetType):
        draft.max_tokens = made.max_tokens


def _active(tools: tuple[Tool, ...], names: Any) -> tuple[Tool, ...]:
    if isinstance(names, str):
        raise _fault(f"prepare_step: active_tools must be a sequence of names; it is {names!r}")
    unknown = sorted(map(str, set(names) - {tool.name for tool in tools}))
    if unknown:
        raise _fault(f"prepare_step: active_tools names {', '.join(unknown)}, which there is not")
    return tuple([tool for tool in tools if tool.name in names])


def _messages(given: Any, tail: UserMessage | None, draft: _Draft, hook: str) -> tuple[tuple[Message, ...], str | None]:
    """Messages that a hook gave, checked in full; the transient one at their end is told from the rest (R2)."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Sequence):
        raise _fault(f"{hook}: messages must be a sequence of messages; it is a {type(given).__name__}")
    messages = list(cast("Sequence[Message]", given))
    kept_tail = draft.tail if messages and tail is not None and messages[-1] is tail else None
    if kept_tail is not None:
        messages.pop()
    for index, message in enumerate(messages):
        if not isinstance(message, MESSAGE_TYPES):
            raise _fault(f"{hook}: messages[{index}] is no message but a {type(message).__name__}")
        if isinstance(message, UserMessage) and not message.text.isascii():
            messages[index] = UserMessage(clean(message.text))
    fault = first_fault(messages)
    if fault is not None:
        raise _fault(f"{hook}: {fault}; prune_messages() shortens a conversation without parting calls from results")
    return tuple(messages), kept_tail


def _tools(given: Any, hook: str) -> tuple[Tool, ...]:
    try:
        return tools_of(given)
    except SpecError as error:
        raise _fault(f"{hook}: {error}") from error


def _system(given: Any, hook: str) -> str | None:
    if given is not None and not isinstance(given, str):
        raise _fault(f"{hook}: system must be a text or None; it is {type(given).__name__}")
    return None if given is None else clean(given)


def _fault(text: str) -> EndRun:
    return EndRun(failed("hook_error", "a hook", SpecError(text)))


_NO_OVERRIDES = StepOverrides()
