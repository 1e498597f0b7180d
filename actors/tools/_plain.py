"""Python values as JSON values: text, numbers, true, false, null, lists and dicts with text keys.

What comes out encodes as strict JSON in UTF-8. The work is bounded: shared parts count each time they would be
written, so a small value that unfolds into a huge one is refused, as is one that nests too deep or contains itself.
"""

from __future__ import annotations

import base64
import collections
import collections.abc
import dataclasses
import datetime as dt
import decimal
import enum
import inspect
import math
import pathlib
import uuid
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import attrs
import msgspec

from protocol.errors import OnwardError
from protocol.text import clean

__all__ = ("Unfit", "bytes_text", "plain")

_MOST_DEPTH = 100
_MOST_COST = 100_000_000
"""A character costs 1, a value 32, a container 128: about the memory that the JSON values need."""
_VALUE_COST = 32
_CONTAINER_COST = 128
_MOST_BITS = 14_000  # Python writes integers of up to 4300 digits
_qualname_of = type.__dict__["__qualname__"].__get__
_module_of = type.__dict__["__module__"].__get__
_COLLECTIONS = (
    collections.deque,
    range,
    collections.abc.KeysView,
    collections.abc.ValuesView,
    collections.abc.ItemsView,
)


class Unfit(OnwardError):
    """A value that JSON cannot carry; the text says what it is."""


def plain(value: object) -> Any:
    """`value` as JSON values. Raises `Unfit`, or what the value's own code raises while it is read."""
    return _Plainer().value(value)


def bytes_text(value: bytes | bytearray | memoryview) -> str:
    """Bytes as the UTF-8 text they are, else in base64, marked as such."""
    raw = bytes(value)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return f"base64:{base64.b64encode(raw).decode()}"


@attrs.define
class _Plainer:
    cost: int = 0
    open: set[int] = attrs.field(factory=set[int])
    """The containers being read: one of them met again contains itself."""

    def value(self, value: Any) -> Any:  # noqa: C901  # one case for each kind of value
        kind: type[Any] = type(value)  # pyright: ignore[reportUnknownVariableType]
        if value is None or kind is bool:
            return value
        if kind is str:
            return self._text(value)
        if kind is int:
            return _whole(value)
        if kind is float:
            return _number(value)
        if kind is dict or kind is list:
            return self._container(value)
        match value:
            case enum.Enum():
                return self.value(value.value)
            # A subclass may write itself as it likes; what it is stands in the base type's own text.
            case str():
                return self._text(str.__str__(value))  # noqa: PLC2801
            case int():
                return _whole(int.__index__(value))
            case float():
                return _number(float.__float__(value))  # noqa: PLC2801
            case decimal.Decimal() | uuid.UUID() | pathlib.PurePath():
                return self._text(str(value))
            case dt.date() | dt.time():  # a datetime is a date
                return value.isoformat()
            case dt.timedelta():
                return msgspec.to_builtins(value)
            case bytes() | bytearray() | memoryview():
                return self._text(bytes_text(value))  # pyright: ignore[reportUnknownArgumentType]
            case _:
                return self._container(value)

    def _container(self, value: object) -> Any:
        if id(value) in self.open:
            raise Unfit(f"{_article(value)} that contains itself")
        if len(self.open) >= _MOST_DEPTH:
            raise Unfit(f"{_article(value)} nested deeper than {_MOST_DEPTH} levels")
        self._spend(_CONTAINER_COST)
        self.open.add(id(value))
        made = self._members(value)
        self.open.discard(id(value))
        return made

    def _members(self, value: object) -> Any:
        if isinstance(value, list | tuple):
            return self._list(value)  # pyright: ignore[reportUnknownArgumentType]
        if isinstance(value, dict):  # most are, and to ask whether it is a Mapping takes longer
            return self._dict(value.items())  # pyright: ignore[reportUnknownArgumentType]
        if isinstance(value, set | frozenset):
            return _sorted(self._list(value))  # pyright: ignore[reportUnknownArgumentType]
        if isinstance(value, _COLLECTIONS):
            return self._list(value)  # pyright: ignore[reportUnknownArgumentType]
        if isinstance(value, type):
            raise Unfit(f"the class {_qualname_of(value)}")
        items = _items(value)
        if items is not None:
            return self._dict(items)
        if inspect.iscoroutine(value):
            value.close()  # nobody will await it: without this, Python warns when it is collected
            raise Unfit("a coroutine that was not awaited (is the function async? then declare it so)")
        raise Unfit(_article(value))

    def _list(self, members: Collection[Any]) -> list[Any]:
        self._spend(_VALUE_COST * len(members))
        return [self.value(member) for member in members]

    def _dict(self, items: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, member in items:
            self._spend(_VALUE_COST)
            name = self._key(key)
            if name in made:
                raise Unfit(f"a mapping with two keys that are both written {name[:100]!r}")
            made[name] = self.value(member)
        return made

    def _key(self, key: Any) -> str:
        if type(key) is str:
            return self._text(key)
        written = self.value(key)
        if isinstance(written, str):
            return written
        if isinstance(written, list | dict):
            raise Unfit(f"a mapping with a key of type {_name(key)}")
        return msgspec.json.encode(written).decode()

    def _text(self, text: str) -> str:
        self._spend(len(text))
        return clean(text)

    def _spend(self, cost: int) -> None:
        self.cost += cost
        if self.cost > _MOST_COST:
            raise Unfit("a value too large to be written out (return what matters, or write it to a file)")


def _whole(value: int) -> int:
    if value.bit_length() > _MOST_BITS:
        raise Unfit(f"an integer of {value.bit_length()} bits")
    return value


def _number(value: float) -> float | str:
    """A number as JSON has it; NaN and the infinities, which it has not, by name."""
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _sorted(members: list[Any]) -> list[Any]:
    """Numbers and texts in their own order, anything else in the order of its JSON: the same in every process."""
    kinds: set[type[Any]] = {type(member) for member in members}
    if kinds <= {int, float} or kinds == {str}:
        return sorted(members)
    return sorted(members, key=msgspec.json.encode)


def _items(value: object) -> Iterable[tuple[Any, Any]] | None:
    """Names and values of what JSON writes as an object; `None` for anything else."""
    if isinstance(value, Mapping):
        return value.items()  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, msgspec.Struct):
        return _struct_items(value)
    kind = type(value)
    if attrs.has(kind):
        return [(field.name, getattr(value, field.name)) for field in attrs.fields(kind)]
    if dataclasses.is_dataclass(kind):
        return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(kind)]
    return None


def _struct_items(value: msgspec.Struct) -> list[tuple[str, Any]]:
    """A struct's fields by the names that its JSON has, its tag first."""
    config = value.__struct_config__
    items: list[tuple[str, Any]] = [] if config.tag is None else [(str(config.tag_field), config.tag)]
    for field, name in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True):
        member = getattr(value, field)
        if member is not msgspec.UNSET:
            items.append((name, member))
    return items


def _name(value: object) -> str:
    """The name of a value's type, its module before it unless it is built in. Runs no code of the value or its type."""
    kind = type(value)
    module = _module_of(kind)
    name: str = _qualname_of(kind)
    return f"{module}.{name}" if type(module) is str and module != "builtins" else name


def _article(value: object) -> str:
    name = _name(value)
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
