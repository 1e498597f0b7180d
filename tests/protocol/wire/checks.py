"""What the schema says of a value."""

from __future__ import annotations

import functools
from typing import Any

import jsonschema

from protocol.wire.schema import wire_schema


@functools.cache
def validator(name: str, *below: str) -> Any:
    """Checks values against one of the schema's definitions, or something inside it."""
    pointer = "/".join(["#/$defs", name, *below])
    schema = {**wire_schema(), "anyOf": [{"$ref": pointer}]}
    return jsonschema.Draft202012Validator(schema)


def fits(value: Any, name: str, *below: str) -> bool:
    """Whether a value is what the definition says."""
    return bool(validator(name, *below).is_valid(value))


def faults(value: Any, name: str, *below: str) -> list[str]:
    """Why it is not; empty if it is."""
    return [f"{error.json_path}: {error.message}"[:300] for error in validator(name, *below).iter_errors(value)]
