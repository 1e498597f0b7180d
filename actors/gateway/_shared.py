"""What the clients of one stream share: the bytes they are sent, and what is known of its messages."""

from __future__ import annotations

import weakref

import attrs

from protocol.events import TERMINAL_EVENTS, StepFinished, StepStarted, ToolRequested

from ..eventlog import EventStream
from ._parts import Delta

__all__ = ("Made", "Shared", "SharedFrames")

_CLOSERS = (StepStarted, StepFinished, ToolRequested, *TERMINAL_EVENTS)
_MOST_RUNS = 1024


@attrs.frozen
class Made:
    """A message of everything behind `seq`, made when `visible` was the last number."""

    seq: int
    visible: int
    last: int
    """The last number in it."""
    size: int
    """What its events take in the log."""
    message: bytes = attrs.field(repr=False)


@attrs.define(eq=False)
class Shared:
    """Of one stream."""

    _stream: weakref.ref[EventStream]
    _made: Made | None = None
    _scanned: int = 0
    _closed_at: dict[str, int] = attrs.field(factory=dict[str, int])

    def get(self, seq: int, visible: int) -> Made | None:
        """The last message that was made, if it is of exactly this stretch."""
        made = self._made
        return made if made is not None and made.seq == seq and made.visible == visible else None

    def keep(self, seq: int, visible: int, last: int, size: int, message: bytes) -> Made:
        """Keep a message in place of the one before it."""
        self._made = Made(seq, visible, last, size, message)
        return self._made

    def finished_after(self, delta: Delta, number: int) -> bool:
        """Whether the message of a delta with this number is finished."""
        self._scan()
        return self._closed_at.get(delta.run, 0) > number

    def _scan(self) -> None:
        """Look at what has come since the last look: each event is looked at once, whoever asks."""
        stream = self._stream()
        if stream is None or self._scanned >= stream.visible:
            return
        first, entries = stream.read(self._scanned, stream.visible - self._scanned)
        for number, (event, _) in enumerate(entries, first):
            if isinstance(event, _CLOSERS):
                self._closed_at[event.run] = number
        self._scanned = stream.visible
        if len(self._closed_at) > _MOST_RUNS:
            self._closed_at = {run: at for run, at in self._closed_at.items() if at >= stream.oldest}


class SharedFrames:
    """`Shared` by stream, for as long as the stream is there."""

    def __init__(self) -> None:
        self._of: weakref.WeakKeyDictionary[EventStream, Shared] = weakref.WeakKeyDictionary()

    def of(self, stream: EventStream) -> Shared:
        """What the clients of this stream share."""
        shared = self._of.get(stream)
        if shared is None:
            shared = self._of[stream] = Shared(weakref.ref(stream))
        return shared
