"""Whether a JSON value fits a JSON Schema: the part of the standard that calls get wrong.

Checked are types, required and unknown properties, items, `enum`, `const`, `anyOf`, `oneOf` (as `anyOf`), `allOf` and
local references. Ranges, patterns, formats and the rest are not: for a function's own parameters msgspec checks them,
for a foreign schema the tool itself must. A keyword that is not known never makes a value unfit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

import attrs

from ._json import list_or_empty, mapping_or_empty

__all__ = ("Path", "Problem", "check", "json_type")

Path: TypeAlias = tuple[str | int, ...]

_MOST_PROBLEMS = 50  # enough to mend and more than enough to tell
_MOST_HOPS = 32
_TYPES: dict[type, str] = {
    dict: "object",
    list: "array",
    tuple: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


@attrs.frozen
class Problem:
    """One place where a value does not fit."""

    path: Path
    kind: Literal["type", "value", "missing", "unknown"]
    value: Any
    """What stands there; for `missing`, nothing."""
    wanted: tuple[Any, ...]
    """Types (`type`), values (`value`), or the known property names (`unknown`)."""


def check(schema: Mapping[str, Any], value: Any) -> list[Problem]:
    """The problems of `value`, at most 50; none if it fits.

    Time is linear in the value and in the schema's branches, however deep they nest. A value, or a schema, that nests
    too deep for the interpreter raises `RecursionError`.
    """
    return _Checker(schema).node(schema, value, ())


def json_type(value: object) -> str:
    """The JSON type of a decoded value; a Python type's name where it is none."""
    return _TYPES.get(type(value)) or type(value).__name__


@attrs.define
class _Checker:
    root: Mapping[str, Any]
    seen: dict[tuple[int, Path], list[Problem]] = attrs.field(factory=dict[tuple[int, Path], list[Problem]])
    """What was found for a branch at a place. Without it, unions in unions would be tried again at each level."""

    def node(self, schema: Any, value: Any, path: Path) -> list[Problem]:
        if schema is False:
            return [Problem(path, "unknown", value, ())]
        node = self._resolved(schema)
        wanted = _wanted_types(node)
        if wanted and not _has_type(value, wanted):
            return [Problem(path, "type", value, wanted)]
        values = _wanted_values(node)
        if values is not None and not any(_same(value, each) for each in values):
            return [Problem(path, "value", value, values)]
        found: list[Problem] = []
        for branch in list_or_empty(node.get("allOf")):
            _extend(found, self._branch(branch, value, path))
        for key in ("anyOf", "oneOf"):
            if branches := list_or_empty(node.get(key)):
                _extend(found, self._closest(branches, value, path))
        kind = json_type(value)
        if kind == "object":
            self._object(node, value, path, found)
        elif kind == "array":
            self._array(node, value, path, found)
        return found

    def _resolved(self, schema: Any) -> Mapping[str, Any]:
        """The schema behind references; `{}`, which takes anything, where there is none."""
        for _ in range(_MOST_HOPS):
            node = mapping_or_empty(schema)
            reference = node.get("$ref")
            if not isinstance(reference, str):
                return node
            schema = self._target(reference)
        return {}

    def _target(self, reference: str) -> Any:
        """What a local reference points at; `None` for others and for broken ones."""
        if reference != "#" and not reference.startswith("#/"):
            return None
        node: Any = self.root
        for step in reference.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            node = mapping_or_empty(node).get(name)
        return node

    def _branch(self, branch: Any, value: Any, path: Path) -> list[Problem]:
        key = (id(branch), path)
        found = self.seen.get(key)
        if found is None:
            found = self.seen[key] = self.node(branch, value, path)
        return found

    def _closest(self, branches: Iterable[Any], value: Any, path: Path) -> list[Problem]:
        """The problems of the branch that fits best; none if one fits."""
        best: list[Problem] = []
        wanted: dict[Any, None] = {}
        for branch in branches:
            found = self._branch(branch, value, path)
            if not found:
                return []
            if _only_type(found, path):
                wanted.update(dict.fromkeys(found[0].wanted))
            elif not best or _rank(found, path) < _rank(best, path):
                best = found
        # A branch of the value's own type tells more than that the others want another type.
        return best or [Problem(path, "type", value, tuple(wanted))]

    def _object(self, schema: Mapping[str, Any], value: dict[str, Any], path: Path, found: list[Problem]) -> None:
        properties = mapping_or_empty(schema.get("properties"))
        missing = [name for name in list_or_empty(schema.get("required")) if type(name) is str and name not in value]
        _extend(
            found,
            [
                Problem((*path, name), "missing", None, _wanted_types(self._resolved(properties.get(name))))
                for name in missing
            ],
        )
        others = schema.get("additionalProperties", True)
        patterns = schema.get("patternProperties")  # not read: with them, no name is known to be unknown
        for name, member in value.items():
            if len(found) >= _MOST_PROBLEMS:
                return
            if name in properties:
                _extend(found, self.node(properties[name], member, (*path, name)))
            elif patterns:
                continue
            elif others is False:
                found.append(Problem((*path, name), "unknown", member, tuple(properties)))
            else:
                _extend(found, self.node(others, member, (*path, name)))

    def _array(self, schema: Mapping[str, Any], value: list[Any], path: Path, found: list[Problem]) -> None:
        first = list_or_empty(schema.get("prefixItems"))
        others = schema.get("items", True)
        if others is True and not first:
            return
        for index, member in enumerate(value):
            if len(found) >= _MOST_PROBLEMS:
                return
            _extend(found, self.node(first[index] if index < len(first) else others, member, (*path, index)))


def _wanted_types(schema: Any) -> tuple[str, ...]:
    """The types a schema names; none if it takes any."""
    named = mapping_or_empty(schema).get("type")
    return (named,) if isinstance(named, str) else tuple([kind for kind in list_or_empty(named) if type(kind) is str])


def _wanted_values(schema: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """The values a schema names; `None` if it names none."""
    if "enum" in schema:
        return tuple(list_or_empty(schema["enum"]))
    return (schema["const"],) if "const" in schema else None


def _has_type(value: Any, wanted: tuple[str, ...]) -> bool:
    kind = json_type(value)
    return kind in wanted or (kind == "integer" and "number" in wanted)


def _same(value: Any, other: Any) -> bool:
    """Whether two JSON values are equal: `1` and `1.0` are, `1` and `true` are not."""
    return (type(value) is bool) == (type(other) is bool) and value == other


def _only_type(found: list[Problem], path: Path) -> bool:
    return len(found) == 1 and found[0].kind == "type" and found[0].path == path


def _rank(found: list[Problem], path: Path) -> tuple[int, int]:
    """How far off a branch is: a wrong constant directly below (the tag of a union) says that it is another's."""
    wrong_tags = sum(problem.kind == "value" and len(problem.path) <= len(path) + 1 for problem in found)
    return wrong_tags, len(found)


def _extend(found: list[Problem], more: list[Problem]) -> None:
    found.extend(more[: _MOST_PROBLEMS - len(found)])
