"""Automatic continuation of a long decode: the rules, without I/O (D1, D2, D4).

A provider that cannot finish a reply in one request hands out a token, and the next request presents it. `LoopState`
follows such a decode: `request_body()` is what to send, `observe()` takes what comes, `end_hop()` says what is next,
`merged()` is all there is up to now. What sends and waits is somebody else's.

A *hop* is one request of the decode. A *checkpoint* is a token that the server hands out, in the middle of a hop or
at its end: what was put out before it will not come again.
"""

from __future__ import annotations

from ._fold import InteractionFold, kind_of
from ._hop import HopRecord, HopState
from ._loop import Decision, Delivery, Done, LoopState, NextHop, Raise
from ._merge import merge, output_text
from ._plan import enabled, hop_body
from ._policy import Policy
from ._usage import merge_usage

__all__ = (
    "Decision",
    "Delivery",
    "Done",
    "HopRecord",
    "HopState",
    "InteractionFold",
    "LoopState",
    "NextHop",
    "Policy",
    "Raise",
    "enabled",
    "hop_body",
    "kind_of",
    "merge",
    "merge_usage",
    "output_text",
)
