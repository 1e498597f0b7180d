"""Event streams: bytes in, server-sent events out, as the HTML standard's event-stream rules say, at every byte split.

Lines are split as bytes: CR and LF never occur inside a UTF-8 character, so a character that is cut by a chunk is
whole again when its line is. Only CR, LF and CRLF end a line. What stands behind the last blank line when the
stream ends is no event.
"""

from __future__ import annotations

import attrs

__all__ = ("EventStreamDecoder", "EventTooLargeError", "ServerSentEvent")

_BOM = b"\xef\xbb\xbf"
_MAX_EVENT_BYTES = 16 * 1024 * 1024


class EventTooLargeError(ValueError):
    """A line, or the data of one event, is longer than the decoder allows: the stream is not to be trusted."""


@attrs.frozen
class ServerSentEvent:
    """One event of a stream."""

    data: str
    """The data lines, joined by line feeds."""
    event: str = "message"
    id: str = ""
    """The last event id that the stream has set, this event included."""


class EventStreamDecoder:
    """Turns the chunks of one stream into its events. Make a new one for each stream."""

    def __init__(self, *, max_event_bytes: int = _MAX_EVENT_BYTES) -> None:
        self._max_bytes = max_event_bytes
        self._line = bytearray()  # the line that has not ended
        self._at_start = True
        self._after_cr = False
        self._data: bytes | bytearray | None = None
        self._event = b""
        self._id = ""

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Take the next bytes and return the events that they complete. Raises `EventTooLargeError`."""
        if self._at_start:
            chunk = self._without_bom(chunk)
        if self._after_cr and chunk:
            self._after_cr = False
            if chunk.startswith(b"\n"):
                chunk = chunk[1:]
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = chunk.split(b"\n")
        events: list[ServerSentEvent] = []
        for line in lines[:-1]:
            whole = line
            if self._line:
                self._extend_line(line)
                whole = bytes(self._line)
                self._line.clear()
            if not whole:
                self._dispatch(events)
            else:
                self._take(whole)
        if lines[-1]:
            self._extend_line(lines[-1])
        return events

    def _without_bom(self, chunk: bytes) -> bytes:
        head = bytes(self._line) + chunk
        self._line.clear()
        if len(head) < len(_BOM) and _BOM.startswith(head):
            if head:
                self._extend_line(head)
            return b""
        self._at_start = False
        return head.removeprefix(_BOM)

    def _extend_line(self, piece: bytes) -> None:
        self._line += piece
        self._check(len(self._line))

    def _check(self, size: int) -> None:
        if size > self._max_bytes:
            raise EventTooLargeError(f"a line or an event of the stream is longer than {self._max_bytes} bytes")

    def _take(self, line: bytes) -> None:
        self._check(len(line))
        if line.startswith(b":"):
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            if self._data is None:
                self._data = value
                return
            # One text that grows: a list of many small lines would take many times as much as they hold.
            data = self._data if isinstance(self._data, bytearray) else bytearray(self._data)
            data += b"\n"
            data += value
            self._check(len(data))
            self._data = data
        elif name == b"event":
            self._event = value
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")

    def _dispatch(self, events: list[ServerSentEvent]) -> None:
        if self._data is not None:
            event = self._event.decode("utf-8", "replace") if self._event else "message"
            events.append(ServerSentEvent(self._data.decode("utf-8", "replace"), event, self._id))
            self._data = None
        self._event = b""
