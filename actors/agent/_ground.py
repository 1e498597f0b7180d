"""What the runs of an agent stand on: new, or as it was written down."""

from __future__ import annotations

import attrs
import trio

from protocol.estimate import Gauge
from protocol.history import History
from protocol.idem import IdempotencyStore
from protocol.records import StoredAgent, StoredEvents
from protocol.requests import RequestTable

from ..eventlog import EventStream
from ..journal import Journal
from ._core import RunCore
from ._keeper import Keeper
from ._models import ModelUse
from ._shared import Shared

__all__ = ("Ground", "lay_ground")


@attrs.frozen(eq=False)
class Ground:
    """What the runs of an agent stand on."""

    history: History
    requests: RequestTable
    commands: IdempotencyStore
    """What clients' commands came to."""
    journal: Journal
    models: ModelUse
    shared: Shared
    keepers: tuple[Keeper, ...]
    gauge: Gauge = attrs.field(factory=Gauge)
    """What estimates of its requests are worth."""

    def under(self, parent: RunCore) -> Ground:
        """What they stand on when a tool of another agent's run starts them: its requests, and its journal too."""
        return attrs.evolve(self, requests=parent.requests, keepers=(*parent.keepers, *self.keepers))


def lay_ground(
    journal: Journal,
    models: ModelUse,
    shared: Shared,
    agent: str,
    name: str,
    *,
    history: History,
    event_log_bytes: int,
    is_kept: bool,
    stored: tuple[StoredAgent, StoredEvents] | None,
) -> tuple[Ground, EventStream]:
    """Conversation, requests and events of an agent; where it `is_kept`, they are written down from now on."""
    found, events = stored or (None, None)
    epoch = "" if found is None else found.epoch
    if not is_kept:
        stream = EventStream(agent, max_bytes=event_log_bytes, epoch=epoch, stored=events)
        return Ground(history, RequestTable(trio.current_time), IdempotencyStore(), journal, models, shared, ()), stream
    keeper = Keeper(journal, agent, name, history)
    stream = EventStream(agent, appended=keeper.appended, max_bytes=event_log_bytes, epoch=epoch, stored=events)
    requests = RequestTable(trio.current_time, keeper.commit)
    commands = IdempotencyStore(on_answer=keeper.answered)
    keeper.keep(stream, requests, commands)
    if found is not None:
        keeper.made = found.made
        requests.take_up(found.closed, found.numbers)
        commands.take_up(found.answered)
        for run, end in found.ended.items():
            stream.know(run, end)
    return Ground(history, requests, commands, journal, models, shared, (keeper,)), stream
