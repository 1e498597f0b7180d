"""What a client receives: a frame of the server, read into messages; and the command that it sends."""

from __future__ import annotations

from typing import Any

import msgspec

from ..codec import encode
from .envelope import RequestId
from .notifications import Events, Heartbeat

__all__ = ("Incoming", "NotOfTheWireError", "Refusal", "command", "read_messages", "read_params")


class NotOfTheWireError(ValueError):
    """A server sent what `onward.v1` has no place for: it speaks something else, or its frame was damaged."""


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """Why a command was not done."""

    code: int
    message: str = ""
    data: dict[str, Any] = {}


class Incoming(msgspec.Struct, frozen=True, gc=False):
    """One message: a notification where `method` is set, else the reply to the command `id`."""

    id: RequestId | None = None
    method: str | None = None
    params: msgspec.Raw = msgspec.Raw(b"{}")
    result: msgspec.Raw = msgspec.Raw(b"")
    error: Refusal | None = None


_one = msgspec.json.Decoder(Incoming)
_several = msgspec.json.Decoder(tuple[Incoming, ...])
_events = msgspec.json.Decoder(Events)
_heartbeat = msgspec.json.Decoder(Heartbeat)


def read_messages(frame: str) -> tuple[Incoming, ...]:
    """The messages in one frame, in order. Raises `NotOfTheWireError`."""
    try:
        return _several.decode(frame) if frame.lstrip()[:1] == "[" else (_one.decode(frame),)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise NotOfTheWireError(f"the server sent what is no message of this protocol: {error}") from None


def read_params(message: Incoming) -> Events | Heartbeat | None:
    """What a notification says; `None` for one that this version does not know. Raises `NotOfTheWireError`."""
    try:
        match message.method:
            case "events":
                return _events.decode(message.params)
            case "heartbeat":
                return _heartbeat.decode(message.params)
            case _:
                return None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise NotOfTheWireError(f"{message.method}: {error}") from None


def command(id: RequestId, method: str, params: Any) -> str:
    """The frame of one command."""
    return encode({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).decode()
