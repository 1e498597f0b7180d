"""TypeScript types of a JSON Schema's definitions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]

HEAD = """\
// The types of onward.v1. Written by docs/wire.py: change the types of protocol/, and run it.
// Unknown events are to be ignored: a server may be newer than these types.

"""
TAIL = """\
/** The name of a command. */
export type Method = keyof Params;

/** One command, as a client sends it. */
export type CommandOf<M extends Method> = { jsonrpc: "2.0"; id: RequestId; method: M } & (Partial<Params[M]> extends Params[M]
  ? { params?: Params[M] }
  : { params: Params[M] });

/** What a client sends: one command in each frame. */
export type ClientFrame = { [M in Method]: CommandOf<M> }[Method];

/** The answer to a command that was done. */
export interface ResultOf<M extends Method> {
  jsonrpc: "2.0";
  id: RequestId;
  result: Results[M];
}

/** The event of one type. */
export type EventOf<T extends Event["type"]> = Extract<Event, { type: T }>;

/** What an application error's `data.code` may be. */
export type ErrorWord = ErrorData["code"];
"""
BY_HAND = {"ClientFrame"}
"""What the tail says better than a schema can."""
PRIMITIVES = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def typescript(schema: Schema) -> str:
    """All definitions of a schema as exported types, and the ones that join commands with their answers."""
    found = [_declaration(name, value) for name, value in schema["$defs"].items() if name not in BY_HAND]
    return HEAD + "\n".join([*found, TAIL])


def _declaration(name: str, schema: Schema) -> str:
    head = _comment(schema.get("description", ""), "")
    if schema.get("properties"):
        lines = "".join(_members(schema, "  "))
        return f"{head}export interface {name} {{\n{lines}}}\n"
    return f"{head}export type {name} = {_type(schema)};\n"


def _members(schema: Schema, indent: str) -> Iterator[str]:
    required = schema.get("required", ())
    for name, value in schema["properties"].items():
        key = name if re.fullmatch(r"[A-Za-z_]\w*", name) else json.dumps(name)
        absent = "" if name in required else "?"
        yield f"{_comment(value.get('description', ''), indent)}{indent}{key}{absent}: {_type(value)};\n"


def _type(schema: Schema) -> str:
    match schema:
        case {"$ref": ref}:
            return str(ref).rpartition("/")[2]
        case {"const": word}:
            return json.dumps(word)
        case {"enum": words}:
            return " | ".join(json.dumps(word) for word in words)
        case {"oneOf": members} | {"anyOf": members}:
            return " | ".join(dict.fromkeys(_type(member) for member in members))
        case {"type": "array", "items": items}:
            return f"{inner}[]" if re.fullmatch(r"[\w\[\]]+", inner := _type(items)) else f"({inner})[]"
        case {"type": "object"}:
            return _object(schema)
        case _:
            return PRIMITIVES[schema["type"]] if "type" in schema else "unknown"


def _object(schema: Schema) -> str:
    match schema:
        case {"properties": properties} if properties:
            return "{ " + " ".join(member.strip() for member in _members(schema, "")) + " }"
        case {"properties": _}:
            return "Record<string, never>"
        case {"additionalProperties": dict(values)}:
            return f"Record<string, {_type(values)}>"
        case _:
            return "Record<string, unknown>"


def _comment(text: str, indent: str) -> str:
    if not text:
        return ""
    lines = text.replace("*/", "*\\/").splitlines()
    if len(lines) == 1:
        return f"{indent}/** {lines[0]} */\n"
    body = "".join(f"{indent} * {line}".rstrip() + "\n" for line in lines)
    return f"{indent}/**\n{body}{indent} */\n"
