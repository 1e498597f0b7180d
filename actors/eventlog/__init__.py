"""The event log: one stream per root agent, the runs that write into it, and its readers."""

from ._observer import Observer
from ._reader import EventReader, EventsLost
from ._run_log import RunLog
from ._stream import Appended, Entry, EventStream, Follower, StreamStatistics

__all__ = (
    "Appended",
    "Entry",
    "EventReader",
    "EventStream",
    "EventsLost",
    "Follower",
    "Observer",
    "RunLog",
    "StreamStatistics",
)
