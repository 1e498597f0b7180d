"""A command that is sent again gets its stored answer."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from protocol.codec import decode, encode
from protocol.idem import Answered, IdemConflict, IdempotencyStore
from protocol.wire import WireError
from protocol.wire.envelope import Asked
from protocol.wire.replies import Reply

from ._session import Session

__all__ = ("begun", "dropped", "found", "kept", "replayed")

R = TypeVar("R", bound=Reply)


def found(store: IdempotencyStore, session: Session, asked: Asked) -> Any:
    """What the same command of the same principal came to, or is under way as; `None` if it is new. Raises `WireError`."""
    try:
        value = store.find(session.principal.name, asked.method, asked.params.idem, asked.raw)
    except IdemConflict as error:
        raise WireError("idem_conflict", str(error)) from None
    return decode(bytes(value), asked.rule.results[0]) if isinstance(value, msgspec.Raw) else value


def begun(store: IdempotencyStore, session: Session, asked: Asked, value: object) -> None:
    """Keep what stands for a command that is under way."""
    store.begin(session.principal.name, asked.method, asked.params.idem, asked.raw, value)


def kept(store: IdempotencyStore, session: Session, asked: Asked, reply: Reply) -> Answered:
    """Keep what an accepted command is answered with: in the step in which it is done, that both are written together."""
    return store.answer(session.principal.name, asked.method, asked.params.idem, asked.raw, encode(reply))


def dropped(store: IdempotencyStore, session: Session, asked: Asked) -> None:
    """What was under way has come to nothing: the key is free."""
    store.drop(session.principal.name, asked.method, asked.params.idem)


def replayed(reply: R) -> R:
    """A stored reply, marked as such."""
    return msgspec.structs.replace(reply, replayed=True)
