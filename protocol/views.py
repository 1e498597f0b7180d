"""Read-only views of growing lists: making one copies nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar, overload

__all__ = ("View",)

T_co = TypeVar("T_co", covariant=True)


class View(Sequence[T_co], Generic[T_co]):
    """The first `length` items of a list that only grows: later appends do not show in it."""

    __slots__ = ("_items", "_length")

    def __init__(self, items: Sequence[T_co]) -> None:
        """See what `items` holds now."""
        self._items = items
        self._length = len(items)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> T_co: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T_co]: ...
    def __getitem__(self, index: int | slice) -> T_co | Sequence[T_co]:
        if isinstance(index, slice):
            return tuple([self._items[i] for i in range(*index.indices(self._length))])
        if not -self._length <= index < self._length:
            raise IndexError(index)
        return self._items[index if index >= 0 else index + self._length]

    def __iter__(self) -> Iterator[T_co]:
        for index in range(self._length):
            yield self._items[index]

    def __repr__(self) -> str:
        return f"<View of {self._length} items>"
