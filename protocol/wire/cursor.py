"""A client's place in the numbered events of one agent (wire.md, *Envelope*): nothing twice, and no gap unnoticed."""

from __future__ import annotations

import attrs
import msgspec

from ..codec import decode_event
from ..events import Event
from .incoming import NotOfTheWireError
from .notifications import Events

__all__ = ("Cursor", "Numbered")


@attrs.frozen
class Numbered:
    """An event with its number."""

    number: int
    event: Event
    last: int
    """The same, or for a merged delta the last of the numbers that it stands for."""


class _Loose(msgspec.Struct, frozen=True, gc=False):
    """What is read of an event that this version does not know."""

    type: str
    n: int = 1


_loose = msgspec.json.Decoder(_Loose)


@attrs.define
class Cursor:
    """What was taken of an agent's events so far."""

    epoch: str
    seq: int
    """The last number that was taken."""
    duplicates: int = 0
    """Numbers that came again and were dropped."""
    unknown: int = 0
    """Events that were passed over: of a later version, or changed on the way."""
    skipped: int = 0
    """Events that the server left out, as it was asked to."""

    def take(self, events: Events) -> tuple[list[Numbered], bool]:
        """The events that are new, in order, and whether all is well: if not, what comes next is missing here.

        Raises `NotOfTheWireError` for what is no event at all.
        """
        if events.epoch != self.epoch or events.seq > self.seq + 1:
            return [], False
        new: list[Numbered] = []
        number = events.seq
        for data in events.events:
            event, last = self._read(number, data)
            if last <= self.seq:
                self.duplicates += last - number + 1
            elif number <= self.seq:
                return new, False  # a merge that spans our place: its text cannot be parted
            else:
                self.seq = last
                if event is not None:
                    new.append(Numbered(number, event, last))
            number = last + 1
        return new, True

    def _read(self, number: int, data: msgspec.Raw) -> tuple[Event | None, int]:
        try:
            event = decode_event(bytes(data))
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return None, number + self._passed_over(data, new=number > self.seq) - 1
        n: int = getattr(event, "n", 1)
        if n < 1:
            raise NotOfTheWireError(f"an event stands for {n} numbers")
        return event, number + n - 1

    def _passed_over(self, data: msgspec.Raw, *, new: bool) -> int:
        """How many numbers something stands for that is no event we know."""
        try:
            loose = _loose.decode(bytes(data))
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise NotOfTheWireError(f"what should be an event is none: {error}") from None
        if loose.n < 1:
            raise NotOfTheWireError(f"an event stands for {loose.n} numbers")
        if new and loose.type == "skipped":
            self.skipped += loose.n
        elif new:
            self.unknown += 1
        return loose.n
