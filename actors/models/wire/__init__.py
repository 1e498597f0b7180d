"""What the wire formats share: one HTTP client, event streams, JSON that may hold anything, errors that say enough.

httpx is named in one module here and imported when the first call is made.
"""

from __future__ import annotations

from ._body import check_extra_body, check_server_tools, encode_body, lay_over, refuse_owned
from ._call import Attempts, make_call
from ._endpoint import Endpoint
from ._http import HttpClient, HttpStatistics
from ._json import items, mapping, number, parse, string
from ._model import HttpModel, RemoteModel
from ._options import ConnectionOptions, Vendor, connect
from ._policy import CallPolicy, Delivery
from ._reading import ReplyReader, read_head, read_turn
from ._refusals import ServerFault, fault_in, refusal
from ._reply import HttpReply
from ._retry import retry_wait
from ._sse import EventStreamDecoder, EventTooLargeError, ServerSentEvent
from ._told import check_reply, parse_reply, reply_fault

__all__ = (
    "Attempts",
    "CallPolicy",
    "ConnectionOptions",
    "Delivery",
    "Endpoint",
    "EventStreamDecoder",
    "EventTooLargeError",
    "HttpClient",
    "HttpModel",
    "HttpReply",
    "HttpStatistics",
    "RemoteModel",
    "ReplyReader",
    "ServerFault",
    "ServerSentEvent",
    "Vendor",
    "check_extra_body",
    "check_reply",
    "check_server_tools",
    "connect",
    "encode_body",
    "fault_in",
    "items",
    "lay_over",
    "make_call",
    "mapping",
    "number",
    "parse",
    "parse_reply",
    "read_head",
    "read_turn",
    "refusal",
    "refuse_owned",
    "reply_fault",
    "retry_wait",
    "string",
)
