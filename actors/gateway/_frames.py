"""What a client may send before it has said anything whole: counted from the headers of its frames.

The library behind takes empty fragments and control frames for ever, and measures a message in characters, when it is
there. Here nothing is decoded: what is no valid frame is passed on, for the library to refuse.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from protocol.wire import CloseCode, WireLimits

from ._limits import TokenBucket

__all__ = ("FrameWatch",)

_CONTROL_PER_SECOND = 20.0
_CONTROL_BURST = 100


@attrs.define(eq=False)
class FrameWatch:
    """Reads the headers of the frames that pass, and says how much may."""

    limits: WireLimits
    clock: Callable[[], float]
    excess: tuple[int, str] | None = None
    """Why nothing more may pass: a close code and a text."""
    _header: bytearray = attrs.field(factory=bytearray)
    _payload_left: int = 0
    _fragments: int = 0
    _bytes: int = 0
    _control: TokenBucket = attrs.field(factory=lambda: TokenBucket(_CONTROL_PER_SECOND, _CONTROL_BURST))

    def passing(self, data: bytes) -> int:
        """How many of the bytes that come next may pass: all, or those before the frame that sets `excess`."""
        at = start = 0
        while at < len(data):
            if self._payload_left:
                step = min(self._payload_left, len(data) - at)
                self._payload_left -= step
                at += step
                continue
            if not self._header:
                start = at
            self._header.append(data[at])
            at += 1
            if len(self._header) == _header_size(self._header):
                self.excess = self._frame(self._header[0])
                if self.excess is not None:
                    return start
                self._header.clear()
        return at

    def _frame(self, first: int) -> tuple[int, str] | None:
        size = self._payload_left = _payload_size(self._header)
        if size >> 63:
            return None  # no length at all
        if first & 0x08:
            wait = self._control.take(self.clock())
            return (CloseCode.TOO_MANY, "too many control frames") if wait else None
        if first & 0x0F:
            self._fragments = self._bytes = 0
        self._fragments += 1
        self._bytes += size
        if self._bytes > self.limits.message_bytes:
            return CloseCode.TOO_BIG, f"a message has at most {self.limits.message_bytes} bytes"
        if self._fragments > self.limits.message_fragments:
            return CloseCode.TOO_BIG, f"a message has at most {self.limits.message_fragments} fragments"
        return None


def _header_size(header: bytearray) -> int:
    """How long a header is, as far as it can be told from its beginning."""
    if len(header) < 2:
        return 2
    length = header[1] & 0x7F
    return 2 + (2 if length == 126 else 8 if length == 127 else 0) + (4 if header[1] & 0x80 else 0)


def _payload_size(header: bytearray) -> int:
    length = header[1] & 0x7F
    if length < 126:
        return length
    return int.from_bytes(header[2:4] if length == 126 else header[2:10])
