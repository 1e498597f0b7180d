"""The JSON Schema of a function's parameters, as strict providers take it.

msgspec writes it; this module takes out what providers refuse or a model has no use for (titles, discriminators),
closes every object whose properties are known, and puts definitions where they are used. Only definitions that
contain themselves stay in `$defs`.
"""

from __future__ import annotations

import datetime as dt
import math
import pathlib
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import msgspec

from protocol.errors import SpecError

from ._check import json_type
from ._json import mapping_or_empty
from ._signature import Parameter

__all__ = ("closed_objects", "decode_path", "schema_of")

_PREFIX = "#/$defs/"
_DROPPED = frozenset({"title", "discriminator"})


def schema_of(parameters: Sequence[Parameter], *, where: str) -> dict[str, Any]:
    """A self-contained object schema. Raises `SpecError` that names the parameter whose type JSON cannot carry."""
    for parameter in parameters:
        _check_type(parameter, where=where)
    nodes, definitions = msgspec.json.schema_components(
        [parameter.type for parameter in parameters], schema_hook=_schema_hook, ref_template=_PREFIX + "{name}"
    )
    tidy = _Tidy(definitions)
    properties: dict[str, Any] = {}
    for parameter, node in zip(parameters, nodes, strict=True):
        entry = tidy.node(_with_format(parameter.type, node))
        if parameter.description:
            entry["description"] = parameter.description
        if not parameter.required:
            entry |= _default(parameter.default)
        properties[parameter.name] = entry
    schema = {
        "type": "object",
        "properties": properties,
        "required": [parameter.name for parameter in parameters if parameter.required],
        "additionalProperties": False,
    }
    if tidy.kept:
        schema["$defs"] = tidy.kept
    return schema


def closed_objects(schema: Mapping[str, Any]) -> bool:
    """Whether an object below the top has known properties and takes no others."""
    waiting = [*_members(schema), *schema.get("$defs", {}).values()]
    while waiting:
        node = mapping_or_empty(waiting.pop())
        if "properties" in node:
            return True
        waiting.extend(_members(node))
    return False


def decode_path(kind: type[Any], value: Any) -> Any:
    """The `dec_hook` of msgspec: the one type beyond its own that a parameter may have is `pathlib.Path`."""
    if issubclass(kind, pathlib.PurePath) and isinstance(value, str):
        return kind(value)
    raise NotImplementedError


@attrs.define
class _Tidy:
    """Rewrites msgspec's schema nodes."""

    definitions: Mapping[str, Any]
    kept: dict[str, Any] = attrs.field(factory=dict[str, Any])
    """The definitions that contain themselves, rewritten."""

    def node(self, node: Any) -> Any:
        if not isinstance(node, Mapping):
            return node
        raw = typing.cast("Mapping[str, Any]", node)
        if "$ref" in raw:
            return self._reference(raw)
        tidy = {key: self._member(key, member) for key, member in raw.items() if key not in _DROPPED}
        if "properties" in tidy:
            tidy.setdefault("required", [])
            tidy.setdefault("additionalProperties", False)
        if "enum" in tidy and "type" not in tidy:
            kinds = set(map(json_type, tidy["enum"]))
            if len(kinds) == 1:
                tidy["type"] = kinds.pop()
        return tidy

    def _member(self, key: str, member: Any) -> Any:
        match key:
            case "properties":
                return {name: self.node(node) for name, node in member.items()}
            case "anyOf" | "prefixItems":
                return [self.node(node) for node in member]
            case "items" | "additionalProperties":
                return self.node(member)
            case _:
                return member

    def _reference(self, node: Mapping[str, Any]) -> dict[str, Any]:
        name: str = node["$ref"].removeprefix(_PREFIX)
        beside = {key: value for key, value in node.items() if key not in _DROPPED}
        if not self._contains_itself(name):
            del beside["$ref"]
            return {**self.node(self.definitions[name]), **beside}
        if name not in self.kept:
            self.kept[name] = {}  # so that the definition may refer to itself while it is rewritten
            self.kept[name] = self.node(self.definitions[name])
        return beside

    def _contains_itself(self, name: str) -> bool:
        seen: set[str] = set()
        waiting = _references(self.definitions[name])
        while waiting:
            reference = waiting.pop()
            if reference == name:
                return True
            if reference not in seen:
                seen.add(reference)
                waiting |= _references(self.definitions[reference])
        return False


def _references(node: Any) -> set[str]:
    """The definitions that `node` names, itself or below."""
    found: set[str] = set()
    waiting = [node]
    while waiting:
        here = mapping_or_empty(waiting.pop())
        if "$ref" in here:
            found.add(here["$ref"].removeprefix(_PREFIX))
        waiting.extend(_members(here))
    return found


def _members(node: Mapping[str, Any]) -> list[Any]:
    """The schemas directly below `node`."""
    below = list(node.get("properties", {}).values())
    below += [node[key] for key in ("items", "additionalProperties") if key in node]
    return below + [member for key in ("anyOf", "prefixItems") for member in node.get(key, ())]


def _check_type(parameter: Parameter, *, where: str) -> None:
    try:
        msgspec.json.schema_components([parameter.type], schema_hook=_schema_hook)
        msgspec.json.Decoder(parameter.type, dec_hook=decode_path)
    except Exception as error:  # msgspec evaluates annotations of classes, which are code, too
        reason = str(error).split("\n", maxsplit=1)[0]
        if isinstance(error, TypeError) and "custom types requires" in reason:
            reason = "JSON has no form for one of its types"
        raise SpecError(
            f"tool {where!r}: parameter {parameter.name!r} of type {_type_text(parameter.type)} cannot be given "
            f"by a model: {reason}. Use str, int, float, bool, list, dict, Literal, Enum, datetime, date, UUID, "
            "Decimal, Path, TypedDict, an attrs class or a dataclass, or unions of types that JSON tells apart"
        ) from error


def _schema_hook(kind: type[Any]) -> dict[str, Any]:
    if issubclass(kind, pathlib.PurePath):
        return {"type": "string"}
    raise NotImplementedError


def _with_format(kind: Any, node: Any) -> Any:
    """Say `date-time` where msgspec says only `string`: a model cannot guess it."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return _with_format(arguments[0], node)
    if kind is dt.datetime:
        return {"format": "date-time", **node}
    if origin in {typing.Union, types.UnionType} and dt.datetime in arguments:
        # A union holds one type at most that JSON writes as a string.
        branches = [_with_format(dt.datetime, b) if b.get("type") == "string" else b for b in node["anyOf"]]
        return {**node, "anyOf": branches}
    if "items" in node and len(set(arguments) - {...}) == 1:
        return {**node, "items": _with_format(arguments[0], node["items"])}
    return node


def _default(value: Any) -> dict[str, Any]:
    """The schema's `default`, where JSON can say it."""
    if isinstance(value, float) and not math.isfinite(value):
        return {}
    try:
        return {"default": msgspec.to_builtins(value, str_keys=True, enc_hook=_encode_path)}
    except Exception:  # noqa: BLE001  # a default that JSON cannot say is no fault: it is only not shown
        return {}


def _encode_path(value: Any) -> Any:
    if isinstance(value, pathlib.PurePath):
        return str(value)
    raise NotImplementedError


def _type_text(kind: Any) -> str:
    return kind.__qualname__ if isinstance(kind, type) and not typing.get_args(kind) else str(kind)
