"""The commands of `onward.v1` by their names: what each takes, who may give it, and what it is answered with."""

from __future__ import annotations

from typing import Any

import attrs

from . import replies
from .commands import (
    Ack,
    AgentAttach,
    AgentDetach,
    AgentFetch,
    AgentList,
    AgentSpawn,
    AgentStop,
    ApprovalDecide,
    ContinuationDecide,
    Hello,
    Ping,
    RequestList,
    RunCancel,
    RunStart,
    RunSteer,
    ToolsSubmit,
)
from .words import ErrorWord, Role

__all__ = ("METHODS", "Method")


@attrs.frozen
class Method:
    """One command."""

    params: Any
    """The type of its parameters."""
    results: tuple[type[replies.Reply], ...]
    """What it may be answered with."""
    role: Role
    """What a principal must hold."""
    idempotent: bool = False
    """Whether it carries `idem`."""
    errors: tuple[ErrorWord, ...] = ()
    """Words that it may be refused with, beside `ERRORS_OF_ALL`."""


_DECIDING: tuple[ErrorWord, ...] = (
    "not_found",
    "idem_conflict",
    "already_resolved",
    "stale_view",
    "invalid_argument",
    "too_large",
)
METHODS: dict[str, Method] = {
    "hello": Method(Hello, (replies.Welcome,), "observe"),
    "ping": Method(Ping, (replies.Nothing,), "observe"),
    "ack": Method(Ack, (replies.Nothing,), "observe"),
    "agent.list": Method(AgentList, (replies.Agents,), "observe"),
    "agent.spawn": Method(
        AgentSpawn,
        (replies.Spawned,),
        "operate",
        idempotent=True,
        errors=("not_found", "idem_conflict", "busy", "invalid_argument", "too_large"),
    ),
    "agent.stop": Method(AgentStop, (replies.Nothing,), "operate", errors=("not_found", "too_large")),
    "agent.attach": Method(
        AgentAttach, (replies.Attached, replies.AttachedAll), "observe", errors=("not_found", "invalid_argument")
    ),
    "agent.detach": Method(AgentDetach, (replies.Nothing,), "observe"),
    "agent.fetch": Method(AgentFetch, (replies.Fetched,), "observe", errors=("not_found",)),
    "run.start": Method(
        RunStart,
        (replies.Started,),
        "operate",
        idempotent=True,
        errors=("not_found", "idem_conflict", "busy", "invalid_argument", "too_large"),
    ),
    "run.cancel": Method(RunCancel, (replies.Nothing,), "operate", errors=("not_found", "too_large")),
    "run.steer": Method(
        RunSteer,
        (replies.Steered,),
        "operate",
        idempotent=True,
        errors=("not_found", "idem_conflict", "invalid_argument", "too_large"),
    ),
    "tools.submit": Method(ToolsSubmit, (replies.Nothing,), "operate", errors=("not_found", "invalid_argument")),
    "request.list": Method(RequestList, (replies.Requests,), "observe"),
    "continuation.decide": Method(ContinuationDecide, (replies.Decided,), "decide", idempotent=True, errors=_DECIDING),
    "approval.decide": Method(ApprovalDecide, (replies.Decided,), "decide", idempotent=True, errors=_DECIDING),
}
"""Every command by its name."""
