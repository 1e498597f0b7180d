"""Where a gateway listens, and who gets in: the options of the commands that open one."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import attrs

from ._usage import UsageError

__all__ = ("DEFAULT_PORT", "Listening", "add_listening", "checked_listening", "port_of")

DEFAULT_PORT = 8765
_BIND = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<host>[^:\[\]]*))(?::(?P<port>[0-9]+))?")


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


def add_listening(parser: argparse.ArgumentParser) -> None:
    """Give a command the options that open a gateway."""
    parser.add_argument(
        "--bind",
        default=f"127.0.0.1:{DEFAULT_PORT}",
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


def checked_listening(found: argparse.Namespace) -> Listening:
    """What these options ask for. Raises `UsageError`."""
    host, port = _address(found.bind)
    if found.tls_key is not None and found.tls_cert is None:
        raise UsageError("--tls-key goes with --tls-cert, the file of the certificate")
    return Listening(
        host=host,
        port=port,
        token_file=None if found.token_file is None else Path(found.token_file),
        tls_cert=None if found.tls_cert is None else Path(found.tls_cert),
        tls_key=None if found.tls_key is None else Path(found.tls_key),
        hosts=tuple(found.host),
        origins=tuple(found.origin),
    )


def _address(text: str) -> tuple[str, int]:
    if text.isdecimal():
        text = f":{text}"
    read = _BIND.fullmatch(text)
    if read is None or not text:
        raise UsageError(f"--bind {text!r} is no address; one is 127.0.0.1:{DEFAULT_PORT} or [::1]:{DEFAULT_PORT}")
    host = read["v6"] or read["host"] or "127.0.0.1"
    return host, DEFAULT_PORT if read["port"] is None else port_of("--bind", read["port"])


def port_of(flag: str, text: str) -> int:
    """Read a port; 0 is any free one."""
    if text.isascii() and text.isdecimal() and len(text) < 6 and int(text) < 65_536:
        return int(text)
    raise UsageError(f"{flag}: a port is a number from 0 (any free one) to 65535; it is {text!r}")
