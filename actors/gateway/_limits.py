"""How much of everything: token buckets, and how many connections there may be."""

from __future__ import annotations

import contextlib
import ipaddress
from collections import Counter
from collections.abc import Generator

import attrs

__all__ = ("Crowd", "DoorLimits", "FullError", "TokenBucket", "address_group")


@attrs.frozen(kw_only=True)
class DoorLimits:
    """How many may come in, and how long they may take. What is above is answered with 503 and `Retry-After`."""

    connections: int = 2000
    """Connections in all, whatever they are for."""
    connections_per_address: int = 256
    """From one IPv4 address, or one /64 of IPv6."""
    connections_per_principal: int = 128
    """WebSockets of one principal."""
    handshakes_per_second: float = 50.0
    """WebSockets that may be opened in a second, on average."""
    handshakes_burst: int = 100
    """WebSockets that may be opened at once."""
    head_seconds: float = 5.0
    """From the accept until the request is there, the TLS handshake and the body of a POST included."""


class FullError(Exception):
    """There are too many already."""

    def __init__(self, text: str, *, retry_seconds: float) -> None:
        super().__init__(text)
        self.retry_seconds = retry_seconds


@attrs.define(eq=False)
class TokenBucket:
    """Lets `per_second` through on average, and at most `burst` at once. Times are of one clock that only goes on."""

    per_second: float
    burst: int
    _level: float = attrs.field(init=False)
    _at: float | None = attrs.field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        self._level = float(self.burst)

    def take(self, now: float) -> float:
        """Take one if there is one: 0.0. Else the seconds until there is; nothing is taken then."""
        if self._at is not None:
            self._level = min(float(self.burst), self._level + (now - self._at) * self.per_second)
        self._at = now
        if self._level >= 1:
            self._level -= 1
            return 0.0
        return (1 - self._level) / self.per_second


@attrs.define(eq=False)
class Crowd:
    """Who is there: connections by their address, WebSockets by their principal."""

    limits: DoorLimits
    by_address: Counter[str] = attrs.field(factory=Counter[str])
    by_principal: Counter[str] = attrs.field(factory=Counter[str])
    _handshakes: TokenBucket = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._handshakes = TokenBucket(self.limits.handshakes_per_second, self.limits.handshakes_burst)

    @contextlib.contextmanager
    def connection(self, address: str) -> Generator[None]:
        """Count a connection inside the block. Raises `FullError` if it is one too many."""
        if self.by_address.total() >= self.limits.connections:
            raise FullError("there are too many connections", retry_seconds=5)
        group = address_group(address)
        with _one_more(self.by_address, group, self.limits.connections_per_address, "from this address"):
            yield

    @contextlib.contextmanager
    def websocket(self, principal: str, now: float) -> Generator[None]:
        """Count a WebSocket inside the block. Raises `FullError` if it is one too many, or comes too soon."""
        with _one_more(self.by_principal, principal, self.limits.connections_per_principal, "of this principal"):
            wait = self._handshakes.take(now)
            if wait:
                raise FullError("too many connections are being opened", retry_seconds=wait)
            yield


@contextlib.contextmanager
def _one_more(counter: Counter[str], key: str, most: int, whose: str) -> Generator[None]:
    if counter[key] >= most:
        raise FullError(f"there are too many connections {whose}", retry_seconds=5)
    counter[key] += 1
    try:
        yield
    finally:
        counter[key] -= 1
        if not counter[key]:
            del counter[key]


def address_group(address: str) -> str:
    """What an address is counted under: a host has one IPv4 address, but a whole /64 of IPv6."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.IPv6Network((found, 64), strict=False))
    return str(found)
