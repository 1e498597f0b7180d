"""What stands between this machine and a server, where it was named: a proxy, and whose certificates are trusted."""

from __future__ import annotations

import base64
import importlib.util
import os
import ssl
from pathlib import Path
from urllib.parse import unquote, urlsplit

import attrs

from protocol.errors import SpecError

__all__ = ("NamedProxy", "tls_context")

_SCHEMES = {"http", "https", "socks5", "socks5h"}


@attrs.frozen
class NamedProxy:
    """A proxy by its address. Its repr shows no secret."""

    url: str = attrs.field(repr=False)
    address: str
    """Without user and password."""
    secrets: tuple[str, ...] = attrs.field(repr=False)

    @classmethod
    def of(cls, url: str) -> NamedProxy:
        """Raises `SpecError` if it is not the address of a proxy, or of a kind that cannot be used."""
        try:
            parts = urlsplit(url.strip())
            host, port = parts.hostname, parts.port
        except (ValueError, AttributeError):
            parts, host, port = urlsplit(""), None, None
        if not host or parts.scheme not in _SCHEMES or any(char.isspace() for char in url.strip()):
            # It is not shown: there may be a password anywhere in it.
            raise SpecError("proxy must be the address of a proxy, such as http://127.0.0.1:3128 or socks5://host:1080")
        if parts.scheme.startswith("socks") and importlib.util.find_spec("socksio") is None:
            raise SpecError(f"proxy: {parts.scheme} needs the package socksio: pip install socksio")
        place = f"[{host}]" if ":" in host else host
        user, password = parts.username or "", parts.password or ""
        credentials = f"{unquote(user)}:{unquote(password)}".encode()
        return cls(
            url.strip(),
            f"{parts.scheme}://{place}" + (f":{port}" if port is not None else ""),
            (user, unquote(user), password, unquote(password), base64.b64encode(credentials).decode()),
        )


def tls_context(verify: str | os.PathLike[str] | ssl.SSLContext) -> ssl.SSLContext:
    """What to trust: the certificates of a file or folder, or a context of the caller's own. Raises `SpecError`."""
    if isinstance(verify, ssl.SSLContext):
        return verify
    if not isinstance(verify, (str, os.PathLike)):
        raise SpecError(
            "verify must be the path of trusted certificates, or an ssl.SSLContext; certificates are always checked"
            " where it is left out"
        )
    try:
        path = Path(verify)
        return ssl.create_default_context(
            cafile=None if path.is_dir() else str(path), capath=str(path) if path.is_dir() else None
        )
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise SpecError(f"verify: {verify!r} is no file or folder of certificates in PEM form ({error})") from error
