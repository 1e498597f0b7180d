"""A schema that the caller gives, instead of one read from the function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from protocol.errors import SpecError

from ._check import json_type
from ._json import list_or_empty, mapping_or_empty
from ._signature import Keywords, read_keywords

__all__ = ("check_function", "read_schema")


def read_schema(parameters: object, *, where: str) -> dict[str, Any]:
    """A copy of an object schema, as JSON has it. Raises `SpecError` for anything else."""
    start = f"tool {where!r}: parameters"
    given = dict(mapping_or_empty(parameters))
    if not given:
        raise SpecError(f"{start} must be a JSON Schema as a dict; it is {str(parameters)[:100]!r}")
    try:
        schema: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(given))
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise SpecError(f"{start} must be JSON: {error}") from error
    if schema.get("type") != "object":
        raise SpecError(f'{start} must be an object schema, with "type": "object"; its type is {schema.get("type")!r}')
    if json_type(schema.setdefault("properties", {})) != "object":
        raise SpecError(f'{start}: "properties" must be an object of schemas')
    required: Any = schema.get("required", [])
    if json_type(required) != "array" or not all(isinstance(name, str) for name in list_or_empty(required)):
        raise SpecError(f'{start}: "required" must be a list of property names; it is {required!r}')
    return schema


def check_function(fn: Callable[..., Any], schema: Mapping[str, Any], *, where: str) -> Keywords:
    """The keywords of the function behind a schema.

    Raises `SpecError` where a call that fits the schema could not be made: `fn` lacks a property, or insists on a
    parameter that the schema does not require.
    """
    keywords = read_keywords(fn)
    if missing := [name for name in schema["properties"] if not keywords.takes(name)]:
        raise SpecError(f"tool {where!r}: its schema has the property {missing[0]!r}, which the function does not take")
    if lacking := sorted(keywords.needed.difference(schema.get("required", ()))):
        raise SpecError(
            f"tool {where!r}: the function needs {lacking[0]!r}, which its schema does not require; "
            "require it, or give the parameter a default"
        )
    return keywords
