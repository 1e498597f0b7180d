"""A decode in hand: its state, and what may happen to it."""

from __future__ import annotations

from typing import Any

from protocol.decode import LoopState, NextHop, Raise
from protocol.errors import (
    ContinuationInterrupted,
    ModelError,
    ModelReplyError,
    ModelServerError,
    ModelTimeout,
    ModelUnreachable,
)
from tests.protocol.decode.speech import completed, created, delta, start, stop

BODY = {"model": "m", "input": "hi"}
DROP = ModelError("the connection broke", retryable=True)
GONE = ModelUnreachable("cannot connect", retryable=True)
SILENT = ModelTimeout("went silent", retryable=True)
REFUSED = ModelServerError("answered 503", status=503, retryable=True)
GARBAGE = ModelReplyError("no JSON")


def decode(**settings: Any) -> LoopState:
    return LoopState(settings.pop("body", BODY), **settings)


def feed(state: LoopState, *events: dict[str, Any]) -> LoopState:
    state.hop.opened = True
    for event in events:
        state.observe(event)
    return state


def interrupted(decision: object) -> ContinuationInterrupted:
    assert isinstance(decision, Raise)
    assert isinstance(decision.error, ContinuationInterrupted)
    return decision.error


def to_hop_2(**settings: Any) -> LoopState:
    """One hop is over, and the second has opened."""
    state = feed(decode(**settings), created(), start(), delta("A"), stop(), completed("requires_continuation", "t1"))
    assert NextHop("t1") == state.end_hop()
    state.hop.opened = True
    return state
