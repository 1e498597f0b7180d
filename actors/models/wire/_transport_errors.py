"""What is said when a call does not come through: where, why, whether anything was sent, and what to look at."""

from __future__ import annotations

from typing import Literal, TypeAlias, cast
from urllib.parse import urljoin, urlsplit, urlunsplit

from protocol.errors import ModelError, ModelRefused, ModelReplyError, ModelTimeout, ModelUnreachable

from ._endpoint import Endpoint

__all__ = (
    "Stage",
    "broken",
    "call_too_slow",
    "closed",
    "misspoken",
    "reason_of",
    "redirected",
    "too_slow",
    "unreachable",
)

Stage: TypeAlias = Literal["connect", "first byte", "idle", "request"]
"""What a call waits for; `request` is all of it."""

_HINTS = {
    "self-signed certificate": "pass the file of its authority's certificate as `verify`",
    "unable to get local issuer": "pass the file of its authority's certificate as `verify`",
    "certificate has expired": "it must be renewed, or this machine's clock is wrong",
    "not yet valid": "this machine's clock may be wrong",
    "mismatch": "the address must name the host that the certificate is for",
    "not valid for": "the address must name the host that the certificate is for",
    "wrong version number": "does the server speak TLS there (http or https)?",
    "record layer failure": "does the server speak TLS there (http or https)?",
}
_TLS_HINT = "does the server speak TLS there (http or https?), and does this machine trust its certificate?"


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
        case "request":
            text = f"the request to {address} took longer than {seconds:g} s (hop_timeout_seconds)"
    return ModelTimeout(text, retryable=True)


def call_too_slow(endpoint: Endpoint, seconds: float, *, sent: bool) -> ModelTimeout:
    """The time of the whole call is over, with whatever was tried."""
    text = f"the call to {endpoint.address} took longer than {seconds:g} s (call_timeout_seconds)"
    if not sent:
        text += "; nothing was sent: no connection came to stand, or all max_connections were in use"
    return ModelTimeout(text, retryable=True)


def unreachable(endpoint: Endpoint, reason: str, *, refused_by_proxy: bool = False) -> ModelUnreachable:
    """No connection came to stand."""
    reason = endpoint.quote(reason)
    through = f" through the proxy {endpoint.proxy}" if endpoint.proxy else ""
    text = f"cannot connect to {endpoint.address}{through}: {reason}; nothing was sent."
    if "SSL" in reason or "TLS" in reason:
        hint = next((hint for said, hint in _HINTS.items() if said in reason.lower()), _TLS_HINT)
        # The same certificate comes again; a handshake that was cut may not be.
        return ModelUnreachable(f"{text} {hint[0].upper()}{hint[1:]}", retryable="EOF" in reason)
    if refused_by_proxy:
        return ModelUnreachable(f"{text} The proxy refused.", retryable=reason.startswith("5"))
    text += " Is a server running there, is the address (base_url, --base-url) right?"
    return ModelUnreachable(text, retryable=True)


def broken(endpoint: Endpoint, reason: str, when: str) -> ModelError:
    """The connection broke after the request had been sent."""
    return ModelError(f"the connection to {endpoint.address} broke {when}: {endpoint.quote(reason)}", retryable=True)


def closed(endpoint: Endpoint, when: str) -> ModelError:
    """The caller has closed the model."""
    return ModelError(f"the call to {endpoint.address} was cut {when}: its model has been closed")


def misspoken(endpoint: Endpoint, reason: str) -> ModelReplyError:
    """What came is not HTTP, or breaks its rules: it would come again."""
    return ModelReplyError(f"{endpoint.address} does not speak HTTP: {endpoint.quote(reason)}")


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
