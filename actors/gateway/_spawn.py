"""`agent.spawn`: agents from templates that the host registered. A client names one and sets what it permits: never code."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from protocol.errors import AgentStopped, RuntimeFull, SpecError
from protocol.limits import Limits
from protocol.records import Made
from protocol.wire import WireError
from protocol.wire.commands import AgentSpawn
from protocol.wire.envelope import Asked
from protocol.wire.replies import Spawned

from ..agent import AgentSpec, LimitsWarning
from ..logs import get_logger
from ._idem import found, kept, replayed
from ._session import Session
from ._texts import check_text

if TYPE_CHECKING:
    from ._server import Gateway

__all__ = ("SETTINGS", "Template", "bring_back", "check_templates", "spawn_agent")

logger = get_logger(__name__)

_LIMITS = frozenset(field.name for field in attrs.fields(Limits)) | {"max_steps"}
SETTINGS = _LIMITS | {
    "approval_timeout_seconds",
    "callback_timeout_seconds",
    "continuation_timeout_seconds",
    "finalization_retry",
    "finalization_window_seconds",
    "max_continues",
    "max_grant",
    "max_parallel_tools",
    "max_reasks",
    "max_tokens",
    "max_tool_output_chars",
    "system",
    "temperature",
    "tool_timeout_seconds",
}
"""Settings of an agent that are plain values: what a template of a spec may let clients set."""


@attrs.frozen
class Template:
    """What a client may make an agent from. Raises `SpecError` for what cannot be right.

    `spec` is a spec, or a function that makes one: it is given the client's overrides by keyword, and raises `ValueError`
    (as `SpecError` is one) for those that are wrong. `overrides` are the names that a client may set: of a spec, those in
    `SETTINGS`, and limits only lower what the spec has; of a function, any of its parameters.
    """

    spec: AgentSpec | Callable[..., AgentSpec]
    overrides: Collection[str] = ()

    def __attrs_post_init__(self) -> None:
        if isinstance(self.overrides, str):
            raise SpecError(f"Template(overrides=) must be a set of names; it is {self.overrides!r}")
        if isinstance(self.spec, AgentSpec):
            unknown = sorted(set(self.overrides) - SETTINGS)
            if unknown:
                raise SpecError(
                    f"Template(overrides=): a client cannot set {', '.join(unknown)}; it may set {', '.join(sorted(SETTINGS))},"
                    " or give a function in place of the spec"
                )
        elif not callable(self.spec):
            raise SpecError(f"a template is made of an AgentSpec, or a function that makes one; it is {self.spec!r}")

    def make(self, overrides: Mapping[str, Any], name: str | None) -> AgentSpec:
        """The spec of a new agent. Raises `ValueError` for overrides that are not permitted, or wrong."""
        refused = sorted(set(overrides) - set(self.overrides))
        if refused:
            permitted = ", ".join(sorted(self.overrides)) or "none"
            raise SpecError(f"overrides: {', '.join(refused)} cannot be set here; permitted are {permitted}")
        with warnings.catch_warnings(category=LimitsWarning, action="ignore"):  # a client's: it has nobody to warn
            if isinstance(self.spec, AgentSpec):
                spec = attrs.evolve(self.spec, **_lowering(self.spec, overrides))
            else:
                spec = self.spec(**overrides)
            return spec if name is None else attrs.evolve(spec, name=name)


def check_templates(templates: Mapping[str, Template]) -> dict[str, Template]:
    """A copy of what the host registers. Raises `SpecError` for what is no template."""
    for name, template in templates.items():
        if not isinstance(template, Template):
            raise SpecError(f"templates must map names to Template(...); {name!r} is {template!r}")
    return dict(templates)


def spawn_agent(gateway: Gateway, session: Session, asked: Asked) -> Awaitable[Spawned]:
    """`agent.spawn`."""
    params: AgentSpawn = asked.params
    wanted = params.spec
    template = _known_template(gateway, wanted.template)
    commands = gateway.runtime.commands
    reply: Spawned | None = found(commands, session, asked)
    if reply is not None:
        return _when_hosted(gateway, replayed(reply))
    for key, value in wanted.overrides.items():
        check_text(session, f"overrides.{key}", value if isinstance(value, str) else None)
    try:
        spec = template.make(wanted.overrides, wanted.name)
    except (ValueError, TypeError) as error:
        raise WireError("invalid_argument", str(error)) from None
    if not session.principal.may_see(spec.name):
        raise WireError("forbidden", f"this principal may have no agent of the name {spec.name!r}")
    try:
        agent = gateway.runtime.spawn_soon(spec)
    except AgentStopped as error:
        raise WireError("draining", str(error), retryable=not gateway.ready) from None
    except RuntimeFull as error:
        raise WireError("busy", str(error), retryable=True) from None
    reply = Spawned(agent=agent.id, name=agent.name)
    agent.made_by(Made(wanted.template, wanted.overrides, kept(commands, session, asked, reply)))
    return _when_hosted(gateway, reply)


async def _when_hosted(gateway: Gateway, reply: Spawned) -> Spawned:
    for agent in gateway.runtime.agents:
        if agent.id == reply.agent:
            await agent.hosted.wait()
    return await gateway.durable(reply)


async def bring_back(gateway: Gateway) -> None:
    """Bring back the agents that clients had made, as far as their templates are there; the others are told of, and stay.

    Raises `JournalError` if the journal cannot be read.
    """
    for known in gateway.runtime.not_back:
        if known.made is None:
            continue
        try:
            spec = _known_template(gateway, known.made.template).make(known.made.overrides, known.name)
        except (ValueError, TypeError, WireError) as error:
            gateway.left_out[known.id] = f"agent {known.name} ({known.id}) is not brought back, but kept: {error}"
            logger.warning("agent not brought back", agent=known.id, why=gateway.left_out[known.id])
        else:
            await gateway.runtime.bring_back(known, spec)


def _known_template(gateway: Gateway, name: str) -> Template:
    template = gateway.templates.get(name)
    if template is None:
        known = ", ".join(sorted(gateway.templates)) or "none"
        raise WireError("not_found", f"there is no template {name!r}; there are: {known}")
    return template


def _lowering(spec: AgentSpec, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The overrides, but no limit that is higher than the spec's own: `None` is no limit."""
    return {name: _lower(name, value, getattr(spec, name)) for name, value in overrides.items()}


def _lower(name: str, value: Any, own: Any) -> Any:
    if name not in _LIMITS or own is None:
        return value
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    return min(value, own) if plain else own if value is None else value
