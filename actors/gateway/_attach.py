"""Attach: from where a client follows an agent, and what it is told first (wire.md, *Numbers*).

The look at the agent, and the cursor that is set behind it, are one synchronous step. Recovery is whole or refused: a client
gets everything behind the number it names, or a snapshot and what follows that. Where a journal is behind, the reply waits
until all that it tells is durable; the log holds what comes meanwhile.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, TypeVar

import msgspec

from protocol.codec import encode
from protocol.wire import WireError
from protocol.wire.commands import Ack, AgentAttach, AgentDetach, AgentFetch, Position
from protocol.wire.envelope import Asked
from protocol.wire.replies import Agents, Attached, AttachedAll, Fetched, Nothing, OpenRequest, Requests

from ..agent import Agent
from ._follow import FRAME_GOAL_BYTES, Following
from ._parts import shrunk
from ._session import Session
from ._snapshot import MAX_HISTORY_BYTES, info_of, open_requests, snapshot_of

if TYPE_CHECKING:
    from ._server import Gateway

__all__ = ("acknowledge", "attach", "detach", "fetch", "follow_new", "list_agents", "list_requests")

R = TypeVar("R")
_LEAST_REQUEST_BYTES = 1024


def list_agents(gateway: Gateway, session: Session, _asked: Asked) -> Awaitable[Agents]:
    """`agent.list`: those that have been said to be there."""
    agents = [agent for agent in gateway.visible_to(session.principal) if agent.hosted.is_set()]
    return gateway.durable(Agents(agents=tuple([info_of(agent) for agent in agents])))


def list_requests(gateway: Gateway, session: Session, _asked: Asked) -> Awaitable[Requests]:
    """`request.list`."""
    agents = gateway.visible_to(session.principal)
    found = [request for agent in agents for request in open_requests(agent)]
    return gateway.durable(Requests(requests=_bounded(found, session.limits.frame_bytes // 2)))


def attach(
    gateway: Gateway, session: Session, asked: Asked
) -> Attached | AttachedAll | Awaitable[AttachedAll | Attached]:
    """`agent.attach`."""
    params: AgentAttach = asked.params
    if params.agent == "*":
        return _attach_all(gateway, session, params)
    agent = gateway.agent(session.principal, params.agent)
    reply, following = _attach_one(gateway, session, agent, params, session.limits.frame_bytes // 2)
    return _follow_then(gateway, session, [following], reply)


def _attach_all(gateway: Gateway, session: Session, params: AgentAttach) -> AttachedAll | Awaitable[AttachedAll]:
    if isinstance(params.from_, Position):
        raise WireError(
            "invalid_argument", "an attach to all agents begins at head or start: numbers are each agent's own"
        )
    agents = gateway.visible_to(session.principal)
    room = session.limits.frame_bytes // 2 // max(1, len(agents))
    replies: dict[str, Attached] = {}
    followings: list[Following] = []
    for agent in agents:
        replies[agent.id], following = _attach_one(gateway, session, agent, params, room)
        followings.append(following)
    session.follows_all = params
    return _follow_then(gateway, session, followings, AttachedAll(agents=replies))


def _attach_one(
    gateway: Gateway, session: Session, agent: Agent, params: AgentAttach, room: int
) -> tuple[Attached, Following]:
    """One reply, of about `room` bytes at most, and the cursor that goes with it."""
    stream = agent.stream
    head, oldest = stream.end, stream.oldest
    after, recovered, snapshot = head, True, params.from_ == "head"
    match params.from_:
        case "head":
            pass
        case "start":
            recovered, after = oldest <= 1, 0
        case Position(epoch=epoch, seq=seq):
            recovered, after = epoch == stream.epoch and oldest - 1 <= seq <= head, seq
    if not recovered:
        after, snapshot = head, True
    reply = Attached(
        epoch=stream.epoch,
        head=head,
        oldest=oldest,
        recovered=recovered,
        open_requests=_bounded(open_requests(agent), room // 2),
        snapshot=snapshot_of(agent, history_bytes=min(room // 2, MAX_HISTORY_BYTES)) if snapshot else None,
    )
    return reply, _following(gateway, session, agent, after, params)


def _follow_then(gateway: Gateway, session: Session, followings: list[Following], reply: R) -> R | Awaitable[R]:
    """Follow, and reply: the reply is queued in the same step, and so precedes the first events."""
    if all(following.stream.visible == following.stream.end for following in followings):
        for following in followings:
            session.follow(following)
        return reply
    for following in followings:
        session.expect(following)
    return _follow_when_durable(gateway, session, followings, reply)


async def _follow_when_durable(gateway: Gateway, session: Session, followings: list[Following], reply: R) -> R:
    await gateway.flushed()
    for following in followings:
        session.follow_expected(following)
    return reply


def detach(_gateway: Gateway, session: Session, asked: Asked) -> Nothing:
    """`agent.detach`."""
    params: AgentDetach = asked.params
    if params.agent == "*":
        session.follows_all = None
        session.close()
    else:
        session.unfollow(params.agent)
    return Nothing()


def acknowledge(_gateway: Gateway, session: Session, asked: Asked) -> Nothing:
    """`ack`: of what is followed, as far as it has been sent; what else is told says nothing."""
    params: Ack = asked.params
    for agent, seq in params.items():
        following = session.following.get(agent)
        if following is not None and seq <= following.seq:
            session.acked[agent] = max(seq, session.acked.get(agent, 0))
    return Nothing()


def fetch(gateway: Gateway, session: Session, asked: Asked) -> Fetched:
    """`agent.fetch`: a page of the events behind a position."""
    params: AgentFetch = asked.params
    stream = gateway.agent(session.principal, params.agent).stream
    position = params.from_
    if position.epoch != stream.epoch or not stream.oldest - 1 <= position.seq <= stream.visible:
        raise WireError("not_found", f"the log begins at {stream.oldest} of epoch {stream.epoch}: attach again")
    first, entries = stream.read(position.seq, min(params.limit, stream.visible - position.seq))
    room = min(4 * FRAME_GOAL_BYTES, session.limits.frame_bytes // 2)
    events: list[msgspec.Raw] = []
    for event, data in entries:
        room -= len(data) + 1
        if room < 0 and events:
            break
        whole = len(data) < session.limits.frame_bytes // 2
        events.append(msgspec.Raw(data if whole else shrunk(event, session.limits.frame_bytes // 2)))
    return Fetched(epoch=stream.epoch, seq=first, events=tuple(events), more=first + len(events) <= stream.visible)


def follow_new(gateway: Gateway, session: Session, agent: Agent) -> None:
    """An agent has been spawned: who follows all follows it from its first event."""
    if session.follows_all is not None and session.principal.may_see(agent.name):
        session.follow(_following(gateway, session, agent, 0, session.follows_all))


def _following(gateway: Gateway, session: Session, agent: Agent, after: int, params: AgentAttach) -> Following:
    return Following(
        agent.id,
        agent.stream,
        after,
        gateway.frames.of(agent.stream),
        deltas=params.deltas,
        types=None if params.types is None else frozenset(params.types),
        max_bytes=session.limits.queue_bytes,
        frame_bytes=session.limits.frame_bytes,
    )


def _bounded(requests: tuple[OpenRequest, ...] | list[OpenRequest], room: int) -> tuple[OpenRequest, ...]:
    """All of them; where they are too long together, the long texts in them are cut."""
    if sum(len(encode(request)) + 1 for request in requests) <= room:
        return tuple(requests)
    share = max(room // len(requests), _LEAST_REQUEST_BYTES)
    return tuple([
        request if len(encode(request)) <= share else msgspec.json.decode(shrunk(request, share), type=type(request))
        for request in requests
    ])
