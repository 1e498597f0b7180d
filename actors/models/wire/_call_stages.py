"""How far a call has got, and how long it may wait there. One deadline, which moves as the call gets on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import trio

from protocol.errors import SpecError

from ._transport_errors import Stage, reason_of

__all__ = ("CLOSE_SECONDS", "Deadlines", "Stages", "Watch")

CLOSE_SECONDS = 2.0
"""How long closing a connection may take."""

_GRAIN = 0.01  # a silence may last this part longer than it should


def _positive(_: object, field: attrs.Attribute[float], value: float) -> None:
    if not value > 0:
        name = field.name.removesuffix("_seconds")
        raise SpecError(f"{name}_timeout_seconds must be more than 0; it is {value!r}")


@attrs.frozen(kw_only=True)
class Deadlines:
    """How long a call waits for what. Raises `SpecError` for a time that is not more than 0."""

    connect_seconds: float = attrs.field(default=10.0, validator=_positive)
    """For a connection, name look-up and TLS included."""
    first_byte_seconds: float = attrs.field(default=120.0, validator=_positive)
    """From the request to the first byte of the reply's body."""
    idle_seconds: float = attrs.field(default=60.0, validator=_positive)
    """For the next byte of a reply that has begun."""
    hop_seconds: float = attrs.field(default=math.inf, validator=_positive)
    """For one request, from the look-up of its host to the end of its reply."""


class Watch:
    """The deadline of a call in hand."""

    def __init__(self, deadlines: Deadlines) -> None:
        self.scope = trio.CancelScope()
        self.stage: Stage = "connect"
        self._moved = 0.0
        self._end = trio.current_time() + deadlines.hop_seconds
        self._seconds: dict[Stage, float] = {
            "connect": deadlines.connect_seconds,
            "first byte": deadlines.first_byte_seconds,
            "idle": deadlines.idle_seconds,
            "request": deadlines.hop_seconds,
        }

    @property
    def exceeded(self) -> tuple[Stage, float]:
        """Which time was too short, and how long it was."""
        stage = "request" if self.scope.deadline >= self._end else self.stage
        return stage, self._seconds[stage]

    def enter(self, stage: Stage) -> None:
        """The call has got this far; its time there begins."""
        self.stage = stage
        self._moved = trio.current_time()
        self.scope.deadline = min(self._moved + self._seconds[stage] * (1 + _GRAIN), self._end)

    def pause(self) -> None:
        """Somebody else watches the time from here on; that of the whole request still runs."""
        self.scope.deadline = self._end

    def note_bytes(self) -> None:
        """Bytes have come. Moving a deadline costs as much as reading a delta, so it is moved now and then."""
        if self.stage != "idle" or trio.current_time() - self._moved >= self._seconds["idle"] * _GRAIN:
            self.enter("idle")

    def shorten_idle(self, seconds: float) -> None:
        """Wait no longer than this for bytes from now on."""
        self._seconds["idle"] = min(self._seconds["idle"], seconds)
        self.enter("idle")


class Stages:
    """Follows a request through the library below, by what that reports."""

    def __init__(self, watch: Watch, on_sent: Callable[[], None]) -> None:
        self.sent = False
        self.connected = False
        """Whether a connection was made for this request."""
        self.reused = False
        """Whether it was written to a connection from before. Servers close those when they like, even llama.cpp's
        just after it has said that it will not: one that ends without a byte of a reply is no answer to the request."""
        self.reason = ""
        """Why it failed, from where that was known best: further up, the cause is cut off."""
        self._watch = watch
        self._on_sent = on_sent
        self._stream: Any = None

    def note_sent(self) -> None:
        """The request is handed to a connection, or has been."""
        if not self.sent:
            self.sent = True
            self._watch.enter("first byte")
            self._on_sent()

    async def note(self, event: str, info: Mapping[str, Any]) -> None:
        """What the library reports of the request, as its `trace` extension."""
        stage = event.partition(".")[2]
        if stage.endswith(".failed"):
            if isinstance(info["exception"], Exception):
                self.reason = reason_of(info["exception"])
            if stage == "start_tls.failed" and self._stream is not None:
                # A handshake that is cancelled leaves the socket open.
                with trio.move_on_after(CLOSE_SECONDS, shield=True):
                    await self._stream.aclose()
        elif stage == "connect_tcp.complete":
            self.connected = True
            self._stream = info["return_value"]
        elif stage == "send_request_headers.started" and info["request"].method != b"CONNECT":
            self.reused = not self.connected
            self.note_sent()  # what is asked of a proxy does not count
