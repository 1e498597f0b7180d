"""What values a host file may hold: each kind says what it is, reads a value, and has a JSON Schema.

A value that is wrong is noted as a fault, and `BAD` stands in its place, so that reading goes on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

import attrs

from protocol.text import guess

from ._faults import BAD, Reading, quoted
from ._places import Place

__all__ = ("Choice", "Either", "Kind", "ListOf", "MapOf", "OrNone", "Placed", "Plain", "Schema", "is_number")

Schema: TypeAlias = dict[str, Any]


@attrs.frozen(kw_only=True)
class Kind:
    """A kind of values."""

    what: str
    """What it is, in words: `a whole number of 1 or more`."""
    form: type | tuple[type, ...] = str
    """The types that TOML has for it."""

    def takes(self, value: object) -> bool:
        """Whether a value has its form, right or wrong."""
        return isinstance(value, self.form) and (not isinstance(value, bool) or self.form is bool)

    def read(self, value: Any, place: Place, reading: Reading) -> Any:
        """What a value says; `BAD` if it is wrong."""
        raise NotImplementedError

    def schema(self, tables: dict[str, Schema]) -> Schema:
        """Its JSON Schema; tables that it needs are put into `tables`."""
        raise NotImplementedError

    def wrong(self, value: object, place: Place, reading: Reading) -> Any:
        """Note that a value is none of this kind."""
        return reading.fault(place, f"must be {self.what}; it is {quoted(value)}")


def _as_it_is(value: Any, _place: Place, _reading: Reading) -> Any:
    return value


@attrs.frozen(kw_only=True)
class Plain(Kind):
    """A single value: of a form, that fits, and perhaps means something else than it says."""

    fits: Callable[[Any], bool]
    schema_: Mapping[str, Any]
    meaning: Callable[[Any, Place, Reading], Any] = _as_it_is
    """Looks up what a value that fits stands for, and notes what is wrong with it."""
    is_secret: bool = False
    """Its value is shown to nobody: somebody may have put a key where the name of one belongs."""

    def read(self, value: Any, place: Place, reading: Reading) -> Any:
        """What it means."""
        if self.takes(value) and self.fits(value):
            return self.meaning(value, place, reading)
        if self.is_secret:
            return reading.fault(place, f"must be {self.what}; what stands there is not shown")
        return self.wrong(value, place, reading)

    def schema(self, tables: dict[str, Schema]) -> Schema:
        """As given."""
        del tables
        return dict(self.schema_)


@attrs.frozen(kw_only=True)
class Choice(Kind):
    """One of a few words; or something else, told by its colon."""

    words: Mapping[str, Any]
    """What each stands for."""
    otherwise: Kind | None = None

    def read(self, value: Any, place: Place, reading: Reading) -> Any:
        """What the word stands for."""
        if self.otherwise is not None and isinstance(value, str) and ":" in value:
            return self.otherwise.read(value, place, reading)
        if isinstance(value, str) and value in self.words:
            return self.words[value]
        near = guess(value, self.words) if isinstance(value, str) else ""
        return reading.fault(place, f"must be {self.what}; it is {quoted(value)}{near}")

    def schema(self, tables: dict[str, Schema]) -> Schema:
        """The words, and what else there may be."""
        words: Schema = {"enum": list(self.words)}
        return words if self.otherwise is None else {"anyOf": [words, self.otherwise.schema(tables)]}


@attrs.frozen(kw_only=True)
class OrNone(Kind):
    """A value, or the word `none`: TOML has no other."""

    kind: Kind
    what: str = attrs.field(init=False, default="")
    form: type | tuple[type, ...] = attrs.field(init=False, default=object)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "what", f'{self.kind.what}, or "none"')

    def read(self, value: Any, place: Place, reading: Reading) -> Any:
        """The value, or `None`."""
        if value == "none":
            return None
        return self.kind.read(value, place, reading) if self.kind.takes(value) else self.wrong(value, place, reading)

    def schema(self, tables: dict[str, Schema]) -> Schema:
        """Either of them."""
        return {"anyOf": [self.kind.schema(tables), {"const": "none"}]}


@attrs.frozen(kw_only=True)
class ListOf(Kind):
    """A list whose items are of one kind: those that are right."""

    item: Kind
    form: type | tuple[type, ...] = list

    def read(self, value: Any, place: Place, reading: Reading) -> Any:
        """The items that are right."""
        if not isinstance(value, list):
            return self.wrong(value, place, reading)
        items = [
            self.item.read(item, (*place, number), reading)
            for number, item in enumerate(cast("list[object]", value))
            if (*place, number) not in reading.refused
        ]
        return [item for item in items if item is not BAD]

    def schema(self, tables: dict[str, Schema]) -> Schema:
        """A list."""
        return {"type": "array", "items": self.item.schema(tables)}


@attrs.frozen(kw_only=True)
class Placed(Kind):
    """A value with its place, for what is looked at again when all of the file has been read."""

    kind: Kind
    what: str = attrs.field(init=False, default="")
    form: type | tuple[type, ...] = attrs.field(init=False, default=object)

    def read(self, value: Any, place: Place, reading: Reading) -> Any:
        """The place, and the value."""
        item = self.kind.read(value, place, reading)
        return item if item is BAD else (place, item)

    def schema(self, tables: dict[str, Schema]) -> Schema:
        """That of the value."""
        return self.kind.schema(tables)


@attrs.frozen(kw_only=True)
class MapOf(Kind):
    """A table whose keys are names that the file chooses."""

    item: Kind
    name: Plain
    """What a name may be."""
    form: type | tuple[type, ...] = dict

    def read(self, value: Any, place: Place, reading: Reading) -> Any:
        """Those that are right, by their names."""
        if not isinstance(value, dict):
            return self.wrong(value, place, reading)
        found: dict[str, Any] = {}
        for name, given in cast("dict[str, object]", value).items():
            at = (*place, name)
            if at in reading.refused:
                continue
            known = self.name.read(name, at, reading)
            item = self.item.read(given, at, reading)
            if known is not BAD and item is not BAD:
                found[name] = item
        return found

    def schema(self, tables: dict[str, Schema]) -> Schema:
        """A table of any names."""
        return {
            "type": "object",
            "propertyNames": self.name.schema(tables),
            "additionalProperties": self.item.schema(tables),
        }


@attrs.frozen(kw_only=True)
class Either(Kind):
    """One of several kinds, told by their form."""

    kinds: tuple[Kind, ...]
    form: type | tuple[type, ...] = attrs.field(init=False, default=object)

    def read(self, value: Any, place: Place, reading: Reading) -> Any:
        """As the first kind reads it that has its form."""
        for kind in self.kinds:
            if kind.takes(value):
                return kind.read(value, place, reading)
        return self.wrong(value, place, reading)

    def schema(self, tables: dict[str, Schema]) -> Schema:
        """Any of them."""
        return {"anyOf": [kind.schema(tables) for kind in self.kinds]}


def is_number(value: object) -> bool:
    """A number that TOML promises to carry, and no bool."""
    if isinstance(value, bool):
        return False
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    return isinstance(value, float) and math.isfinite(value)
