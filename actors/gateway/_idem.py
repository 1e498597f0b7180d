"""A command that is sent again gets its stored answer."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from protocol.wire.envelope import Asked
from protocol.wire.idem import IdempotencyStore
from protocol.wire.replies import Reply

from ._session import Session

__all__ = ("Store", "found", "kept", "replayed")

R = TypeVar("R", bound=Reply)

Store = IdempotencyStore[Any]
"""Of one agent: replies, and runs that are about to begin."""


def found(store: Store, session: Session, asked: Asked) -> Any:
    """What the same command of the same principal came to; `None` if it is new. Raises `WireError`."""
    return store.find(session.principal.name, asked.method, asked.params.idem, asked.raw)


def kept(store: Store, session: Session, asked: Asked, value: Any) -> None:
    """Keep what an accepted command came to."""
    store.put(session.principal.name, asked.method, asked.params.idem, asked.raw, value)


def replayed(reply: R) -> R:
    """A stored reply, marked as such."""
    return msgspec.structs.replace(reply, replayed=True)
