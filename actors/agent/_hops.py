"""One request more of a turn that goes on: what it brings is shown as more of the same message.

What a model reports counts from the beginning of its own reply; here it is moved to where the message stood. Where the
model was asked in words, the beginning of its reply is held back until it is known how much of it repeats the text so
far. Where the piece before it is made anew, that one's text is taken back when the first of the new one arrives.
"""

from __future__ import annotations

import attrs

from protocol.model import CallDelta, HopBegan, HopEnded, ModelEmit, ModelEvent, ReasoningDelta, TextDelta, Undone
from protocol.seam import Seam, dropped_of
from protocol.text import clean

__all__ = ("HopInFlight",)


@attrs.define(eq=False)
class HopInFlight:
    """A request that continues a turn, while its reply arrives."""

    number: int
    """Of the hop: a model that makes several of it counts on from there."""
    shown: str
    """The text of the message that stands, as it was shown."""
    reasoning: int
    """Characters of the message's reasoning that stand."""
    seam: Seam | None = None
    """Where the model was asked in words."""
    replaces: bool = False
    """What was shown beyond these is void, and has not been taken back yet."""
    told: bool = False
    """The model itself has told how a hop of this call ended."""
    _spoke: bool = False
    _emit: ModelEmit | None = None

    def emitter(self, emit: ModelEmit) -> ModelEmit:
        """What the model reports to; `emit` takes it as of the whole message."""
        self._emit = emit
        return self._hear

    def shown_with(self, reply: str) -> str:
        """The text of the message, if the reply's is this."""
        dropped = 0
        if self.seam is not None:
            dropped = (self.seam.dropped if self._spoke else dropped_of(self.seam.before, clean(reply))) or 0
        return self.shown + reply[dropped:]

    def end(self) -> None:
        """The reply has ended, or was cut: show what was held back."""
        if self.seam is not None and self._emit is not None and (text := self.seam.end()):
            self._emit(TextDelta(text))

    def replace(self) -> None:
        """What was shown of the piece that this one replaces is void, if that has not been said."""
        if self.replaces and self._emit is not None:
            self.replaces = False
            self._emit(Undone(len(self.shown), self.reasoning))

    def _hear(self, event: ModelEvent) -> None:
        emit = self._emit
        assert emit is not None
        match event:
            case TextDelta(text=text):
                self.replace()
                self._spoke = True
                if self.seam is not None:
                    text = self.seam.feed(text)
                if text:
                    emit(TextDelta(text))
            case ReasoningDelta() | CallDelta():
                self.replace()
                emit(event)
            case Undone():
                text_stands = event.text if self.seam is None else self.seam.undo(event.text)
                emit(Undone(len(self.shown) + text_stands, self.reasoning + event.reasoning, event.calls))
            case HopBegan(hop=0):
                pass  # that is this one, and it has been announced
            case HopBegan():
                emit(HopBegan(self.number + event.hop, event.strategy))
            case HopEnded():
                self.told = True
                emit(attrs.evolve(event, hop=self.number + event.hop))
            case _:
                emit(event)
