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
        known = (self.uncached_input_tokens, self.cache_read_tokens, self.cache_write_tokens)
        return sum(tokens or 0 for tokens in known)

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

    __slots__ = ("_complete", "_sums")

    def __init__(self) -> None:
        self._sums: list[int | None] = [None, None, None, None, None]
        self._complete = True

    def add(self, usage: Usage) -> None:
        """Add what one call used; what is unknown adds nothing and makes the sum incomplete."""
        sums = self._sums
        if (tokens := usage.uncached_input_tokens) is not None:
            sums[0] = tokens + (sums[0] or 0)
        if (tokens := usage.cache_read_tokens) is not None:
            sums[1] = tokens + (sums[1] or 0)
        if (tokens := usage.cache_write_tokens) is not None:
            sums[2] = tokens + (sums[2] or 0)
        if (tokens := usage.output_tokens) is not None:
            sums[3] = tokens + (sums[3] or 0)
        if (tokens := usage.reasoning_tokens) is not None:
            sums[4] = tokens + (sums[4] or 0)
        if not usage.complete:
            self._complete = False

    def total(self, last: Usage | None = None) -> Usage:
        """The sum up to now, and of one more call if it is given."""
        uncached, read, write, output, reasoning = self._sums
        if last is None:
            return Usage(uncached, read, write, output, reasoning, self._complete)
        return Usage(
            _plus(uncached, last.uncached_input_tokens),
            _plus(read, last.cache_read_tokens),
            _plus(write, last.cache_write_tokens),
            _plus(output, last.output_tokens),
            _plus(reasoning, last.reasoning_tokens),
            self._complete and last.complete,
        )


NO_USAGE = Usage(complete=True)
"""The usage of no call at all: the neutral element of the sum."""

UNKNOWN_USAGE = Usage()
"""The usage of a call that reported none."""
