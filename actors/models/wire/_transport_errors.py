"""What is said when a call does not come through: where, why, whether anything was sent, and what to look at."""

from __future__ import annotations

from typing import Literal, TypeAlias, cast
from urllib.parse import urljoin, urlsplit, urlunsplit

from protocol.errors import ModelError, ModelRefused, ModelReplyError, ModelTimeout, ModelUnreachable

from ._endpoint import Endpoint

__all__ = ("Stage", "broken", "reason_of", "redirected", "too_slow", "unreachable")


Stage: TypeAlias = Literal["connect", "first byte", "idle"]
"""What a call waits for."""


def too_slow(endpoint: Endpoint, stage: Stage, seconds: float) -> ModelTimeout:
    """A deadline passed."""
    address = endpoint.address
    match stage:
        case "connect":
            text = f"no connection to {address} within {seconds:g} s (connect_timeout_seconds); nothing was sent"
        case "first byte":
            text = f"{address} did not begin its reply within {seconds:g} s (first_byte_timeout_seconds)"
        case "idle":
            text = f"{address} went silent in the middle of its reply for {seconds:g} s (idle_timeout_seconds)"
    return ModelTimeout(text, retryable=True)


def unreachable(endpoint: Endpoint, reason: str) -> ModelUnreachable:
    """No connection came to stand."""
    reason = endpoint.quote(reason)
    text = f"cannot connect to {endpoint.address}: {reason}; nothing was sent."
    if "SSL" in reason or "TLS" in reason:
        text += " Does the server speak TLS there (http or https?), and does this machine trust its certificate?"
    else:
        text += " Is a server running there, is the address (base_url, --base-url) right?"
    return ModelUnreachable(text, retryable=True)


def broken(endpoint: Endpoint, reason: str, when: str) -> ModelError:
    """The connection broke after the request had been sent."""
    reason = endpoint.quote(reason)
    if "illegal status line" in reason:
        return ModelReplyError(f"{endpoint.address} does not speak HTTP: {reason}")
    return ModelError(f"the connection to {endpoint.address} broke {when}: {reason}", retryable=True)


def redirected(endpoint: Endpoint, status: int, location: str) -> ModelRefused:
    """The server pointed elsewhere."""
    target = urlsplit(urljoin(endpoint.address, location))
    shown = endpoint.quote(urlunsplit((target.scheme, target.netloc.rpartition("@")[2], target.path, "", "")))
    return ModelRefused(
        f"{endpoint.address} answered {status} and points to {shown}: redirects are not followed, so that the key"
        " goes nowhere else; set base_url to that place if you trust it",
        status=status,
    )


def reason_of(error: BaseException) -> str:
    """The text that says most: the libraries in between often raise with none, or with less than the system said."""
    best = type(error).__name__
    cause: BaseException | None = error
    while cause is not None:
        best = str(cause) or best
        if isinstance(cause, BaseExceptionGroup):
            cause = cast("BaseExceptionGroup[BaseException]", cause).exceptions[0]
        else:
            cause = cause.__cause__
    return best
