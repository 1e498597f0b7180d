"""Decisions from clients, by the seven rules of wire.md, in their order.

Rules 1 to 6 and the closing of rule 7 are one synchronous step, in the agent's own table of requests: of all that decide
at the same time exactly one is accepted, and all others are told its resolution. Whatever an answer tells of a resolution
goes out when that is durable.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from protocol.approval import ApprovalResponse
from protocol.errors import InvalidDecision
from protocol.events import ContinuationRequired
from protocol.gate import ContinuationResponse
from protocol.requests import Request, Resolution, Response
from protocol.wire import WireError
from protocol.wire.commands import ApprovalDecide, ContinuationDecide
from protocol.wire.envelope import Asked
from protocol.wire.replies import Decided

from ..agent import Agent
from ._idem import found, kept, replayed
from ._session import Session
from ._texts import check_text

if TYPE_CHECKING:
    from ._server import Gateway

__all__ = ("decide_approval", "decide_continuation")


def decide_continuation(gateway: Gateway, session: Session, asked: Asked) -> Awaitable[Decided]:
    """`continuation.decide`."""
    return _decide(gateway, session, asked, functools.partial(_continuation, session, asked.params))


def decide_approval(gateway: Gateway, session: Session, asked: Asked) -> Awaitable[Decided]:
    """`approval.decide`."""
    return _decide(gateway, session, asked, functools.partial(_approval, session, asked.params))


def _decide(
    gateway: Gateway, session: Session, asked: Asked, response_of: Callable[[Request], Response]
) -> Awaitable[Decided]:
    params: ContinuationDecide | ApprovalDecide = asked.params
    agent = _agent_of(gateway, session, params.request)  # rule 1
    if not session.principal.holds("decide"):  # rule 2
        raise WireError("forbidden", f"{asked.method} needs the role decide")
    reply: Decided | None = found(agent.commands, session, asked)  # rule 3
    if reply is not None:
        return gateway.durable(replayed(reply))
    resolution = agent.requests.resolution(params.request)
    if resolution is not None:  # rule 4
        return _already(gateway, agent, resolution)
    request = agent.requests.find(params.request)
    assert request is not None
    if params.digest != request.digest:  # rule 5
        raise WireError("stale_view", f"what {params.request} asks is not what you saw: look again")
    try:  # rules 6 and 7
        agent.requests.decide(params.request, response_of(request), session.principal.name)
    except InvalidDecision as error:
        raise WireError("invalid_argument", str(error)) from None
    reply = Decided(status="accepted", request=params.request)
    kept(agent.commands, session, asked, reply)
    return gateway.durable(reply)


async def _already(gateway: Gateway, agent: Agent, resolution: Resolution) -> Decided:
    await gateway.flushed()
    seq = agent.requests.number(resolution.request)
    told = {"outcome": resolution.outcome, "by": resolution.by, "seq": seq}
    text = f"{resolution.request} is {resolution.outcome}" + (f" by {resolution.by}" if resolution.by else "")
    raise WireError("already_resolved", text, resolution=told)


def _agent_of(gateway: Gateway, session: Session, request: str) -> Agent:
    for agent in gateway.visible_to(session.principal):
        if agent.requests.find(request) is not None or agent.requests.resolution(request) is not None:
            return agent
    raise WireError("not_found", f"there is no request {request!r}")


def _continuation(session: Session, params: ContinuationDecide, request: Request) -> Response:
    if not isinstance(request, ContinuationRequired):
        raise InvalidDecision(f"{request.request} asks for the approval of a call: use approval.decide")
    check_text(session, "message", params.message)
    check_text(session, "tool_message", params.tool_message)
    if params.decision not in request.decisions:
        raise InvalidDecision(f"decision must be one of {', '.join(request.decisions)}")
    if params.decision == "decline":
        return ContinuationResponse("decline", message=params.message, tool_message=params.tool_message)
    return ContinuationResponse(
        "approve",
        message=params.message,
        discard_tool_calls=params.discard_tool_calls,
        tool_message=params.tool_message,
        grant=params.grant,
    )


def _approval(session: Session, params: ApprovalDecide, request: Request) -> Response:
    if isinstance(request, ContinuationRequired):
        raise InvalidDecision(f"{request.request} asks whether the run may go on: use continuation.decide")
    check_text(session, "reason", params.reason)
    match params.decision:
        case "approve":
            return ApprovalResponse("approve", arguments=params.arguments)
        case "deny":
            return ApprovalResponse("deny", reason=params.reason)
        case _:
            raise InvalidDecision("decision must be one of approve, deny")
