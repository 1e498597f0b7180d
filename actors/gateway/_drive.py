"""Commands that drive agents: start, steer, cancel, stop, results of a caller's own tools."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

import attrs
import msgspec

from protocol.errors import AgentBusy, AgentStopped, RunOver, RuntimeFull, SpecError, SubmissionRefused
from protocol.limits import Limits
from protocol.wire import WireError
from protocol.wire.commands import AgentStop, RunCancel, RunLimits, RunStart, RunSteer, ToolsSubmit
from protocol.wire.envelope import Asked
from protocol.wire.replies import Nothing, RunState, Started, Steered

from ..agent import Agent, LimitsWarning, RunCore, Starting, steer, submit
from ._idem import begun, dropped, found, kept, replayed
from ._session import Session
from ._snapshot import family_of, state_of
from ._texts import check_text

if TYPE_CHECKING:
    from ._server import Gateway

__all__ = ("cancel_run", "lowered", "start_run", "steer_run", "stop_agent", "submit_results")

_ENDS: dict[str | None, RunState] = {"run_failed": "failed", "run_cancelled": "cancelled"}
"""What has become of a run that did not come to its own end, by its terminal event."""


def start_run(gateway: Gateway, session: Session, asked: Asked) -> Awaitable[Started]:
    """`run.start`: the run is the agent's own, and begins and goes on whatever becomes of the connection."""
    params: RunStart = asked.params
    agent = gateway.agent(session.principal, params.agent)
    before: Starting | Started | None = found(agent.commands, session, asked)
    if before is not None:
        return _started_before(gateway, agent, before)
    check_text(session, "prompt", params.prompt)
    if not agent.hosted.is_set():
        raise WireError("busy", f"agent {agent.name} is being made: try again", retryable=True)
    try:
        with warnings.catch_warnings(category=LimitsWarning, action="ignore"):  # whoever made the agent has been warned
            starting = agent.begin(params.prompt, limits=lowered(agent, params.limits), if_busy=params.if_busy)
    except (AgentStopped, SpecError) as error:
        raise _refused(error) from None
    begun(agent.commands, session, asked, starting)
    starting.on_settled = functools.partial(_settled, agent, session, asked)
    return _started(gateway, starting)


def _settled(agent: Agent, session: Session, asked: Asked, starting: Starting) -> None:
    """The run has begun, or will not: the answer is written down together with it."""
    if starting.run is None:
        dropped(agent.commands, session, asked)
    else:
        kept(agent.commands, session, asked, Started(run=starting.run.id, seq=starting.run.before))


async def _started(gateway: Gateway, starting: Starting) -> Started:
    try:
        run = await starting.wait()
    except (AgentBusy, AgentStopped, RuntimeFull, SpecError) as error:
        raise _refused(error, is_closing=not gateway.ready) from None
    return await gateway.durable(Started(run=run.id, seq=run.before))


async def _started_before(gateway: Gateway, agent: Agent, before: Starting | Started) -> Started:
    started = await (_started(gateway, before) if isinstance(before, Starting) else gateway.durable(before))
    return msgspec.structs.replace(started, replayed=True, state=_state_of_run(agent, started.run))


def _refused(error: Exception, *, is_closing: bool = False) -> WireError:
    match error:
        case AgentBusy() | RuntimeFull():
            return WireError("busy", str(error), retryable=True)
        case AgentStopped():
            return WireError("draining", str(error), retryable=is_closing)
        case _:
            return WireError("invalid_argument", str(error))


def steer_run(gateway: Gateway, session: Session, asked: Asked) -> Awaitable[Steered]:
    """`run.steer`."""
    params: RunSteer = asked.params
    agent, core = _find(gateway, session, params.run)
    reply: Steered | None = found(agent.commands, session, asked)
    if reply is not None:
        return gateway.durable(replayed(reply))
    check_text(session, "text", params.text)
    try:
        steer(_going_on(core, params.run), params.text)
    except (SpecError, RunOver) as error:
        raise WireError("invalid_argument", str(error)) from None
    reply = Steered()
    kept(agent.commands, session, asked, reply)
    return gateway.durable(reply)


def cancel_run(gateway: Gateway, session: Session, asked: Asked) -> Awaitable[Nothing]:
    """`run.cancel`: of a run that has ended, nothing is left to do."""
    params: RunCancel = asked.params
    check_text(session, "reason", params.reason)
    _, core = _find(gateway, session, params.run)
    if core is not None:
        reason = params.reason or f"cancelled by {session.principal.name}"
        if params.mode == "now":
            core.cancel(reason)
        else:
            core.stop(reason)
    return gateway.durable(Nothing())


def stop_agent(gateway: Gateway, session: Session, asked: Asked) -> Awaitable[Nothing]:
    """`agent.stop`."""
    params: AgentStop = asked.params
    check_text(session, "reason", params.reason)
    agent = gateway.agent(session.principal, params.agent)
    reason = params.reason or f"stopped by {session.principal.name}"
    core = agent.current
    agent.stop(reason)
    if params.mode == "now" and core is not None:
        core.cancel(reason)
    return gateway.durable(Nothing())


def submit_results(gateway: Gateway, session: Session, asked: Asked) -> Awaitable[Nothing]:
    """`tools.submit`: a sub-agent's run may wait too."""
    params: ToolsSubmit = asked.params
    _, core = _find(gateway, session, params.run)
    try:
        submit(_going_on(core, params.run), params.results)
    except (SubmissionRefused, RunOver) as error:
        raise WireError("invalid_argument", str(error)) from None
    return gateway.durable(Nothing())


def _find(gateway: Gateway, session: Session, run: str) -> tuple[Agent, RunCore | None]:
    """The agent in whose log a run speaks or spoke, and the run if it goes on. Raises `WireError` (`not_found`)."""
    for agent in gateway.visible_to(session.principal):
        if run in agent.stream.runs:
            going_on = (core for core in family_of(agent.current) if core.run == run and not core.over.is_set())
            return agent, next(going_on, None)
    raise WireError("not_found", f"there is no run {run!r}")


def _going_on(core: RunCore | None, run: str) -> RunCore:
    if core is None:
        raise WireError("not_found", f"run {run} has ended")
    return core


def _state_of_run(agent: Agent, run: str) -> RunState:
    for core in family_of(agent.current):
        if core.run == run and not core.over.is_set():
            return state_of(core)
    return _ENDS.get(agent.stream.runs.get(run), "ended")


def lowered(agent: Agent, asked: RunLimits | None) -> Limits | None:
    """The agent's limits, where a client's are not lower."""
    if asked is None:
        return None
    own = agent.spec.limits()
    least: dict[str, Any] = {}
    for field in attrs.fields(Limits):
        given = [value for value in (getattr(own, field.name), getattr(asked, field.name)) if value is not None]
        least[field.name] = min(given, default=None)
    return Limits(**least)
