"""Open a gateway as the options say, and tell where it is and who gets in."""

from __future__ import annotations

import contextlib
import ipaddress
import secrets
import ssl
from collections.abc import AsyncGenerator

from protocol.errors import SpecError

from ..gateway import Access, Gateway, Principal, is_loopback, open_gateway
from ..hostfile import access_of, tls_context
from ..runtime import Runtime
from ._listening_options import Listening
from ._made_token import find_made_token, kept
from ._screen import Screen
from ._usage import UsageError

__all__ = ("listening",)


@contextlib.asynccontextmanager
async def listening(
    runtime: Runtime, options: Listening, screen: Screen, *, restarting: bool, token_stays: bool = False
) -> AsyncGenerator[Gateway, None]:
    """A gateway, and its address on the screen. Raises `UsageError` for what cannot be opened.

    A token that it makes is good as long as it serves; where it `token_stays`, for the next one on this port too.
    """
    if not is_loopback(options.host) and options.token_file is None:
        raise UsageError(
            f"--bind {options.host} can be reached by others: say who gets in by --token-file FILE, with lines of"
            " TOKEN [ROLE,ROLE...] [NAME]; or listen on 127.0.0.1"
        )
    token = None
    if options.token_file is None:
        token = (find_made_token(options.port) if token_stays else None) or secrets.token_urlsafe(24)
    context = _tls(options)
    async with contextlib.AsyncExitStack() as stack:
        try:
            gateway = await stack.enter_async_context(
                open_gateway(
                    runtime,
                    host=options.host,
                    port=options.port,
                    tokens=_access(options, token),
                    hosts=options.hosts,
                    origins=options.origins,
                    ssl_context=context,
                    restarting=restarting,
                    **options.more,
                )
            )
        except SpecError as error:
            raise UsageError(str(error)) from None
        hint = ""
        if token is not None:
            # Left before the gateway: while clients are told to go, nobody is sent to it.
            stack.enter_context(kept(token, gateway.addresses[0][1], stays=token_stays))
        else:
            hint = f" --token-file {options.token_file}"
        await _announce(gateway, options, screen, hint)
        yield gateway


def _access(options: Listening, token: str | None) -> Access:
    if token is not None:
        return Access.of({token: Principal("local")})
    assert options.token_file is not None
    return access_of(options.token_file, options.sees)


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


def _tls(options: Listening) -> ssl.SSLContext | None:
    try:
        return tls_context(options.tls_cert, options.tls_key, names=("--tls-cert", "--tls-key"))
    except SpecError as error:
        raise UsageError(str(error)) from None
