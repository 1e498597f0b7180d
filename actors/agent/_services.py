"""The four services of a run, as whoever drives it sees them: ports to ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from ..kit import Port
from ._arbiter import ArbiterAsk
from ._budget import Reserve
from ._session import Think
from ._toolbox import ToolboxAsk

__all__ = ("Services",)


@final
class Services:
    """Asked by the driver alone: services never ask each other."""

    __slots__ = ("_arbiter", "_open_arbiter", "budget", "session", "toolbox")

    def __init__(
        self,
        budget: Port[Reserve],
        session: Port[Think],
        toolbox: Port[ToolboxAsk],
        open_arbiter: Callable[[], Port[ArbiterAsk]],
    ) -> None:
        self.budget = budget
        self.session = session
        self.toolbox = toolbox
        self._open_arbiter = open_arbiter
        self._arbiter: Port[ArbiterAsk] | None = None

    @property
    def arbiter(self) -> Port[ArbiterAsk]:
        """Started when there is something to ask: most runs never ask anybody anything."""
        if self._arbiter is None:
            self._arbiter = self._open_arbiter()
        return self._arbiter
