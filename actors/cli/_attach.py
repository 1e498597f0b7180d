"""`onward attach`: from the address of a server to the exit status."""

from __future__ import annotations

import signal
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import trio

from protocol.errors import SpecError

from ..client import ClientError, connect
from ..gateway import is_loopback
from ._attach_arguments import AttachArguments
from ._connection_words import trouble_words
from ._made_token import find_made_token
from ._output import Output
from ._screen import Screen
from ._status import FAILED, INTERRUPTED
from ._style import harmless
from ._usage import UsageError
from ._visit import Visit

__all__ = ("attach_command",)


def attach_command(arguments: AttachArguments) -> int:
    """Attach; the exit status. Raises `UsageError` for what only shows when files are read, or the server is asked."""
    return trio.run(_attach, arguments)


async def _attach(arguments: AttachArguments) -> int:
    screen = Screen(Output(1), Output(2))
    parts = urlsplit(arguments.url)
    is_secure, is_near = parts.scheme in {"https", "wss"}, is_loopback(parts.hostname or "")
    token = _token(arguments, parts.port or (443 if is_secure else 80) if is_near else None)
    context = _trust(arguments.tls_ca)
    if token is not None and not is_secure and not is_near:
        await screen.note(screen.style.yellow("note: without https:// the token can be read on its way"))
    end: int | Exception = INTERRUPTED
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_obey, signals, nursery.cancel_scope, name="signals")
            end = await _visit(arguments, token, context, screen)
            nursery.cancel_scope.cancel("it is over")
    match end:
        case int():
            return end
        case UsageError():
            raise end
        case BrokenPipeError():
            return FAILED  # whoever read the output has left: there is nobody to say more to
        case OSError():
            await screen.note(f"onward: the output cannot be written: {end.strerror}")
        case _:
            words = trouble_words(end, has_token=token is not None, is_secure=is_secure)
            await screen.note(screen.style.red(f"onward: {harmless(words)}"))
    return FAILED


async def _obey(signals: AsyncIterator[int], scope: trio.CancelScope) -> None:
    async for _ in signals:
        scope.cancel("interrupted")


async def _visit(
    arguments: AttachArguments, token: str | None, context: ssl.SSLContext | None, screen: Screen
) -> int | Exception:
    """The exit status, or what went wrong: as a value, because a nursery would wrap it."""
    try:
        async with connect(arguments.url, token=token, ssl_context=context, name="onward attach") as client:
            return await Visit(client, screen, arguments).stay()
    except SpecError as error:
        return UsageError(str(error))
    except (ClientError, UsageError, OSError) as error:
        return error


def _token(arguments: AttachArguments, near_port: int | None) -> str | None:
    if arguments.token_file is not None:
        return _first_word(arguments.token_file)
    if arguments.token is not None:
        return arguments.token
    return None if near_port is None else find_made_token(near_port)


def _first_word(path: Path) -> str:
    """The first token of a file, in the form that `onward serve --token-file` takes too."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--token-file {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"--token-file {path} is no text in UTF-8") from None
    for line in text.splitlines():
        words = line.split()
        if words and not words[0].startswith("#"):
            return words[0]
    raise UsageError(f"--token-file {path} holds no token: it is the first word of a line")


def _trust(path: Path | None) -> ssl.SSLContext | None:
    if path is None:
        return None
    try:
        return ssl.create_default_context(cafile=path)
    except OSError as error:  # what TLS raises is one
        reason = getattr(error, "reason", None) or error.strerror or "no certificate in PEM"
        raise UsageError(f"--tls-ca {path} holds no certificates to trust: {reason}") from None
