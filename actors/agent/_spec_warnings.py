"""Limits that cannot work together as they read."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._spec import AgentSpec

__all__ = ("LimitsWarning", "warn_of_limits")


class LimitsWarning(UserWarning):
    """Limits that cannot work together as they read: the text says why."""


def warn_of_limits(spec: AgentSpec) -> None:
    """Warn whoever made the settings."""
    rounds, calls = spec.max_tool_iterations, spec.max_llm_calls
    if calls is None:
        return
    texts: list[str] = []
    if spec.llm_call_limit_finalization is not None and calls == 1:
        texts.append("llm_call_limit_finalization with max_llm_calls=1: the only call is the final one, without tools")
    if rounds is not None and spec.tool_iteration_limit_finalization is not None and calls <= rounds:
        texts.append(
            f"tool_iteration_limit_finalization needs a model call after round {rounds}, but max_llm_calls={calls}"
            f" is used up by then: set max_llm_calls to {rounds + 1} or more"
        )
    if rounds is not None and spec.continuation is not None and calls <= rounds + 1:
        texts.append(
            f"the gate cannot be asked: after {rounds} rounds and the call that fills the window,"
            f" max_llm_calls={calls} leaves no call to go on with: set it to {rounds + 2} or more"
        )
    for text in texts:
        warnings.warn(text, LimitsWarning, stacklevel=4)
