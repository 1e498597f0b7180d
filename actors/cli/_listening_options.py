"""Where a gateway listens, and who gets in: the options of the commands that open one."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from protocol.errors import SpecError

from ._usage import UsageError

if TYPE_CHECKING:
    from ..hostfile import HostFile

__all__ = ("DEFAULT_PORT", "Listening", "add_listening", "checked_listening", "port_of")

DEFAULT_PORT = 8765


@attrs.frozen(kw_only=True)
class Listening:
    """Where a gateway listens, and who gets in."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    """0: any free one."""
    token_file: Path | None = None
    """Who gets in; `None`: whoever started it, by a token that is made for the time it runs."""
    tls_cert: Path | None = None
    tls_key: Path | None = None
    """`None`: it stands in the file of the certificate."""
    hosts: tuple[str, ...] = ()
    """Names that it is reached by, beside `localhost` and addresses."""
    origins: tuple[str, ...] = ()
    """Origins of foreign pages that may connect."""
    more: Mapping[str, Any] = attrs.field(factory=dict[str, Any])
    """Further options of `open_gateway()`, which a host file has."""
    sees: Mapping[str, Any] = attrs.field(factory=dict[str, Any])
    """The agents that somebody may see, by the names of the token file."""


def add_listening(parser: argparse.ArgumentParser) -> None:
    """Give a command the options that open a gateway."""
    parser.add_argument(
        "--bind",
        metavar="HOST:PORT",
        help=f"where to listen (default: 127.0.0.1:{DEFAULT_PORT}; port 0: any free one)",
    )
    parser.add_argument(
        "--token-file", metavar="FILE", help="who gets in: lines of TOKEN [ROLE,ROLE...] [NAME], readable by you alone"
    )
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate chain, for TLS")
    parser.add_argument("--tls-key", metavar="FILE", help="its private key (default: in the file of the certificate)")
    parser.add_argument(
        "--host", action="append", default=[], metavar="NAME", help="a name it is reached by; may be given again"
    )
    parser.add_argument(
        "--origin", action="append", default=[], metavar="URL", help="a foreign page's origin that may connect"
    )


def checked_listening(found: argparse.Namespace, host: HostFile | None = None) -> Listening:
    """What these options ask for, over what a host file says. Raises `UsageError`."""
    given: dict[str, Any] = {
        "token_file": None if found.token_file is None else Path(found.token_file),
        "tls_cert": None if found.tls_cert is None else Path(found.tls_cert),
        "tls_key": None if found.tls_key is None else Path(found.tls_key),
        "hosts": tuple(found.host) or None,
        "origins": tuple(found.origin) or None,
    }
    if found.bind is not None:
        given["host"], given["port"] = _address(found.bind)
    listening = _of_file(host)
    if found.tls_cert is not None:
        listening = attrs.evolve(listening, tls_key=None)  # that of the file goes with its certificate
    listening = attrs.evolve(listening, **{name: value for name, value in given.items() if value is not None})
    if listening.tls_key is not None and listening.tls_cert is None:
        raise UsageError("--tls-key goes with --tls-cert, the file of the certificate")
    return listening


def _of_file(host: HostFile | None) -> Listening:
    if host is None:
        return Listening()
    options = host.gateway
    same = {field.name: getattr(options, field.name) for field in attrs.fields(Listening) if field.name != "more"}
    return Listening(
        **same,
        more={"limits": options.limits, "door_limits": options.door_limits, "templates": host.templates},
    )


def _address(text: str) -> tuple[str, int]:
    from ..hostfile import address_of

    try:
        return address_of(text)
    except SpecError as error:
        raise UsageError(f"--bind {error}") from None


def port_of(flag: str, text: str) -> int:
    """Read a port; 0 is any free one."""
    if text.isascii() and text.isdecimal() and len(text) < 6 and int(text) < 65_536:
        return int(text)
    raise UsageError(f"{flag}: a port is a number from 0 (any free one) to 65535; it is {text!r}")
