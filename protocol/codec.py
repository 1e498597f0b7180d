"""JSON in and out. Encoding never fails on what a program put into an event: it replaces and reports."""

from __future__ import annotations

import hashlib
from typing import Any, TypeVar, cast

import msgspec

from .events import Event, EventUnion
from .text import clean

__all__ = ("decode", "decode_event", "digest_of", "encode", "encode_event", "encode_strictly")

T = TypeVar("T")

_encoder = msgspec.json.Encoder()
encode_strictly = _encoder.encode
"""Encode as it is, fast; raises what msgspec raises for what JSON has no form for."""
_event_decoder: msgspec.json.Decoder[EventUnion] = msgspec.json.Decoder(EventUnion)


def encode(value: object) -> bytes:
    """Encode a value of the vocabulary. Lone surrogates become U+FFFD; what JSON has no form for becomes its `repr`."""
    try:
        return _encoder.encode(value)
    except (UnicodeEncodeError, TypeError, ValueError, OverflowError):
        return _encoder.encode(_cleaned(msgspec.to_builtins(value, enc_hook=_told)))


def encode_event(event: Event) -> bytes:
    """Encode an event whatever it holds: what JSON has no form for is replaced, what is too deep is left out."""
    try:
        return encode(event)
    except Exception:  # noqa: BLE001  whatever a value does: keep the number, lose the content
        return _encoder.encode({"type": event.type, "run": getattr(event, "run", "")})


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


def _told(value: Any) -> Any:
    """What stands for a value that has no form in JSON; what is encoded already is read again."""
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else repr(value)


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        mapping = cast("dict[Any, Any]", value)
        return {clean(str(key)): _cleaned(item) for key, item in mapping.items()}
    if isinstance(value, (list, tuple)):
        return [_cleaned(item) for item in cast("list[Any]", value)]
    if type(value) is int and value.bit_length() > _MOST_BITS:
        return hex(value)
    return value


_MOST_BITS = 14_000  # of an integer whose decimal form the interpreter still makes (4300 digits)
