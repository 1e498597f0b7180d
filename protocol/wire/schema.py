"""JSON Schema (2020-12) of exactly this version of the wire, made from the types that read and write it.

`$defs` holds every object by its name. `Params` and `Results` are no frames: they say, by method, what goes in and comes
back. What the types cannot say (which reply answers which command) stands there and in the prose of the documents.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Mapping
from typing import Any, TypeAlias, cast, get_args

import msgspec

from ..events import EventUnion
from ..limits import Counters
from ..turns import Message
from ..usage import Usage
from . import words
from ._field_texts import FIELD_TEXTS
from .errors import ErrorData
from .methods import METHODS
from .notifications import NOTIFICATIONS, Skipped
from .replies import OpenRequest

__all__ = ("UNIONS", "frame_of", "plain", "wire_schema", "wire_schema_bytes")

Schema: TypeAlias = dict[str, Any]

UNIONS: dict[str, tuple[Any, str]] = {
    "Event": (EventUnion, "Every event of this version, by its `type`. Clients ignore types that they do not know."),
    "Message": (Message, "One message of the conversation, by its `role`."),
    "OpenRequest": (OpenRequest, "What waits for somebody, by its `kind`."),
}
"""The unions that have a name: their types, and what they are."""

_FRAMING = (
    words.PARSE_ERROR,
    words.INVALID_REQUEST,
    words.METHOD_NOT_FOUND,
    words.INVALID_PARAMS,
    words.INTERNAL_ERROR,
)
_WHOLE = (Counters, Usage, words.WireLimits, *get_args(OpenRequest))
"""Types that are written with all their fields, whatever they hold."""
_RULES = re.compile(r"\s*\((?:\w+\.md[^)]*|[A-Z]\d+(?:, [A-Z]\d+)*)\)")
_JSONRPC: Schema = {"const": "2.0"}


def wire_schema(texts: Mapping[str, str] = FIELD_TEXTS) -> Schema:
    """The schema of a frame, from either side. `texts` describes fields, by `Class.field`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": words.SUBPROTOCOL,
        "description": "A frame from a client (ClientFrame) or from a server (ServerFrame).",
        "anyOf": [_ref("ClientFrame"), _ref("ServerFrame")],
        "$defs": dict(sorted({**_types(texts), **_frames()}.items())),
    }


@functools.cache
def wire_schema_bytes() -> bytes:
    """The same as JSON for people: every call gives the same bytes."""
    return msgspec.json.format(msgspec.json.encode(wire_schema()), indent=2) + b"\n"


def frame_of(method: str) -> Schema:
    """The schema of the one command with this name, as a client sends it."""
    params, required = _params_of(method)
    properties = {"jsonrpc": _JSONRPC, "id": _ref("RequestId"), "method": {"const": method}, "params": params}
    needed = ["jsonrpc", "id", "method", *(["params"] if required else [])]
    return {"type": "object", "properties": properties, "required": needed}


def _params_of(method: str) -> tuple[Schema, bool]:
    """What a command takes, and whether any of it must be there."""
    (schema,), found = msgspec.json.schema_components([METHODS[method].params], ref_template="#/$defs/{name}")
    name = schema.get("$ref", "").rpartition("/")[2]
    return _tidy(schema, {}), bool(found.get(name, {}).get("required"))


def plain(text: str) -> str:
    """A docstring as clients read it: without the rules of the design that it names, and in words of JSON."""
    return _RULES.sub("", text).replace("`None`", "`null`")


def _types(texts: Mapping[str, str]) -> dict[str, Schema]:
    """Every type that msgspec knows how to describe, and the unions of them."""
    params = [method.params for method in METHODS.values()]
    results = [kind for method in METHODS.values() for kind in method.results]
    members = [member for union, _ in UNIONS.values() for member in get_args(union)]
    _, found = msgspec.json.schema_components(
        [*params, *results, *members, *NOTIFICATIONS.values(), Skipped, ErrorData], ref_template="#/$defs/{name}"
    )
    unions: dict[str, Schema] = {
        name: {"description": text, "oneOf": [_ref(kind.__name__) for kind in get_args(union)]}
        for name, (union, text) in UNIONS.items()
    }
    named = {frozenset(_refs(union["oneOf"])): name for name, union in unions.items()}
    types: dict[str, Schema] = {name: _tidy(schema, named) for name, schema in found.items()}
    for kind in _WHOLE:
        types[kind.__name__]["required"] = list(types[kind.__name__]["properties"])
    for name, schema in types.items():
        if "description" in schema:
            schema["description"] = plain(schema["description"])
        for field, value in schema.get("properties", {}).items():
            if text := texts.get(f"{name}.{field}"):
                value["description"] = text
    return types | unions


def _frames() -> dict[str, Schema]:
    """What goes over the connection, made of the types."""
    params = {name: _params_of(name)[0] for name in METHODS}
    results = {name: _any_of([kind.__name__ for kind in method.results]) for name, method in METHODS.items()}
    reply_id = {"anyOf": [_ref("RequestId"), {"type": "null"}]}
    framing = _object(code={"enum": list(_FRAMING)}, message={"type": "string"})
    refusal = _object(code={"const": words.APPLICATION_ERROR}, message={"type": "string"}, data=_ref("ErrorData"))
    said = {
        f"{kind.__name__}Message": _object(jsonrpc=_JSONRPC, method={"const": name}, params=_ref(kind.__name__))
        for name, kind in NOTIFICATIONS.items()
    }
    messages = ["ResultMessage", "ErrorMessage", *said]
    return {
        "RequestId": {
            "description": "A command's id: its reply carries the same.",
            "anyOf": [
                {"type": "integer", "minimum": -(2**53), "maximum": 2**53},
                {"type": "string", "minLength": 1, "maxLength": 64},
            ],
        },
        "LoggedEvent": {"description": "What an agent's log is made of.", "oneOf": [_ref("Event"), _ref("Skipped")]},
        "Params": {"description": "What each command takes.", **_object(**params)},
        "Results": {"description": "What each command is answered with.", **_object(**results)},
        "ClientFrame": {
            "description": "What a client sends: one command in each frame.",
            "oneOf": [frame_of(name) for name in METHODS],
        },
        "ResultMessage": {
            "description": "The answer to a command that was done: the result is the command's (Results).",
            **_object(jsonrpc=_JSONRPC, id=_ref("RequestId"), result={"type": "object"}),
        },
        "ErrorMessage": {
            "description": "The answer to what was not done; the id is null where none could be read.",
            **_object(jsonrpc=_JSONRPC, id=reply_id, error={"oneOf": [_ref("FramingError"), _ref("Refusal")]}),
        },
        "FramingError": {"description": "What came is no command, or it failed on the server's side.", **framing},
        "Refusal": {"description": "The command was refused.", **refusal},
        **said,
        "ServerMessage": {"description": "One message of a server.", "oneOf": [_ref(name) for name in messages]},
        "ServerFrame": {
            "description": "What a server sends: one message, or several.",
            "oneOf": [_ref("ServerMessage"), {"type": "array", "items": _ref("ServerMessage"), "minItems": 1}],
        },
    }


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _refs(schemas: list[Schema]) -> list[str]:
    return [schema.get("$ref", "") for schema in schemas]


def _any_of(names: list[str]) -> Schema:
    refs = [_ref(name) for name in names]
    return refs[0] if len(refs) == 1 else {"anyOf": refs}


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _tidy(schema: Schema, unions: Mapping[frozenset[str], str]) -> Schema:
    """The same said with fewer words: named unions by their name, one word as `const`, nothing that says nothing."""
    found = frozenset(_refs(cast("list[Schema]", schema.get("anyOf", []))))
    if found in unions:
        return _ref(unions[found])
    tidy: Schema = {}
    for key, value in schema.items():
        match key, value:
            case "properties", dict():
                tidy[key] = {name: _tidy(item, unions) for name, item in cast("Schema", value).items()}
            case "items", dict():
                tidy[key] = _tidy(cast("Schema", value), unions)
            case "anyOf", list():
                members = [_tidy(item, unions) for item in cast("list[Schema]", value)]
                words_of = [cast("list[str]", item.get("enum", [])) for item in members]
                tidy |= {"enum": sorted({*itertools.chain(*words_of)})} if all(words_of) else {"anyOf": members}
            case "enum", [word]:
                tidy["const"] = word
            case ("title" | "discriminator", _) | ("required", []):
                pass
            case _:
                tidy[key] = value
    return tidy
