"""What each command does. Who may give it is checked here, before anything else is looked at."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeAlias

from protocol.wire import WireError
from protocol.wire.envelope import Asked
from protocol.wire.replies import Nothing, Welcome

from ._attach import acknowledge, attach, detach, fetch, list_agents, list_requests
from ._connection import Answer
from ._decide import decide_approval, decide_continuation
from ._drive import cancel_run, start_run, steer_run, stop_agent, submit_results
from ._session import Session
from ._spawn import spawn_agent

if TYPE_CHECKING:
    from ._server import Gateway

__all__ = ("COMMANDS", "dispatch")

_AT_THE_END = frozenset({"hello", "ping", "ack", "agent.detach"})
"""Commands that are taken while the gateway is being closed."""
Handler: TypeAlias = Callable[["Gateway", Session, Asked], Answer]


def dispatch(gateway: Gateway, session: Session, asked: Asked) -> Answer:
    """Do what a command says. It, or what it returns to wait for, raises `WireError` for a refusal."""
    role = asked.rule.role
    if role != "decide" and not session.principal.holds(role):  # a decision looks for its request first
        raise WireError("forbidden", f"{asked.method} needs the role {role}")
    if not gateway.ready and asked.method not in _AT_THE_END:  # agents leave, and a client would take them for gone
        raise WireError("draining", "the gateway is being closed", retryable=True)
    return COMMANDS[asked.method](gateway, session, asked)


def _hello(gateway: Gateway, session: Session, _asked: Asked) -> Welcome:
    session.welcomed = True
    principal = session.principal
    templates = sorted(gateway.templates) if principal.holds("operate") else []
    return Welcome(
        connection=session.id,
        server_time=datetime.now(UTC).isoformat(timespec="milliseconds"),
        heartbeat_seconds=gateway.pace.heartbeat_seconds,
        limits=session.limits,
        capabilities={"templates": templates} if templates else {},
        principal=principal.name,
        roles=tuple(sorted(principal.roles)),
    )


def _ping(_gateway: Gateway, _session: Session, _asked: Asked) -> Nothing:
    return Nothing()


COMMANDS: dict[str, Handler] = {
    "hello": _hello,
    "ping": _ping,
    "ack": acknowledge,
    "agent.list": list_agents,
    "agent.spawn": spawn_agent,
    "agent.stop": stop_agent,
    "agent.attach": attach,
    "agent.detach": detach,
    "agent.fetch": fetch,
    "run.start": start_run,
    "run.cancel": cancel_run,
    "run.steer": steer_run,
    "tools.submit": submit_results,
    "request.list": list_requests,
    "continuation.decide": decide_continuation,
    "approval.decide": decide_approval,
}
"""By the name of the method."""
