"""What hooks give back, checked: each fault says which hook, what it gave, and what would be right (H4)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from protocol.errors import SpecError
from protocol.history import first_fault
from protocol.model import ForceTool, Model, ToolChoice
from protocol.text import clean
from protocol.turns import AssistantMessage, Message, ToolMessage, UserMessage

from ..tools import Tool
from ._callbacks import EndRun, failed
from ._checks import is_number, tools_of

__all__ = (
    "active_tools",
    "given_automatic_continuation",
    "given_max_tokens",
    "given_messages",
    "given_model",
    "given_options",
    "given_system",
    "given_temperature",
    "given_tool_choice",
    "given_tools",
    "hook_fault",
)

CHOICES = ("auto", "none", "required")
MESSAGE_TYPES = (UserMessage, AssistantMessage, ToolMessage)


def hook_fault(text: str) -> EndRun:
    """The end of a run whose hook gave what it may not."""
    return EndRun(failed("hook_error", "a hook", SpecError(text)))


def active_tools(tools: tuple[Tool, ...], given: Any, where: str) -> tuple[Tool, ...]:
    """Those of the tools that a hook named."""
    names = cast("Collection[object]", given)
    if isinstance(given, str) or not isinstance(given, Collection) or not all(isinstance(name, str) for name in names):
        raise hook_fault(f"{where}: active_tools must be a sequence of names; it is {given!r}")
    there = [tool.name for tool in tools]
    unknown = [str(name) for name in names if name not in there]
    if unknown:
        raise hook_fault(f"{where}: active_tools names {', '.join(unknown)}; there are {', '.join(there) or 'none'}")
    return tuple([tool for tool in tools if tool.name in names])


def given_messages(given: Any, where: str) -> tuple[Message, ...]:
    """Messages that a hook gave, checked in full (R2). Raises `EndRun`."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Sequence):
        raise hook_fault(f"{where}: messages must be a sequence of messages; it is a {type(given).__name__}")
    messages = list(cast("Sequence[Message]", given))
    for index, message in enumerate(messages):
        if not isinstance(message, MESSAGE_TYPES):
            raise hook_fault(f"{where}: messages[{index}] is no message but a {type(message).__name__}")
        if isinstance(message, UserMessage):
            if not isinstance(message.text, str):
                raise hook_fault(
                    f"{where}: messages[{index}].text must be a text; it is a {type(message.text).__name__}"
                )
            text = clean(message.text)
            if text != message.text:
                messages[index] = UserMessage(text)
    fault = first_fault(messages) if messages else "messages must not be empty"
    if fault is not None:
        raise hook_fault(
            f"{where}: {fault}; prune_messages() shortens a conversation without parting calls from results"
        )
    return tuple(messages)


def given_model(given: Any, where: str) -> Model:
    """A model."""
    if not callable(getattr(given, "turn", None)):
        raise hook_fault(f"{where}: model must be a model, such as OpenAIChat('...'); it is a {type(given).__name__}")
    return cast("Model", given)


def given_tools(given: Any, where: str) -> tuple[Tool, ...]:
    """Tools, or functions to make tools of."""
    try:
        return tools_of(given)
    except SpecError as error:
        raise hook_fault(f"{where}: {error}") from error


def given_tool_choice(given: Any, where: str) -> ToolChoice:
    """A tool choice."""
    choice: ToolChoice = given
    if not (isinstance(given, ForceTool) or (isinstance(given, str) and given in CHOICES)):
        raise hook_fault(f"{where}: tool_choice must be 'auto', 'none', 'required' or ForceTool(name); it is {given!r}")
    return choice


def given_system(given: Any, where: str) -> str | None:
    """A text, or `None`."""
    if given is not None and not isinstance(given, str):
        raise hook_fault(f"{where}: system must be a text or None; it is {type(given).__name__}")
    return None if given is None else clean(given)


def given_temperature(given: Any, where: str) -> float | None:
    """A number, or `None`."""
    if given is not None and not is_number(given):
        raise hook_fault(f"{where}: temperature must be a number or None; it is {given!r}")
    return cast("float | None", given)


def given_max_tokens(given: Any, where: str) -> int | None:
    """A count of tokens, or `None`."""
    if given is not None and (type(given) is not int or given < 1):
        raise hook_fault(f"{where}: max_tokens must be an integer >= 1 or None; it is {given!r}")
    return given


def given_automatic_continuation(given: Any, where: str) -> bool | None:
    """True, False or `None`."""
    if given is not None and not isinstance(given, bool):
        raise hook_fault(f"{where}: automatic_continuation must be True, False or None; it is {given!r}")
    return given


def given_options(given: Any, where: str) -> dict[str, Any]:
    """Fields of the provider's request, by name."""
    kind = type(given).__name__
    options = dict(cast("Mapping[object, Any]", given)) if isinstance(given, Mapping) else None
    if options is None or not all(isinstance(name, str) for name in options):
        raise hook_fault(f"{where}: provider_options must be a mapping from names to JSON values; it is a {kind}")
    return cast("dict[str, Any]", options)
