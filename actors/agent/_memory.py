"""The memory that all conversations of a runtime take together, where it is limited.

Histories know what they take. Their sum is brought up to date for the history in hand alone, at the boundaries of its
steps: what other runs have added within the step they are in is not in it yet.
"""

from __future__ import annotations

from typing import final

from protocol.errors import RuntimeFull
from protocol.history import History
from protocol.limits import LimitState

__all__ = ("HistoryMemory",)


@final
class HistoryMemory:
    """Bytes of conversations."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.used = 0
        """By what is known of each history."""
        self._known: dict[int, int] = {}

    def note(self, history: History) -> None:
        """Count what this history takes now."""
        size = history.bytes
        self.used += size - self._known.get(id(history), 0)
        self._known[id(history)] = size

    def forget(self, history: History) -> None:
        """Its agent is gone."""
        self.used -= self._known.pop(id(history), 0)

    def admit(self, more: int, what: str) -> None:
        """Raise `RuntimeFull` where `what` would take so many bytes `more`, and there is no room for them."""
        if self.used + more > self.max_bytes:
            raise RuntimeFull(
                f"there is no room for {what} ({more:,} bytes): the conversations of the runtime take {self.used:,} of"
                f" {self.max_bytes:,} bytes. Stop agents that are not needed any more, or raise max_history_bytes"
            )

    def lacks(self, history: History) -> LimitState | None:
        """The limit, if no step of a run may follow that would let this history grow."""
        self.note(history)
        return LimitState("history_bytes", self.max_bytes, self.used) if self.used >= self.max_bytes else None
