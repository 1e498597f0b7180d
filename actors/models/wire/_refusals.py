"""What a server says went wrong, and which error that is: one table for error statuses and for errors in a reply.

Servers agree on neither shape nor words; what is not known is a refusal with the server's own text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import attrs

from protocol import codec
from protocol.errors import ContextOverflow, ModelAuthError, ModelRateLimited, ModelRefused, ModelServerError

from ._endpoint import Endpoint
from ._json import items, mapping, number, parse, string
from ._retry import asked_seconds, should_retry, wait_in_body

__all__ = ("ServerFault", "fault_in", "refusal", "refusal_of_status")

_CONTEXT_WORDS = {"context_length_exceeded", "exceed_context_size_error", "context_window_exceeded"}
_CONTEXT_TEXT = re.compile(
    r"context[ _-](length|window|size|limit)|maximum context|prompt is too long|input is too long|input length .* exceeds",
    re.IGNORECASE,
)
_NOT_WORTH_REPEATING = {"insufficient_quota", "billing_hard_limit_reached"}
_STATUS_OF_WORD = {
    "authentication_error": 401,
    "invalid_api_key": 401,
    "unauthenticated": 401,
    "unauthorized": 401,
    "permission_error": 403,
    "permission_denied": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "resource_exhausted": 429,
    "insufficient_quota": 429,
    "invalid_request_error": 400,
    "invalid_argument": 400,
    "badrequesterror": 400,
    "api_error": 500,
    "internal_error": 500,
    "internal_server_error": 500,
    "server_error": 500,
    "service_unavailable": 503,
    "unavailable": 503,
    "unavailable_error": 503,
    "timeout_error": 504,
    "overloaded": 529,
    "overloaded_error": 529,
}
_RETRYABLE = {408, 409, 425, 429}


@attrs.frozen
class ServerFault:
    """An error as a server told it."""

    message: str
    words: tuple[str, ...] = ()
    """Its codes and types, in lower case."""
    status: int | None = None
    """The status that the body names."""
    retry_after_seconds: float | None = None
    """How long it asks to be left alone."""


def fault_in(body: Any) -> ServerFault | None:
    """The error that a reply holds in place of an answer or beside one, or `None`."""
    if isinstance(body, list):  # some wrap it in a list
        body = items(body)[0] if body else None
    whole = mapping(body)
    error: Any = whole.get("error")
    if not error and "error" in {string(whole.get("object")), string(whole.get("type"))}:
        error = whole
    if not error:
        return None
    if not isinstance(error, dict):
        return ServerFault(error if isinstance(error, str) else codec.encode(error).decode())
    inner = mapping(error)
    message = string(inner.get("message")) or string(inner.get("msg"))
    named = [inner.get("code"), inner.get("type"), inner.get("status")]
    statuses = [*named, whole.get("status"), whole.get("status_code"), whole.get("code")]
    return ServerFault(
        message or codec.encode(inner).decode(),
        tuple([word.lower() for word in named if isinstance(word, str) and not word.isdigit()]),
        next((status for status in map(_error_status, statuses) if status is not None), None),
        wait_in_body(inner),
    )


def refusal(endpoint: Endpoint, fault: ServerFault) -> ModelRefused:
    """The error for a fault that came inside a reply with status 200."""
    status = fault.status or next((_STATUS_OF_WORD[word] for word in fault.words if word in _STATUS_OF_WORD), None)
    return _error(f"{endpoint.address} reported an error in its reply: ", endpoint, fault, status)


def refusal_of_status(
    endpoint: Endpoint, status: int, body: bytes, headers: Mapping[str, str] | None = None
) -> ModelRefused:
    """The error for an HTTP error status; `body` may be cut, empty or anything.

    The `headers`, with names in lower case, say whether and when the server wants to be asked again.
    """
    text = body.decode("utf-8", "replace")
    try:
        parsed = parse(text)
    except ValueError:
        parsed = None
    fault = fault_in(parsed)
    hint = ""
    if fault is None:
        whole = mapping(parsed)
        told = whole.get("message") or whole.get("detail") or whole.get("errors")
        if told is None:
            fault = ServerFault("" if "<html" in text[:1000].lower() else text)
            hint = "is the address right?" if status == HTTPStatus.NOT_FOUND else ""
        else:
            fault = ServerFault(told if isinstance(told, str) else codec.encode(told).decode())
    error = _error(f"{endpoint.address} answered {status}{_phrase(status)}", endpoint, fault, status, hint)
    if headers is not None:
        asked, worth_it = asked_seconds(headers), should_retry(headers)
        error.retry_after_seconds = error.retry_after_seconds if asked is None else asked
        error.retryable = error.retryable if worth_it is None else worth_it
    return error


def _error(lead: str, endpoint: Endpoint, fault: ServerFault, status: int | None, hint: str = "") -> ModelRefused:
    error = _kind(_text(lead, endpoint, fault), endpoint, fault, status, hint)
    error.retry_after_seconds = fault.retry_after_seconds
    return error


def _text(lead: str, endpoint: Endpoint, fault: ServerFault) -> str:
    text = lead
    said = endpoint.quote(fault.message)
    if said:
        text += said if lead.endswith(" ") else f": {said}"
    untold = [word for word in fault.words if word not in fault.message]
    return f"{text} ({endpoint.quote(', '.join(untold))})" if untold else text


def _kind(text: str, endpoint: Endpoint, fault: ServerFault, status: int | None, hint: str) -> ModelRefused:
    known = status if status is not None else int(HTTPStatus.INTERNAL_SERVER_ERROR)
    words = set(fault.words)
    if words & _CONTEXT_WORDS or (known in {400, 413, 422} and _CONTEXT_TEXT.search(fault.message)):
        return ContextOverflow(text, status=known)
    if known in {401, 403}:
        hint = hint or endpoint.key_hint
        return ModelAuthError(f"{text}; {hint}" if hint else text, status=known)
    if known == HTTPStatus.TOO_MANY_REQUESTS:
        return ModelRateLimited(text, status=known, retryable=not words & _NOT_WORTH_REPEATING)
    if known >= HTTPStatus.INTERNAL_SERVER_ERROR:
        # An error in a reply that names no kind may be one that comes again each time.
        return ModelServerError(text, status=known, retryable=status is not None)
    return ModelRefused(f"{text}; {hint}" if hint else text, status=known, retryable=known in _RETRYABLE)


def _error_status(value: Any) -> int | None:
    if isinstance(value, str) and value.isdigit() and len(value) == 3:
        value = int(value)
    status = number(value)
    return status if status is not None and 400 <= status < 600 else None


def _phrase(status: int) -> str:
    try:
        return f" ({HTTPStatus(status).phrase})"
    except ValueError:
        return ""
