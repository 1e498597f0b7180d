"""Open a gateway as the options say, and tell where it is and who gets in."""

from __future__ import annotations

import contextlib
import ipaddress
import ssl
from collections.abc import AsyncGenerator
from pathlib import Path

from protocol.errors import SpecError

from ..gateway import Access, Gateway, is_loopback, open_gateway, read_token_file
from ..runtime import Runtime
from ._listening_options import Listening
from ._made_token import kept
from ._screen import Screen
from ._usage import UsageError

__all__ = ("listening",)


@contextlib.asynccontextmanager
async def listening(
    runtime: Runtime, options: Listening, screen: Screen, *, restarting: bool
) -> AsyncGenerator[Gateway, None]:
    """A gateway, and its address on the screen. Raises `UsageError` for what cannot be opened."""
    if not is_loopback(options.host) and options.token_file is None:
        raise UsageError(
            f"--bind {options.host} can be reached by others: say who gets in by --token-file FILE, with lines of"
            " TOKEN [ROLE,ROLE...] [NAME]; or listen on 127.0.0.1"
        )
    context = _tls(options.tls_cert, options.tls_key)
    async with contextlib.AsyncExitStack() as stack:
        try:
            gateway = await stack.enter_async_context(
                open_gateway(
                    runtime,
                    host=options.host,
                    port=options.port,
                    tokens=None if options.token_file is None else Access.of(read_token_file(options.token_file)),
                    hosts=options.hosts,
                    origins=options.origins,
                    ssl_context=context,
                    restarting=restarting,
                )
            )
        except SpecError as error:
            raise UsageError(str(error)) from None
        hint = ""
        if gateway.token is not None:
            # Left before the gateway: from the first signal on nobody is sent to it.
            stack.enter_context(kept(gateway.token, gateway.addresses[0][1]))
        else:
            hint = f" --token-file {options.token_file}"
        await _announce(gateway, options, screen, hint)
        yield gateway


async def _announce(gateway: Gateway, options: Listening, screen: Screen, hint: str) -> None:
    address = _shown(gateway, options)
    await screen.note(f"Serving at {screen.style.bold(address)}")
    await screen.note(f"  in a terminal: onward attach {address}{hint}")
    if hint:
        await screen.note(
            "                 (or another file with one token; --token-env takes it from the environment)"
        )
    await screen.note(f"  in a browser:  {address}/#ticket={gateway.ticket()} (once, within five minutes)")


def _shown(gateway: Gateway, options: Listening) -> str:
    """The address as a client would write it: by its name, if it has one, and never as "any address"."""
    host, port = gateway.addresses[0]
    if options.hosts:
        host = options.hosts[0]
    elif ipaddress.ip_address(host.partition("%")[0]).is_unspecified:
        host = "localhost"
    else:
        return gateway.address
    return f"http{'s' if gateway.secure else ''}://{host}:{port}"


def _tls(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    if certificate is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    for flag, path in (("--tls-cert", certificate), ("--tls-key", key)):
        if path is not None and not path.is_file():
            raise UsageError(f"{flag} {path}: there is no such file")
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except OSError as error:  # what TLS raises is one
        what = f"--tls-cert {certificate}" if key is None else f"--tls-cert {certificate} and --tls-key {key}"
        reason = getattr(error, "reason", None) or error.strerror
        raise UsageError(
            f"{what}: no certificate in PEM with the key that belongs to it, without a passphrase ({reason})"
        ) from None
    return context


def _no_password() -> str:
    """Asked for a passphrase by the library, which would ask the terminal."""
    return ""
