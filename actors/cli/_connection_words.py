"""Why there is no connection to a gateway, and what to do about it."""

from __future__ import annotations

import ssl
from typing import cast

from protocol.wire import CloseCode

from ..client import Disconnected, Unreachable
from ._style import one_line

__all__ = ("trouble_words",)

_NO_GATEWAY = "Is that the address of an Onward gateway?"
_STATUS = {
    403: "The server lets this token, or this kind of client, do nothing.",
    421: "The server must be told the name it is reached by: onward serve --host NAME.",
    501: _NO_GATEWAY,
    503: "The server has too much to do, or is being closed: try again.",
}
_CLOSED = {
    CloseCode.UNAUTHENTICATED: "The token was revoked: ask whoever runs the server for another one.",
    CloseCode.FORBIDDEN: "The token may no longer observe.",
    CloseCode.VERSION: "The server speaks another version of the protocol than this client: bring both to the same release.",
}


def trouble_words(error: Exception, *, has_token: bool, is_secure: bool) -> str:
    """The error, and what would help, each on a line."""
    said, hint = one_line(str(error), 500), ""
    if isinstance(error, Disconnected):
        hint = _CLOSED.get(error.code, "")
    elif isinstance(error, Unreachable) and error.status is not None:
        hint = _refused(error.status, has_token=has_token)
    elif isinstance(error, Unreachable):
        fault = _innermost(error)
        if isinstance(fault, OSError):
            said = f"no connection: {one_line(fault.strerror or str(fault), 500)}"
        hint = _no_connection(fault, is_secure=is_secure)
    return f"{said}\n{hint}" if hint else said


def _refused(status: int, *, has_token: bool) -> str:
    if status == 401:
        unknown, missing = (
            "The server does not know this token.",
            "It wants a token: --token-file FILE, or --token-env VARIABLE.",
        )
        return unknown if has_token else missing
    return _STATUS.get(status, _NO_GATEWAY if status < 500 else "")


def _no_connection(fault: BaseException, *, is_secure: bool) -> str:
    if isinstance(fault, ssl.SSLCertVerificationError):
        return "The server's certificate is not trusted here: --tls-ca FILE names a certificate that vouches for it."
    if isinstance(fault, ssl.SSLError):
        return "Does the server speak TLS? Without it, its address begins with http://"
    if isinstance(fault, OSError):
        return "Is the server running, and is that its address? `onward serve` prints it."
    return "" if is_secure else "If the server speaks TLS, its address begins with https://"


def _innermost(error: BaseException) -> BaseException:
    """What it came of in the end; of several, the first."""
    while True:
        if isinstance(error, BaseExceptionGroup):
            error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
        elif error.__cause__ is not None:
            error = error.__cause__
        else:
            return error
