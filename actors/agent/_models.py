"""Which models an agent has asked, so that each is closed when nobody uses it any more.

A model may hold connections open, and is worth keeping for as long as it may be asked again. So an agent holds its own
model, those of its hooks, tools and hand-offs once they were asked, and those of the agents that are spawned in its
runs: a sub-agent comes and goes with each task, and its model stays until the agent that gives the tasks has ended.
"""

from __future__ import annotations

from collections import Counter

import attrs
import trio

from protocol.model import Model

from ..logs import get_logger

__all__ = ("ModelUse",)

logger = get_logger(__name__)


@attrs.define(eq=False)
class ModelUse:
    """The models that one agent uses."""

    users: Counter[int] = attrs.field(factory=Counter[int], repr=False)
    """The runtime's: how many agents use each model."""
    above: ModelUse | None = None
    """That of the agent in whose run this one was spawned."""
    _held: dict[int, Model] = attrs.field(factory=dict[int, Model])

    def hold(self, model: Model) -> None:
        """Use a model from now on."""
        if id(model) not in self._held:
            self._held[id(model)] = model
            self.users[id(model)] += 1
            if self.above is not None:
                self.above.hold(model)

    async def release(self) -> None:
        """Use none any more: those that nobody else uses are closed, side by side; they open again if they are asked."""
        held, self._held = self._held, {}
        async with trio.open_nursery() as nursery:
            for model in held.values():
                self.users[id(model)] -= 1
                if not self.users[id(model)]:
                    del self.users[id(model)]
                    nursery.start_soon(_close, model)


async def _close(model: Model) -> None:
    aclose = getattr(model, "aclose", None)
    if aclose is None:
        return
    try:
        await aclose()
    except Exception:
        logger.exception("closing a model failed", model=model.name)
