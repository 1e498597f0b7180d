"""The head of an HTTP request, read before anything is decided: bounded, and by a library that knows the traps.

What is found is checked once more for what the door relies on: a target that is a path, and headers that stand once.
"""

from __future__ import annotations

import attrs
import h11

__all__ = ("MAX_HEAD_BYTES", "Head", "HeadError", "HeadReader")

MAX_HEAD_BYTES = 16_384
"""The longest head."""
MAX_BODY_BYTES = 4_096
"""The longest body of a POST."""


class HeadError(Exception):
    """No request, or none that may be: with the status to answer with."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@attrs.frozen
class Head:
    """What a client asks for. Its repr shows no header and no query: some are secret."""

    method: str
    path: str
    """Without the query, which nothing here has a use for."""
    headers: tuple[tuple[str, str], ...] = attrs.field(repr=False)
    """Names in lower case, in order."""
    version: str = "1.1"

    def one(self, name: str) -> str | None:
        """The value of a header that may stand once; `None` if it is absent. Raises `HeadError` if it is repeated."""
        values = [value for key, value in self.headers if key == name]
        if len(values) > 1:
            raise HeadError(400, f"the header {name} stands more than once")
        return values[0] if values else None

    def words(self, name: str) -> list[str]:
        """The comma-separated words of a header, as they stand."""
        values = [value for key, value in self.headers if key == name]
        return [word.strip() for value in values for word in value.split(",") if word.strip()]

    @property
    def wants_upgrade(self) -> bool:
        """Whether it asks for a WebSocket."""
        return (
            self.version == "1.1"
            and "websocket" in map(str.lower, self.words("upgrade"))
            and "upgrade" in map(str.lower, self.words("connection"))
        )


class HeadReader:
    """Takes the bytes of a connection until a head is whole, and then those of its body if it is wanted."""

    def __init__(self) -> None:
        self._connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
        self._bytes = 0
        self._body = b""

    def feed(self, data: bytes) -> Head | None:
        """Take more bytes, `b""` for the end of the stream; the head if it is whole. Raises `HeadError`."""
        self._bytes += len(data)
        event = self._take(data)
        if isinstance(event, h11.Request):
            if self._bytes - len(self.rest) > MAX_HEAD_BYTES:
                raise HeadError(431, f"the head is longer than {MAX_HEAD_BYTES} bytes")
            headers = tuple((name.decode("ascii"), value.decode("latin-1")) for name, value in event.headers)
            version = event.http_version.decode("ascii")
            return Head(event.method.decode("ascii"), _path_of(event.target), headers, version)
        if event is h11.NEED_DATA:
            return None
        raise HeadError(400, "the connection ended before its request")

    @property
    def rest(self) -> bytes:
        """What has come behind the head."""
        return self._connection.trailing_data[0]

    def body(self, data: bytes | None = None) -> bytes | None:
        """Take more bytes, if there are any; the body of the request if it is whole. Raises `HeadError`."""
        event = self._take(data)
        while isinstance(event, h11.Data):
            self._body += bytes(event.data)
            if len(self._body) > MAX_BODY_BYTES:
                raise HeadError(413, f"the body is longer than {MAX_BODY_BYTES} bytes")
            event = self._take(None)
        if isinstance(event, h11.EndOfMessage):
            return self._body
        if event is h11.NEED_DATA:
            return None
        raise HeadError(400, "the connection ended before its request")

    def _take(self, data: bytes | None) -> object:
        try:
            if data is not None:
                self._connection.receive_data(data)
            return self._connection.next_event()
        except h11.RemoteProtocolError as error:
            # Its text may quote what the client sent: secrets too.
            raise HeadError(error.error_status_hint, "this is no HTTP request that can be read") from None


def _path_of(target: bytes) -> str:
    try:
        path, _, _ = target.decode("ascii").partition("?")
    except UnicodeDecodeError:
        path = ""
    if not path.startswith("/") or path.startswith("//"):
        raise HeadError(400, "the address of the request must be a path, such as /ws")
    return path
