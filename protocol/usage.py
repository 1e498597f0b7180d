"""Token usage in classes that do not overlap; what was not reported stays unknown."""

from __future__ import annotations

import msgspec

__all__ = ("NO_USAGE", "UNKNOWN_USAGE", "Tally", "Usage")


def _plus(left: int | None, right: int | None) -> int | None:
    if left is None:
        return right
    return left if right is None else left + right


class Usage(msgspec.Struct, frozen=True, gc=False):
    """Tokens of one model call, or the sum over several. `None` is unknown; a reported 0 is 0."""

    uncached_input_tokens: int | None = None
    """Input read at full price: cached tokens are not counted in it."""
    cache_read_tokens: int | None = None
    """Input served from the provider's prompt cache."""
    cache_write_tokens: int | None = None
    """Input written to the provider's prompt cache."""
    output_tokens: int | None = None
    """All output, reasoning included."""
    reasoning_tokens: int | None = None
    """The part of `output_tokens` that was hidden reasoning."""
    complete: bool = False
    """Whether every call in the sum reported its input and output."""

    @property
    def input_tokens(self) -> int:
        """All known input, cached or not."""
        return (self.uncached_input_tokens or 0) + (self.cache_read_tokens or 0) + (self.cache_write_tokens or 0)

    @property
    def total_tokens(self) -> int:
        """All tokens that are known; `complete` says whether that is all there were."""
        return self.input_tokens + (self.output_tokens or 0)

    def __add__(self, other: Usage) -> Usage:
        """Sum class by class: unknown plus known is what is known, and not complete."""
        return Usage(
            _plus(self.uncached_input_tokens, other.uncached_input_tokens),
            _plus(self.cache_read_tokens, other.cache_read_tokens),
            _plus(self.cache_write_tokens, other.cache_write_tokens),
            _plus(self.output_tokens, other.output_tokens),
            _plus(self.reasoning_tokens, other.reasoning_tokens),
            self.complete and other.complete,
        )


class Tally:
    """A running sum of usage, cheap to add to."""

    __slots__ = ("_complete", "_known", "_output", "_read", "_reasoning", "_uncached", "_write")

    def __init__(self) -> None:
        self._uncached = self._read = self._write = self._output = self._reasoning = 0
        self._known = 0
        """One bit for each class of which anything is known."""
        self._complete = True

    def add(self, usage: Usage) -> None:
        """Add what one call used; what is unknown adds nothing and makes the sum incomplete."""
        if (tokens := usage.uncached_input_tokens) is not None:
            self._uncached += tokens
            self._known |= 1
        if (tokens := usage.cache_read_tokens) is not None:
            self._read += tokens
            self._known |= 2
        if (tokens := usage.cache_write_tokens) is not None:
            self._write += tokens
            self._known |= 4
        if (tokens := usage.output_tokens) is not None:
            self._output += tokens
            self._known |= 8
        if (tokens := usage.reasoning_tokens) is not None:
            self._reasoning += tokens
            self._known |= 16
        if not usage.complete:
            self._complete = False

    def total(self, last: Usage | None = None) -> Usage:
        """The sum up to now, and of one more call if it is given."""
        known = self._known
        total = Usage(
            self._uncached if known & 1 else None,
            self._read if known & 2 else None,
            self._write if known & 4 else None,
            self._output if known & 8 else None,
            self._reasoning if known & 16 else None,
            self._complete,
        )
        return total if last is None else total + last


NO_USAGE = Usage(complete=True)
"""The usage of no call at all: the neutral element of the sum."""

UNKNOWN_USAGE = Usage()
"""The usage of a call that reported none."""
