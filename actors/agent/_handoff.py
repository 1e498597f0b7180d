"""Hand-off: the run goes on with another agent's model, system, tools, hooks and settings (loop.md N4).

Run, window, limits, gate, finalization, conditions, step numbers and account stay: agents that hand over to each other in
a circle draw on one ledger.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from protocol.errors import SpecError
from protocol.events import HandedOff

from ..tools import Tool, external_tool
from ._core import RunCore
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
    """Answer the hand-off of the turn in hand."""
    item = core.transfer
    if item is not None:
        core.answer(item.call, "ok", f"Handed over to {item.tool.name.removeprefix('transfer_to_')}.")


def hand_over(core: RunCore) -> None:
    """Go on as the agent that the turn handed over to."""
    item, core.transfer = core.transfer, None
    if item is None:
        return
    assert item.tool.target is not None
    target = item.tool.target()
    core.act_as(target)
    core.state.acting = target.name
    core.state.obeyed_choice = core.state.spent_choice = False
    core.log.emit(HandedOff(run=core.run, agent_path=core.path, agent=target.name, model=target.model.name))
