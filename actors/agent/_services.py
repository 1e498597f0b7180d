"""The four services of a run, as whoever drives it sees them: ports to ask."""

from __future__ import annotations

import attrs

from ..kit import Port
from ._arbiter import ArbiterAsk
from ._budget import Reserve
from ._session import Think
from ._toolbox import ToolboxAsk

__all__ = ("Services",)


@attrs.frozen(eq=False)
class Services:
    """Asked by the driver alone: services never ask each other."""

    budget: Port[Reserve]
    session: Port[Think]
    toolbox: Port[ToolboxAsk]
    arbiter: Port[ArbiterAsk]
