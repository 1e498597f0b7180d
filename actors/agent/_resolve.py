"""Calls are resolved before any of them runs: is the tool offered, are the arguments right (loop.md step 9, T3)."""

from __future__ import annotations

from typing import Any

import attrs

from protocol.text import clean, cut_middle
from protocol.turns import ToolCall

from ..tools import ArgumentsInvalid, Tool
from ._core import RunCore

__all__ = ("Ready", "resolve")


@attrs.define(eq=False)
class Ready:
    """A call that may run, unless somebody says no."""

    call: ToolCall
    tool: Tool
    arguments: dict[str, Any]
    """For the tool's function."""
    shown: dict[str, Any]
    """As JSON: what an approval shows, and what runs."""
    repaired: bool = False
    edited: bool = False
    """Whether a person has changed the arguments."""

    def rebind(self, arguments: dict[str, Any]) -> None:
        """Take other arguments. Raises `ArgumentsInvalid`."""
        bound = self.tool.bind(arguments)
        self.arguments, self.shown = bound.arguments, bound.decoded


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
        try:
            bound = tool.bind(core.arguments_of(call))
        except ArgumentsInvalid as error:
            text = str(error)
        else:
            return Ready(call, tool, bound.arguments, bound.decoded, bound.repaired)
    core.answer(call, "error", clean(text))
    return None
