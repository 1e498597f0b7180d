"""Hand-off: the run goes on with another agent's model, system, tools, hooks and settings (loop.md N4).

Run, window, limits, gate, finalization, conditions, step numbers and account stay: agents that hand over to each other in
a circle draw on one ledger.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import msgspec

from protocol.errors import SpecError
from protocol.events import HandedOff

from ..tools import Tool, external_tool, render_error
from ._core import RunCore
from ._foreign import FOREIGN, as_failure
from ._resolve import Ready
from ._spec import AgentSpec

__all__ = ("hand_over", "handoff", "set_aside_transfers", "take_transfer")

_PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"reason": {"type": "string", "description": "Why the other agent should go on."}},
    "additionalProperties": False,
}


def handoff(
    target: AgentSpec | Callable[[], AgentSpec], *, agent: str | None = None, description: str | None = None
) -> Tool:
    """A tool `transfer_to_NAME` that hands the run over to another agent, which goes on in the same conversation.

    Of the target, model, system, tools, hooks and settings count; its limits, gate and finalization do not. Agents that
    hand over to each other in a circle give a function, which is asked when the hand-off happens, and say the agent's
    name: `handoff(lambda: auditor, agent="auditor")`. Raises `SpecError`.
    """
    if isinstance(target, AgentSpec):
        name, spec = target.name, target
        target = lambda: spec  # noqa: E731  the two forms are one from here on
    elif callable(target) and agent is not None:
        name = agent
    else:
        raise SpecError(
            f"handoff(target): it must be an AgentSpec, or a function that returns one, with agent= its name; it is {target!r}"
        )
    return external_tool(
        f"transfer_to_{name}",
        description or f"Hand the conversation over to {name}, which goes on in your place.",
        _PARAMETERS,
        target=target,
    )


def set_aside_transfers(core: RunCore, ready: list[Ready]) -> list[Ready]:
    """The calls that are no hand-off; the first hand-off is kept for when they have run, any other is not run."""
    others: list[Ready] = []
    for item in ready:
        if item.tool.target is None:
            others.append(item)
        elif core.transfer is None:
            core.transfer = item
        else:
            core.answer(item.call, "not_run", "Not run: this turn already hands over to another agent.")
    return others


def take_transfer(core: RunCore) -> None:
    """Answer the hand-off of the turn in hand, now that the other calls have run."""
    item = core.transfer
    if item is None:
        return
    name = item.tool.name.removeprefix("transfer_to_")
    try:
        core.transfer = _agent_of(item.tool)
    except FOREIGN as error:
        if as_failure(error) is None:
            raise
        core.transfer = None
        core.answer(item.call, "error", f"Not handed over to {name}: {render_error(error)}")
    else:
        core.answer(item.call, "ok", f"Handed over to {name}.")


def _agent_of(tool: Tool) -> AgentSpec:
    assert tool.target is not None
    target = tool.target()
    if not isinstance(target, AgentSpec):
        raise SpecError(f"the function of handoff() must return an AgentSpec; it returned {type(target).__name__}")
    return target


def hand_over(core: RunCore) -> None:
    """Go on as the agent that the turn handed over to."""
    target, core.transfer = core.transfer, None
    if target is None:
        return
    state = core.state
    core.act_as(target)
    state.acting = target.name
    state.kept = attrs.evolve(state.kept, system=msgspec.UNSET)  # a system prompt that a hook set was the other's
    state.obeyed_choice = state.spent_choice = False
    core.log.emit(HandedOff(run=core.run, agent_path=core.path, agent=target.name, model=target.model.name))
