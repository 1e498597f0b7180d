"""Tables with keys of their own: what is read, what is made of it, and what the schema says, come from one list of keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import attrs

from protocol.text import guess

from ._faults import BAD, Reading
from ._kinds import Either, Kind, Schema
from ._places import Place

__all__ = ("Key", "Table")


@attrs.frozen
class Key:
    """A key of a table."""

    name: str
    kind: Kind
    text: str
    """What it says, for people."""
    to: str | None = attrs.field(default=None, kw_only=True)
    """The parameter that it sets: by default the one of its name; `""` for none, because more is to be done."""
    needed: bool = attrs.field(default=False, kw_only=True)

    @property
    def parameter(self) -> str:
        """The parameter that it sets."""
        return self.name if self.to is None else self.to


@attrs.frozen(kw_only=True)
class Table(Kind):
    """A table with keys of its own."""

    title: str
    """What it is called in the schema."""
    keys: tuple[Key, ...]
    form: type | tuple[type, ...] = dict

    def read(self, value: Any, place: Place, reading: Reading) -> Any:
        """The values that are right, by their keys."""
        if not isinstance(value, dict):
            return self.wrong(value, place, reading)
        known = {key.name: key for key in self.keys}
        found: dict[str, Any] = {}
        for name, given in cast("dict[str, object]", value).items():
            at = (*place, name)
            if at in reading.refused:
                continue
            if name not in known:
                reading.fault(
                    at, f"is unknown{guess(name, known)}{self._elsewhere(name)}; there are: {', '.join(known)}"
                )
                continue
            item = known[name].kind.read(given, at, reading)
            if item is not BAD:
                found[name] = item
        for key in self.keys:
            if key.needed and key.name not in value:
                reading.fault(place, f"lacks {key.name}: {key.text}")
        return found

    def _elsewhere(self, name: str) -> str:
        """Where a key belongs that stands one table too high."""
        for key in self.keys:
            if isinstance(key.kind, Either):
                inner = [kind for kind in key.kind.kinds if isinstance(kind, Table)]
            else:
                inner = [key.kind] if isinstance(key.kind, Table) else []
            if any(name == below.name for table in inner for below in table.keys):
                return f" (it is a key of {key.name}: {key.name}.{name})"
        return ""

    def parameters(self, values: Mapping[str, Any], place: Place) -> tuple[dict[str, Any], dict[str, Place]]:
        """The parameters that values of this table set, and the place of each."""
        set_ = [key for key in self.keys if key.name in values and key.parameter]
        return {key.parameter: values[key.name] for key in set_}, {key.parameter: (*place, key.name) for key in set_}

    def schema(self, tables: dict[str, Schema]) -> Schema:
        """A reference to its definition."""
        if self.title not in tables:
            made = tables[self.title] = {"type": "object", "description": f"{self.what[0].upper()}{self.what[1:]}."}
            made["properties"] = {key.name: {"description": key.text, **key.kind.schema(tables)} for key in self.keys}
            needed = [key.name for key in self.keys if key.needed]
            if needed:
                made["required"] = needed
            made["additionalProperties"] = False
        return {"$ref": f"#/$defs/{self.title}"}
