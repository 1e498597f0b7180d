"""Calls are resolved before any of them runs: is the tool offered, are the arguments right (loop.md step 9, T3)."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

import attrs
import msgspec

from protocol.normalise import parse_arguments
from protocol.text import clean, cut_middle
from protocol.turns import ToolCall, Turn

from ..tools import ArgumentsInvalid, Bound, Tool
from ._core import RunCore

__all__ = ("Ready", "bind_calls", "resolve")


@attrs.define(eq=False)
class Ready:
    """A call that may run, unless somebody says no."""

    call: ToolCall
    tool: Tool
    arguments: dict[str, Any]
    """For the tool's function."""
    shown: dict[str, Any]
    """As JSON: what an approval shows, and what runs."""
    edited: bool = False
    """Whether a person has changed the arguments."""

    def bind(self, arguments: Mapping[str, Any]) -> Bound:
        """Check other arguments as the model's own are: JSON first, then the schema. Raises `ArgumentsInvalid`."""
        try:
            decoded = parse_arguments(json.dumps(dict(arguments), allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            raise ArgumentsInvalid(f"the arguments of {self.tool.name} must be one JSON object: {error}") from error
        if decoded is None:
            raise ArgumentsInvalid(f"the arguments of {self.tool.name} are nested too deep")
        return self.tool.bind(decoded)

    def rebind(self, arguments: Mapping[str, Any]) -> None:
        """Take other arguments. Raises `ArgumentsInvalid`."""
        bound = self.bind(arguments)
        # A body may change what it is given; what was shown stays.
        self.arguments, self.shown = bound.arguments, copy.deepcopy(bound.decoded)


def bind_calls(core: RunCore, turn: Turn) -> None:
    """Bind the arguments of every call of the turn in hand whose tool was offered; store what was repaired as it will run.

    So what is shown at the gate and for approval, stored, and run is one and the same (T3).
    """
    mended: dict[str, ToolCall] = {}
    for call in core.calls:
        tool = core.offered.get(call.name)
        if tool is None or call.malformed is not None:
            continue
        bound = core.bound[call.id] = _bind(tool, core.arguments_of(call))
        if isinstance(bound, Bound) and bound.repaired:
            core.arguments[call.id] = bound.decoded
            text = msgspec.json.encode(bound.decoded).decode()
            mended[call.id] = msgspec.structs.replace(call, arguments=text, repaired=True)
    if mended:
        parts = [mended.get(part.id, part) if isinstance(part, ToolCall) else part for part in turn.parts]
        core.hold(attrs.evolve(turn, parts=tuple(parts)))


def _bind(tool: Tool, arguments: dict[str, Any]) -> Bound | ArgumentsInvalid:
    try:
        return tool.bind(arguments)
    except ArgumentsInvalid as error:
        return error


def resolve(core: RunCore, call: ToolCall) -> Ready | None:
    """Say that a call may run, or enter an error result that the model can act on."""
    tool = core.offered.get(call.name)
    if tool is None:
        offered = ", ".join(core.offered) or "none"
        if call.name in core.tools:
            text = f"The tool {call.name} is not available in this step; nothing was run. Available are: {offered}."
        else:
            text = f"There is no tool named {call.name!r}. The tools are: {offered}."
    elif call.malformed is not None:
        raw = cut_middle(call.malformed, 1000)
        text = f"The arguments of {call.name} must be one JSON object; nothing was run. They were: {raw}"
    else:
        bound = core.bound.get(call.id) or _bind(tool, core.arguments_of(call))
        if isinstance(bound, Bound):
            return Ready(call, tool, bound.arguments, bound.decoded)
        text = str(bound)
    core.answer(call, "error", clean(text))
    return None
