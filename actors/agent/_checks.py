"""Checks of an agent's settings: each says which setting is wrong, what it was, and what would be right."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, cast, get_args

import attrs

from protocol.errors import SpecError
from protocol.limits import LimitName
from protocol.model import ForceTool
from protocol.stop import StopCondition
from protocol.text import clean

from ..tools import Tool, as_tool
from ._policies import Remote

__all__ = (
    "a_bool",
    "a_bool_or_none",
    "a_function_or_none",
    "a_limit_set",
    "a_provider",
    "a_tool_choice",
    "an_instruction",
    "an_on_timeout",
    "check_conditions",
    "check_forced_tool",
    "is_number",
    "not_negative",
    "number_or_none",
    "options_or_none",
    "positive",
    "seconds",
    "seconds_or_none",
    "system_text",
    "tools_of",
)

Field: TypeAlias = "attrs.Attribute[Any]"


def tools_of(tools: Any) -> tuple[Tool, ...]:
    """Make tools of tools and functions, each with a name of its own."""
    if isinstance(tools, (str, bytes)) or not isinstance(tools, Iterable):
        raise SpecError(f"tools must be a sequence of tools or functions; it is {tools!r}")
    made = tuple([as_tool(tool) for tool in cast("Iterable[object]", tools)])
    names = [tool.name for tool in made]
    if len(set(names)) != len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise SpecError(f"tools: {', '.join(twice)} is there more than once; every tool needs a name of its own")
    return made


def system_text(text: Any) -> str | None:
    """A text, or `None`."""
    if text is None:
        return None
    if not isinstance(text, str):
        raise SpecError(f"system must be a text or None; it is {text!r}")
    return clean(text)


def is_number(value: object) -> bool:
    """A number that is one, and no bool."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and not math.isnan(value)


def seconds(_instance: object, field: Field, value: object) -> None:
    """A number of seconds above 0."""
    if not (isinstance(value, (int, float)) and is_number(value) and value > 0):
        raise SpecError(f"{field.name} must be a number above 0; it is {value!r}")


def seconds_or_none(instance: object, field: Field, value: object) -> None:
    """A number of seconds above 0, or `None`."""
    if value is not None:
        seconds(instance, field, value)


def number_or_none(_instance: object, field: Field, value: object) -> None:
    """A number, or `None`."""
    if value is not None and not is_number(value):
        raise SpecError(f"{field.name} must be a number or None; it is {value!r}")


def a_bool(_instance: object, field: Field, value: object) -> None:
    """True or False."""
    if not isinstance(value, bool):
        raise SpecError(f"{field.name} must be True or False; it is {value!r}")


def a_bool_or_none(_instance: object, field: Field, value: object) -> None:
    """True, False or `None`."""
    if value is not None and not isinstance(value, bool):
        raise SpecError(f"{field.name} must be True, False or None; it is {value!r}")


def positive(_instance: object, field: Field, value: object) -> None:
    """An integer of 1 or more."""
    if type(value) is not int or value < 1:
        raise SpecError(f"{field.name} must be an integer >= 1; it is {value!r}")


def not_negative(_instance: object, field: Field, value: object) -> None:
    """An integer of 0 or more."""
    if type(value) is not int or value < 0:
        raise SpecError(f"{field.name} must be an integer >= 0; it is {value!r}")


def an_on_timeout(_instance: object, field: Field, value: object) -> None:
    """`decline` or `approve`."""
    if value not in {"decline", "approve"}:
        raise SpecError(f"{field.name} must be 'decline' or 'approve'; it is {value!r}")


def an_instruction(_instance: object, field: Field, value: object) -> None:
    """A finalization option."""
    if not (value is None or isinstance(value, str) or callable(value)):
        raise SpecError(
            f"{field.name} must be None (off), '' (the built-in text), a text, or a function; it is {value!r}"
        )


def a_function_or_none(_instance: object, field: Field, value: object) -> None:
    """Something to call, or `None`."""
    if value is not None and not callable(value):
        raise SpecError(f"{field.name} must be a function or None; it is {value!r}")


def a_provider(_instance: object, field: Field, value: object) -> None:
    """Whoever may decide."""
    if value is not None and not (callable(value) or isinstance(value, Remote)):
        raise SpecError(f"{field.name} must be a function, a policy or remote(); it is {value!r}")
    if field.name == "approval" and isinstance(value, Remote) and value.on_timeout != "decline":
        raise SpecError(
            "approval: remote(on_timeout='approve') is for the gate alone; a call that nobody saw never runs"
        )


def a_limit_set(_instance: object, field: Field, value: object) -> None:
    """Names of limits that the gate may be asked about."""
    names = set(get_args(LimitName)) - {"tool_iterations", "history_bytes"}
    if (
        isinstance(value, str)
        or not isinstance(value, Collection)
        or not set(cast("Collection[object]", value)) <= names
    ):
        raise SpecError(f"{field.name} must be a set of {', '.join(sorted(names))}; it is {value!r}")


def a_tool_choice(_instance: object, field: Field, value: object) -> None:
    """A tool choice."""
    if not (isinstance(value, ForceTool) or (isinstance(value, str) and value in {"auto", "none", "required"})):
        raise SpecError(f"{field.name} must be 'auto', 'none', 'required' or ForceTool(name); it is {value!r}")


def check_forced_tool(choice: object, tools: Collection[Tool], *, hooked: bool) -> None:
    """A tool that is forced is there, unless a hook may bring it in."""
    names = [tool.name for tool in tools]
    if isinstance(choice, ForceTool) and not hooked and choice.name not in names:
        raise SpecError(f"tool_choice forces {choice.name!r}, which is no tool; there are {', '.join(names) or 'none'}")


def options_or_none(_instance: object, field: Field, value: object) -> None:
    """A mapping with names, or `None`."""
    if value is None:
        return
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in cast("Mapping[Any, Any]", value)):
        raise SpecError(f"{field.name} must be a mapping from names to JSON values, or None; it is {value!r}")


def check_conditions(conditions: object) -> tuple[StopCondition, ...]:
    """A sequence of conditions that is not empty."""
    if not isinstance(conditions, Sequence) or isinstance(conditions, str):
        raise SpecError(f"stop_when must be a sequence of conditions; it is {conditions!r}")
    if not conditions:
        raise SpecError("stop_when=[] has no condition: to run until the model is done, say [is_loop_finished()]")
    for condition in cast("Sequence[object]", conditions):
        if not callable(condition):
            raise SpecError(f"stop_when: {condition!r} is no condition: it must be callable with a StopState")
    return tuple(cast("Sequence[StopCondition]", conditions))
