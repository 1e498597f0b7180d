"""What a server says in its reply: JSON objects, and the errors that stand for them or in them."""

from __future__ import annotations

from typing import Any, cast

from protocol.errors import ModelReplyError

from ._endpoint import Endpoint
from ._json import parse
from ._refusals import fault_in, refusal

__all__ = ("check_reply", "parse_reply", "reply_fault")


def parse_reply(endpoint: Endpoint, data: str | bytes) -> Any:
    """The JSON object that a server sent, or what holds an error. Raises `ModelReplyError` for anything else."""
    try:
        parsed = parse(data)
    except ValueError:
        parsed = None
    if isinstance(parsed, dict) or fault_in(parsed) is not None:
        return cast("Any", parsed)
    text = data if isinstance(data, str) else data.decode("utf-8", "replace")
    raise reply_fault(endpoint, "is no JSON object", text)


def reply_fault(endpoint: Endpoint, what: str, text: str) -> ModelReplyError:
    """The error for a reply that is not what its format says; `text` is quoted."""
    quoted = endpoint.quote(text, max_chars=200)
    return ModelReplyError(f"{endpoint.address}: the reply {what}: {quoted}")


def check_reply(endpoint: Endpoint, value: Any) -> None:
    """Raise the error that a reply holds in place of an answer or beside one, if it does."""
    fault = fault_in(value)
    if fault is not None:
        raise refusal(endpoint, fault)
