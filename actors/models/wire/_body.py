"""A request's body: what a program lays over it, and how it becomes bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

import msgspec

from protocol import codec
from protocol.errors import SpecError

T = TypeVar("T")

__all__ = ("check_extra_body", "check_server_tools", "encode_body", "lay_over", "refuse_owned")


def refuse_owned(field: str, given: Mapping[str, Any], owned: Iterable[str]) -> None:
    """Raise `SpecError` if `given` sets what each request says itself."""
    taken = [name for name in owned if name in given]
    if taken:
        raise SpecError(f"{field} must not set {', '.join(taken)}: each request says that itself")


def check_extra_body(extra_body: Mapping[str, Any], owned: Iterable[str]) -> dict[str, Any]:
    """A copy that later changes do not reach. Raises `SpecError` for what is no JSON, or is `owned` by the request."""
    refuse_owned("extra_body", extra_body, owned)
    return _copied(extra_body, dict[str, Any], "extra_body must be a JSON object")


def check_server_tools(server_tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A copy that later changes do not reach. Raises `SpecError` for what is no list of JSON objects."""
    return _copied(server_tools, list[dict[str, Any]], "server_tools must be a list of JSON objects")


def _copied(value: object, kind: type[T], what: str) -> T:
    try:
        return msgspec.json.decode(_encoder.encode(value), type=kind)
    except (TypeError, ValueError, RecursionError) as error:
        raise SpecError(f"{what}: {error}") from error


def lay_over(body: dict[str, Any], fields: Mapping[str, Any]) -> None:
    """Set `fields` in `body`; `None` as a value removes a field."""
    for name, value in fields.items():
        if value is None:
            body.pop(name, None)
        else:
            body[name] = value


def encode_body(body: Mapping[str, Any]) -> bytes:
    """Strict UTF-8 JSON; lone surrogates become U+FFFD. Raises `TypeError` for what has no form in JSON."""
    try:
        return _encoder.encode(body)
    except UnicodeEncodeError:
        return codec.encode(msgspec.to_builtins(body, enc_hook=_plain))


def _plain(value: Any) -> Any:
    """Schemas and options may be held in read-only views, which the encoder does not know."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    raise TypeError(f"{type(value).__name__} has no form in JSON")


_encoder = msgspec.json.Encoder(enc_hook=_plain)
