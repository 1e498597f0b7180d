"""JSON-RPC 2.0 as `onward.v1` uses it: one frame in, a command or a fault out; replies and notifications back."""

from __future__ import annotations

from typing import Any, TypeAlias, cast

import attrs
import msgspec

from ..codec import encode
from .methods import METHODS, Method
from .strict import NotStrictError, strict_loads
from .words import (
    APPLICATION_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    ErrorWord,
    WireLimits,
)

__all__ = (
    "Asked",
    "Fault",
    "RequestId",
    "WireError",
    "error_reply",
    "notification",
    "read_frame",
    "refusal_reply",
    "result_reply",
)

RequestId: TypeAlias = int | str
"""A command's `id`: an integer within 2^53, or a string of 1 to 64 characters."""


@attrs.frozen
class Asked:
    """A command that fits its schema."""

    id: RequestId
    method: str
    params: Any
    raw: Any
    """The parameters as they came: what an `idem` is compared by."""
    rule: Method


@attrs.frozen
class Fault:
    """A frame that is no command: the error to answer with."""

    id: RequestId | None
    code: int
    message: str
    method: str | None = None
    """What it would have been, as far as that could be read."""


class WireError(Exception):
    """A refusal of a command, as its client is told: a word, and more about it."""

    def __init__(self, code: ErrorWord, message: str, *, retryable: bool = False, **data: Any) -> None:
        super().__init__(message)
        self.code: ErrorWord = code
        self.data = {"code": code, "retryable": retryable, **data}


def read_frame(text: str | bytes, limits: WireLimits | None = None) -> Asked | Fault:
    """Read one frame of a client. Never raises."""
    try:
        value = strict_loads(text, max_depth=(limits or _LIMITS).depth)
    except NotStrictError as error:
        return Fault(None, PARSE_ERROR, f"the frame is no strict JSON: {error}")
    if not isinstance(value, dict):
        return Fault(None, INVALID_REQUEST, "a frame holds one JSON object: send commands one by one")
    frame = cast("dict[str, Any]", value)
    id = _id_of(frame.get("id"))
    if id is None:
        return Fault(None, INVALID_REQUEST, "id must be an integer within 2^53 or a string of 1 to 64 characters")
    method = frame.get("method")
    if frame.get("jsonrpc", "2.0") != "2.0" or not isinstance(method, str):
        return Fault(id, INVALID_REQUEST, 'a command is {"jsonrpc": "2.0", "id", "method", "params"}')
    rule = METHODS.get(method)
    if rule is None:
        text = f"there is no method {method[:64]!r}; methods: {', '.join(METHODS)}"
        return Fault(id, METHOD_NOT_FOUND, text, method)
    raw = frame.get("params", {})
    try:
        params = msgspec.convert(raw, rule.params)
    except msgspec.ValidationError as error:
        return Fault(id, INVALID_PARAMS, f"{method}: {error}", method)
    return Asked(id, method, params, raw, rule)


def _id_of(value: Any) -> RequestId | None:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= 2**53:
        return value
    return value if isinstance(value, str) and 1 <= len(value) <= 64 else None


def result_reply(id: RequestId, result: Any) -> bytes:
    """The answer to a command that was done."""
    return encode({"jsonrpc": "2.0", "id": id, "result": result})


def error_reply(fault: Fault) -> bytes:
    """The answer to a frame that is no command."""
    return encode({"jsonrpc": "2.0", "id": fault.id, "error": {"code": fault.code, "message": fault.message}})


def refusal_reply(id: RequestId | None, error: WireError) -> bytes:
    """The answer to a command that was refused."""
    body = {"code": APPLICATION_ERROR, "message": str(error), "data": error.data}
    return encode({"jsonrpc": "2.0", "id": id, "error": body})


def notification(method: str, params: Any) -> bytes:
    """What the server says on its own."""
    return encode({"jsonrpc": "2.0", "method": method, "params": params})


_LIMITS = WireLimits()
