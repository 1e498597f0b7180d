"""What a stop condition is given, and what its answer means (S1)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

import msgspec

from ..result import StepResult
from ..turns import Message
from ..usage import Usage

__all__ = ("StopCondition", "StopState", "Verdict", "reason_of")


class StopState(msgspec.Struct, frozen=True, kw_only=True):
    """What a condition may look at: read-only views, not copies."""

    steps: Sequence[StepResult]
    """All finished steps of the run; the last one is the step just finished."""
    messages: Sequence[Message]
    usage: Usage
    step_number: int
    """Zero-based number of the step just finished."""
    elapsed_seconds: float
    cost: float | None = None
    """In US dollars; `None`: unknown."""
    context: Any = None
    """What the caller gave to `agent.run(context=)`."""


Verdict: TypeAlias = str | bool | None
"""What a condition returns."""
StopCondition: TypeAlias = Callable[[StopState], Verdict | Awaitable[Verdict]]
"""`None`, `""` or `False` to go on; a text to stop, and why; `True` to stop for the condition's name."""


def reason_of(condition: StopCondition, verdict: object) -> str | None:
    """The reason a verdict gives, or `None` to go on. Raises `TypeError` for what is no verdict."""
    if verdict is None or verdict is False or verdict == "":
        return None
    if verdict is True:
        return str(getattr(condition, "__name__", type(condition).__name__))
    if isinstance(verdict, str):
        return verdict
    raise TypeError(f"a stop condition returns a str, a bool or None, not {type(verdict).__name__}")
