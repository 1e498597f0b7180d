"""Tools: what a model may call. Schema, validation, output: pure, without tasks; who runs them is the agent's toolbox.

Beside them stand tools that are ready to use (`files`), and what tools may use (`run_command`).
"""

from __future__ import annotations

from ._bound import ArgumentsInvalid, Bound
from ._command import CommandResult, run_command
from ._output import OutputUnfit, render_error, render_output
from ._tool import NeedsApproval, Tool, as_tool, external_tool, tool
from .files import files

__all__ = (
    "ArgumentsInvalid",
    "Bound",
    "CommandResult",
    "NeedsApproval",
    "OutputUnfit",
    "Tool",
    "as_tool",
    "external_tool",
    "files",
    "render_error",
    "render_output",
    "run_command",
    "tool",
)
