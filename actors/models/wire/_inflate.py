"""Bodies that a server compressed although it was asked not to: taken apart piece by piece, so that none can burst."""

from __future__ import annotations

import zlib

__all__ = ("Inflater", "NotCompressedError")

_PIECE_BYTES = 64 * 1024
_ANY_HEADER = zlib.MAX_WBITS | 32
"""zlib's or gzip's, whichever comes."""


class NotCompressedError(ValueError):
    """The bytes are not what their `content-encoding` says."""


class Inflater:
    """Reads gzip and deflate. Push what came, then pull until nothing is left: no piece is above 64 KiB."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(_ANY_HEADER)
        self._input = b""
        self._known = False
        """Whether the two bytes that tell what it is have been taken."""

    def push(self, data: bytes) -> None:
        """Take the next bytes of the body."""
        self._input += data

    def pull(self) -> bytes:
        """The next piece; `b""` if more must be pushed first. Raises `NotCompressedError`."""
        while True:
            data = self._input
            if self._zlib.eof:  # gzip may hold several members, one behind the other
                if not data:
                    return b""
                self._zlib = zlib.decompressobj(_ANY_HEADER)
            if not self._known and len(data) < 2:
                return b""
            try:
                piece = self._zlib.decompress(data, _PIECE_BYTES)
            except zlib.error as error:
                if self._known:
                    raise NotCompressedError(str(error)) from error
                # What is called deflate is often sent without zlib's header.
                self._known = True
                self._zlib = zlib.decompressobj(-zlib.MAX_WBITS)
                continue
            self._known = True
            self._input = self._zlib.unconsumed_tail or self._zlib.unused_data
            if piece or not self._input:
                return piece
