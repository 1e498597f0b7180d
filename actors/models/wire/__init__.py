"""What the wire formats share: one HTTP client, event streams, JSON that may hold anything, errors that say enough.

httpx is named in one module here and imported when the first call is made.
"""

from __future__ import annotations

from ._endpoint import Endpoint
from ._http import HttpClient, HttpStatistics
from ._json import items, mapping, number, parse, string
from ._model import HttpModel
from ._options import ConnectionOptions, Vendor, connect
from ._reading import ReplyReader, read_turn
from ._refusals import ServerFault, fault_in, refusal
from ._sse import EventStreamDecoder, EventTooLargeError, ServerSentEvent

__all__ = (
    "ConnectionOptions",
    "Endpoint",
    "EventStreamDecoder",
    "EventTooLargeError",
    "HttpClient",
    "HttpModel",
    "HttpStatistics",
    "ReplyReader",
    "ServerFault",
    "ServerSentEvent",
    "Vendor",
    "connect",
    "fault_in",
    "items",
    "mapping",
    "number",
    "parse",
    "read_turn",
    "refusal",
    "string",
)
