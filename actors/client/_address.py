"""Where a server is, and how a stream to it is opened."""

from __future__ import annotations

import ssl
import urllib.parse
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import attrs
import trio

from protocol.errors import SpecError

__all__ = ("Address", "OpenStream", "open_stream_to")

OpenStream: TypeAlias = Callable[[], Awaitable[trio.abc.Stream]]
"""Opens one connection to the server, TLS included."""
_SCHEMES = {"ws": False, "http": False, "wss": True, "https": True}


@attrs.frozen
class Address:
    """A server's address, read."""

    host: str
    port: int
    secure: bool
    path: str

    @classmethod
    def read(cls, url: str) -> Address:
        """Read `ws://HOST:PORT` or `wss://HOST`; the path is `/ws` unless there is one. Raises `SpecError`."""
        right = "one is 'ws://127.0.0.1:8765' or 'wss://agents.example.org'"
        try:
            parts = urllib.parse.urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise SpecError(f"{url!r} is no address: {error}; {right}") from None
        if parts.username is not None or parts.query or parts.fragment:
            raise SpecError(f"an address holds no credential, query or fragment: give token=...; {right}")
        if parts.scheme not in _SCHEMES or not host:
            raise SpecError(f"{url!r} is no address: {right}")
        secure = _SCHEMES[parts.scheme]
        return cls(host, port or (443 if secure else 80), secure, parts.path.rstrip("/") or "/ws")

    @property
    def authority(self) -> str:
        """What `Host` says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.secure else 80) else f"{host}:{self.port}"


def open_stream_to(address: Address, ssl_context: ssl.SSLContext | None) -> OpenStream:
    """How streams to this address are opened: they raise `OSError`, or what TLS raises."""

    async def open_stream() -> trio.abc.Stream:
        tcp = await trio.open_tcp_stream(address.host, address.port)
        if not address.secure:
            return tcp
        context = ssl_context or ssl.create_default_context()
        stream = trio.SSLStream(tcp, context, server_hostname=address.host, https_compatible=True)
        secured = False
        try:
            await stream.do_handshake()
            secured = True
        finally:
            if not secured:
                await trio.aclose_forcefully(tcp)
        return stream

    return open_stream
