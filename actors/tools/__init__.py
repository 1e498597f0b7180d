"""Tools: what a model may call. Schema, validation, output: pure, without tasks; who runs them is the agent's toolbox."""

from __future__ import annotations

from ._bound import ArgumentsInvalid, Bound
from ._output import OutputUnfit, render_error, render_output
from ._tool import NeedsApproval, Tool, as_tool, external_tool, tool
from .files import files

__all__ = (
    "ArgumentsInvalid",
    "Bound",
    "NeedsApproval",
    "OutputUnfit",
    "Tool",
    "as_tool",
    "external_tool",
    "files",
    "render_error",
    "render_output",
    "tool",
)
