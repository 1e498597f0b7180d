"""What all agents of a runtime share, and how much of it there is."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, cast

import attrs

from protocol.errors import RuntimeFull, SpecError
from protocol.history import History
from protocol.ledger import Account
from protocol.limits import at_least_one
from protocol.model import Model

from ._budgets import Budget
from ._memory import HistoryMemory
from ._model_slots import ModelSlots
from ._probe import Watch
from ._threads import ToolThreads

__all__ = ("RuntimeLimits", "Shared")


def _calls_at_a_time(instance: object, field: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, Mapping):
        at_least_one(instance, field, cast("int | None", value))
        return
    for provider, most in cast("Mapping[object, object]", value).items():
        if not isinstance(provider, str) or not provider or type(most) is not int or most < 1:
            raise SpecError(
                f"{field.name} must map providers, such as 'api.openai.com' or '*' for all others, to integers >= 1;"
                f" it has {provider!r}: {most!r}"
            )


@attrs.frozen(kw_only=True)
class RuntimeLimits:
    """What all agents of a runtime may take together. `None` is no limit.

    Raises `SpecError` for what is neither `None` nor a number that a limit can be.
    """

    max_agents: int | None = attrs.field(default=None, validator=at_least_one)
    """Agents that are there, idle ones and sub-agents too. One more is refused with `RuntimeFull`."""
    max_model_calls: int | Mapping[str, int] | None = attrs.field(default=None, validator=_calls_at_a_time)
    """Model calls at a time, for each provider; or by provider, `"*"` for those that are not named. A provider is a server's
    host, with its port where the address names one; of a model that is not over HTTP, its name up to the colon. Calls that
    are too many wait, fairly: the agents take turns, each with its sub-agents."""
    max_history_bytes: int | None = attrs.field(default=None, validator=at_least_one)
    """What the conversations of all agents take of memory, by estimate. A run that finds no room is refused with
    `RuntimeFull`; one that goes on ends at its next step, by the limit `history_bytes`. So it is exceeded by no more than
    the steps in hand."""
    max_depth: int | None = attrs.field(default=cast("int | None", 32), validator=at_least_one)
    """How far below its root a sub-agent's run may stand. One that stands deeper is refused with `RuntimeFull`."""


@attrs.frozen(eq=False)
class Shared:
    """What all agents of a runtime share."""

    limits: RuntimeLimits = attrs.field(factory=RuntimeLimits)
    threads: ToolThreads = attrs.field(factory=ToolThreads)
    account: Account = attrs.field(factory=lambda: Account("runtime"))
    slots: ModelSlots | None = None
    memory: HistoryMemory | None = None
    watch: Watch = attrs.field(factory=Watch)
    """How runs are counted, and what stands around them."""

    @classmethod
    def of(cls, limits: RuntimeLimits | None, *, tool_threads: int, budget: Budget | None) -> Shared:
        """Of a new runtime. Raises `SpecError` for what is no limit, or no budget."""
        if budget is not None and not isinstance(budget, Budget):
            raise SpecError(f"open_runtime(budget=) must be a Budget(...), or None for none; it is {budget!r}")
        if limits is not None and not isinstance(limits, RuntimeLimits):
            raise SpecError(f"open_runtime(limits=) must be RuntimeLimits(...), or None; it is {limits!r}")
        found = limits or RuntimeLimits()
        return cls(
            found,
            ToolThreads(tool_threads),
            Account("runtime", parents=(budget.account,) if budget is not None else ()),
            None if found.max_model_calls is None else ModelSlots(found.max_model_calls),
            None if found.max_history_bytes is None else HistoryMemory(found.max_history_bytes),
        )

    def slot(self, model: Model, line: str) -> AbstractAsyncContextManager[None]:
        """Inside the block, a call of this model may be made for the agent that the line is named after."""
        limiter = None if self.slots is None else self.slots.of(model)
        return contextlib.nullcontext() if limiter is None else limiter.slot(line)

    def need_room(self, history: History, name: str) -> None:
        """Raise `RuntimeFull` if there is no room for what a new agent begins with."""
        if self.memory is not None and len(history):
            self.memory.admit(history.bytes, f"the messages of agent {name}")

    def note(self, history: History) -> None:
        """A history is new, or may have grown."""
        if self.memory is not None:
            self.memory.note(history)

    def forget(self, history: History) -> None:
        """The agent of a history is gone."""
        if self.memory is not None:
            self.memory.forget(history)

    def admit(self, name: str, depth: int, history: History, prompt: str | None) -> None:
        """Whether a run may begin. Raises `RuntimeFull`."""
        most = self.limits.max_depth
        if most is not None and depth > most:
            raise RuntimeFull(
                f"agent {name} would run {depth} levels below its root, and the runtime allows {most}: let fewer agents give"
                " tasks to others, or raise max_depth"
            )
        if self.memory is not None:
            self.memory.note(history)
            self.memory.admit(len(prompt.encode()) if prompt else 1, f"another run of agent {name}")
