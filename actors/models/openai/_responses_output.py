"""Responses: the items of one reply, and which of them an event or a later telling is about. No I/O.

By the format each event names its item by `item_id` and `output_index`. Real servers leave one of them out, count
from 0 for each type of item or give all items the same place, or make up new ids for each event and once more for the
whole response. So what names an item surely comes first: its id, then the id of its call; then its place; then what
alone can still grow.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

from protocol.model import ModelEvent

from ..wire import string
from ._responses_items import Item

__all__ = ("Output",)


class Output:
    """The items of a reply, in the order of the output."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self._numbers = itertools.count()

    def open(self, type_: str, told: Mapping[str, Any], index: int | None, *, at: int | None = None) -> Item:
        """Begin an item, at the end of the output or at a place."""
        item = Item(type_, string(told.get("id")), index, self._numbers)
        self.items.insert(len(self.items) if at is None else at, item)
        return item

    def named(self, type_: str, told: Mapping[str, Any]) -> Item | None:
        """The item with the id, or one that has been told in these very words."""
        alike = [item for item in self.items if item.type == type_]
        by_id = next((item for item in alike if _has_id(item, told)), None)
        return by_id or next((item for item in alike if item.done and item.told == told), None)

    def growing(self, type_: str, id_: str, index: int | None, told: Mapping[str, Any] | None = None) -> Item | None:
        """The item that can still grow, for an event or a telling that does not name it surely."""
        alike = [item for item in reversed(self.items) if item.type == type_ and not item.done]
        if told is not None:
            by_call = next((item for item in alike if _has_call_id(item, told)), None)
            if by_call is not None:
                return by_call
            alike = [item for item in alike if _may_be(item, told)]
        if index is not None:
            return next((item for item in alike if item.index == index), None)
        if not id_:
            return alike[0] if len(alike) == 1 or (alike and type_ != "function_call") else None
        if type_ == "function_call":
            alike = [item for item in alike if not item.id]
            return alike[0] if len(alike) == 1 else None
        return alike[0] if alike and alike[0] is self.items[-1] else None

    def settle(self, output: list[dict[str, Any]]) -> list[ModelEvent]:
        """Take the output as the server tells it in the end: what was not streamed comes at its place."""
        left = list(self.items)
        found: dict[int, Item] = {}
        for is_it in (_has_id, _has_call_id, _has_place, _may_be):
            for place, told in enumerate(output):
                item = None if place in found else _first(left, is_it, {**told, "output_index": place})
                if item is not None:
                    left.remove(item)
                    found[place] = item
        events: list[ModelEvent] = []
        at = 0
        for place, told in enumerate(output):
            type_ = string(told.get("type"))
            if type_:
                item = found.get(place) or self.open(type_, told, place, at=at)
                at = self.items.index(item) + 1
                events += item.settle(told)
        return events

    def flush(self) -> list[ModelEvent]:
        """Report what was held back."""
        return [event for item in self.items for event in item.flush()]


def _first(left: list[Item], is_it: Callable[[Item, Mapping[str, Any]], bool], told: Mapping[str, Any]) -> Item | None:
    return next((item for item in left if item.type == told.get("type") and is_it(item, told)), None)


def _has_id(item: Item, told: Mapping[str, Any]) -> bool:
    return bool(item.id) and item.id == told.get("id")


def _has_call_id(item: Item, told: Mapping[str, Any]) -> bool:
    return bool(item.call_id) and item.call_id == told.get("call_id")


def _has_place(item: Item, told: Mapping[str, Any]) -> bool:
    return item.index == told["output_index"] and _may_be(item, told)


def _may_be(item: Item, told: Mapping[str, Any]) -> bool:
    """Whether nothing speaks against it: of calls with different ids, that they do not call the same."""
    call_id = string(told.get("call_id"))
    if not (item.call_id and call_id) or item.call_id == call_id:
        return True
    if item.name != told.get("name"):
        return False
    return not item.done or item.arguments == told.get("arguments")
