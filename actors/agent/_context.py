"""What a run hands down: how a tool's own agent becomes a sub-agent of the run that called it.

`agent.run()` looks for the run it is started in. If there is one, the new run draws on its account, speaks in its
root's stream under an agent path, and asks in its root's table of requests (loop.md B0, N1).
"""

from __future__ import annotations

import contextvars
from collections.abc import Awaitable, Callable
from typing import Any

import attrs

from protocol.ledger import Account
from protocol.requests import RequestTable
from protocol.stopwatch import Activity

from ..eventlog import EventStream

__all__ = ("RunContext", "context_of", "current_activity", "current_run")


@attrs.frozen(eq=False)
class RunContext:
    """The run in whose tool the code runs."""

    run: str
    path: tuple[str, ...]
    account: Account
    stream: EventStream
    requests: RequestTable
    deadline: float
    """On trio's clock; `inf` for none."""
    children: list[Any]
    """The runtime's own: the runs below it that are not over, which end before it does."""
    core: Any
    """The runtime's own: the run itself."""
    spawn: Callable[[Any], Awaitable[Any]] | None
    """Makes an agent of a spec, in the runtime that the run lives in."""


_current: contextvars.ContextVar[RunContext | None] = contextvars.ContextVar("current_run", default=None)
current_run = _current
"""The run that the present task works for, or `None`."""

_activity: contextvars.ContextVar[Activity | None] = contextvars.ContextVar("current_activity", default=None)
current_activity = _activity
"""What the present task is a part of, where somebody measures its time: the body of a tool call, or a run."""


def context_of(core: Any, stream: EventStream, spawn: Callable[[Any], Awaitable[Any]] | None) -> RunContext:
    """What a run hands down."""
    return RunContext(
        core.run, core.path, core.account, stream, core.requests, core.scope.deadline, core.children, core, spawn
    )
