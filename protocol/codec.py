"""JSON in and out. Encoding never fails on what a program put into an event: it replaces and reports."""

from __future__ import annotations

import hashlib
from typing import Any, TypeVar, cast

import msgspec

from .events import Event, EventUnion
from .text import clean

__all__ = ("decode", "decode_event", "digest_of", "encode", "encode_event")

T = TypeVar("T")

_encoder = msgspec.json.Encoder()
_event_decoder: msgspec.json.Decoder[EventUnion] = msgspec.json.Decoder(EventUnion)


def encode(value: object) -> bytes:
    """Encode a value of the vocabulary. Lone surrogates become U+FFFD; what JSON has no form for becomes its `repr`."""
    try:
        return _encoder.encode(value)
    except (UnicodeEncodeError, TypeError, ValueError, OverflowError):
        return _encoder.encode(_cleaned(msgspec.to_builtins(value, enc_hook=repr)))


def encode_event(event: Event) -> tuple[bytes, str | None]:
    """Encode an event. Never raises: where it had to replace something, the second item says what was wrong."""
    try:
        return _encoder.encode(event), None
    except Exception as error:  # noqa: BLE001  whatever a value does, a log must not fail
        fault = f"{type(error).__name__}: {error}"
        try:
            return encode(event), fault
        except Exception:  # noqa: BLE001  deeper than JSON goes: keep the number, lose the content
            return _encoder.encode({"type": event.type, "run": getattr(event, "run", "")}), fault


def decode(data: bytes | str, kind: type[T]) -> T:
    """Decode strict JSON into `kind`. Raises `msgspec.ValidationError` or `msgspec.DecodeError`, with the path."""
    return msgspec.json.decode(data, type=kind)


def decode_event(data: bytes | str) -> EventUnion:
    """Decode one event by its `type`."""
    return _event_decoder.decode(data)


def digest_of(value: object) -> str:
    """A digest that two values share only if they encode the same: 32 hex digits of SHA-256."""
    data = msgspec.json.encode(_cleaned(msgspec.to_builtins(value, enc_hook=repr)), order="deterministic")
    return hashlib.sha256(data).hexdigest()[:32]


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        mapping = cast("dict[Any, Any]", value)
        return {clean(str(key)): _cleaned(item) for key, item in mapping.items()}
    if isinstance(value, (list, tuple)):
        return [_cleaned(item) for item in cast("list[Any]", value)]
    return value
