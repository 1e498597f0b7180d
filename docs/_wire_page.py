"""The reference page of the wire: every command, reply, event, error and limit, from the types and their texts."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_args

import attrs

from actors.gateway import DoorLimits, Pace
from docs._texts import about, value_texts
from docs._wire_prose import CODES, DECIDING, DOOR, EVENTS, FRAMES, HEAD, NUMBERS, VERSIONS
from protocol.events import EventUnion
from protocol.wire import METHODS, CloseCode, Method, WireLimits, words
from protocol.wire.notifications import NOTIFICATIONS
from protocol.wire.schema import UNIONS
from protocol.wire.words import ERRORS, ERRORS_OF_ALL

Schema = Mapping[str, Any]
WORDS = Path(inspect.getfile(words))
ID = "[A-Za-z0-9_-]{1,64}"


class Part(NamedTuple):
    """A heading and what stands under it; `key` is what others point at it by."""

    key: str
    heading: str
    text: str


def wire_page(schema: Schema) -> str:
    """The text of docs/reference/wire.md."""
    defs = schema["$defs"]
    kinds = {name: result for name, result in defs.items() if name in _results(defs)}
    events = {kind.__struct_config__.tag: kind.__name__ for kind in get_args(EventUnion)}
    params = [value["$ref"].rpartition("/")[2] for value in defs["Params"]["properties"].values() if "$ref" in value]
    shown = {*params, *kinds, *events.values(), *UNIONS, "ErrorData", "Skipped", "LoggedEvent"}
    shared = sorted(_reached(defs, shown) - shown)
    parts = [
        Part("", "# The wire: `onward.v1`", HEAD),
        Part("", "## Getting in", DOOR),
        Part("", "## Frames", FRAMES),
        Part("", "## Commands", _overview(defs)),
        *[Part(f"command {name}", f"### `{name}`", _command(name, method, defs)) for name, method in METHODS.items()],
        Part("", "## Deciding", DECIDING),
        Part("", "## Results", "A field with a default is left out when it has that value.\n"),
        *[Part(name, f"### {name}", _fields(kinds[name])) for name in kinds],
        Part("", "## Notifications", ""),
        *[Part(name, f"### `{name}`", _fields(defs[kind.__name__])) for name, kind in NOTIFICATIONS.items()],
        Part("", "## Numbers", NUMBERS),
        Part("Event", "## Events", EVENTS),
        *[Part(name, f"### `{tag}`", _fields(defs[name], but={"type"})) for tag, name in events.items()],
        Part("Skipped", "### `skipped`", _fields(defs["Skipped"], but={"type"})),
        Part("", "## Shared types", ""),
        *[Part(name, f"### {name}", _union(defs[name])) for name in (*UNIONS, "LoggedEvent") if name != "Event"],
        *[Part(name, f"### {name}", _fields(defs[name])) for name in shared],
        Part("", "## Errors", _errors(defs)),
        Part("", "## Close codes", _codes()),
        Part("", "## Limits", _limits()),
        Part("", "## Versions", VERSIONS),
    ]
    return _linked(parts)


def _results(defs: Schema) -> list[str]:
    """The names of what commands are answered with."""
    return [kind.__name__ for method in METHODS.values() for kind in method.results if kind.__name__ in defs]


def _reached(defs: Schema, names: Iterable[str]) -> set[str]:
    """All types that these are made of."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += re.findall(r'"#/\$defs/(\w+)"', json.dumps(defs[name]))
    return found


def _overview(defs: Schema) -> str:
    rows = [[f"[[command {name}::`{name}`]]", method.role, about(name, defs)] for name, method in METHODS.items()]
    return _table(["command", "role", "does"], rows)


def _command(name: str, method: Method, defs: Schema) -> str:
    taken = defs["Params"]["properties"][name]
    if "$ref" in taken:
        text = _fields(defs[taken["$ref"].rpartition("/")[2]], inputs=True)
    else:
        text = f"{taken['description']}\n"
    result = " or ".join(f"[[{kind.__name__}]]" for kind in method.results)
    lines = [f"- Role: `{method.role}`", f"- Result: {result}"]
    if method.errors:
        lines.append(f"- Errors: {', '.join(f'`{word}`' for word in method.errors)}")
    if method.idempotent:
        lines.append("- Done once for each `idem`")
    return "\n".join([text, *lines, ""])


def _fields(schema: Schema, *, inputs: bool = False, but: Iterable[str] = ()) -> str:
    """A type's text and its fields."""
    required = schema.get("required", ())
    rows = [
        [f"`{name}`", _type(value), _default(value, name in required, inputs=inputs), value.get("description", "")]
        for name, value in schema.get("properties", {}).items()
        if name not in but
    ]
    heads = ["field", "type", "default", ""]
    if not any(row[2] for row in rows):
        heads, rows = [heads[0], heads[1], heads[3]], [[row[0], row[1], row[3]] for row in rows]
    return "\n".join([schema.get("description", ""), *(["", _table(heads, rows)] if rows else [""])])


def _union(schema: Schema) -> str:
    return f"{schema['description']} One of {', '.join(_type(member) for member in schema['oneOf'])}.\n"


def _default(schema: Schema, required: bool, *, inputs: bool) -> str:  # noqa: FBT001  one of a row's values
    if required:
        return "required" if inputs else ""
    return f"`{json.dumps(schema['default'])}`" if "default" in schema else ""


def _type(schema: Schema) -> str:
    match schema:
        case {"$ref": ref}:
            return f"[[{str(ref).rpartition('/')[2]}]]"
        case {"const": word}:
            return f"`{json.dumps(word)}`"
        case {"enum": known}:
            return " or ".join(f"`{json.dumps(word)}`" for word in known)
        case {"anyOf": members} | {"oneOf": members}:
            return " or ".join(_type(member) for member in members)
        case {"type": "array", "items": items}:
            return f"array of {_type(items)}"
        case {"type": "object", "additionalProperties": dict(values)}:
            return f"object: by name, {_type(values)}"
        case _:
            return _plain_type(schema)


def _plain_type(schema: Schema) -> str:
    kind = schema.get("type", "any JSON")
    if ID in schema.get("pattern", ""):
        return "id or `*`" if "*|" in schema["pattern"] else "id"
    low, high = schema.get("minimum"), schema.get("maximum", 2**53)
    bounds = [
        f"at least {schema['minLength']} character" if "minLength" in schema else "",
        f"at most {schema['maxLength']} characters" if "maxLength" in schema else "",
        f"above {schema['exclusiveMinimum']}" if "exclusiveMinimum" in schema else "",
        f"{low} to {high if high < 2**53 else '2^53'}" if low is not None and "maximum" in schema else "",
        f"at least {low}" if low is not None and "maximum" not in schema else "",
    ]
    said = ", ".join(bound for bound in bounds if bound)
    return f"{kind}, {said}" if said else kind


def _errors(defs: Schema) -> str:
    texts = value_texts(WORDS)
    codes = [
        [f"`{value}`", texts[name]]
        for name, value in vars(words).items()
        if isinstance(value, int) and name.isupper() and name in texts
    ]
    return "\n".join([
        CODES.format(of_all=", ".join(f"`{word}`" for word in ERRORS_OF_ALL)),
        _table(["code", "says"], codes),
        "The words in `data.code`:\n",
        _table(["word", "says"], [[f"`{word}`", text] for word, text in ERRORS.items()]),
        _fields(defs["ErrorData"]),
    ])


def _codes() -> str:
    texts = value_texts(WORDS, "CloseCode")
    rows = [[f"`{code}`", texts[name]] for name, code in vars(CloseCode).items() if isinstance(code, int)]
    return f"{CloseCode.__doc__}\n\n{_table(['code', 'why'], rows)}"


def _limits() -> str:
    tables: list[str] = []
    for title, limits in (
        ("What one connection may send and leave unread:", WireLimits()),
        ("At the door:", DoorLimits()),
        ("Times:", Pace()),
    ):
        texts = value_texts(Path(inspect.getfile(type(limits))), type(limits).__name__)
        rows = [
            [f"`{field.name}`", f"{getattr(limits, field.name)}", texts.get(field.name, "")]
            for field in attrs.fields(type(limits))
        ]
        tables.append(f"{title}\n\n{_table(['limit', 'default', ''], rows)}")
    return "\n".join(tables)


def _table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _linked(parts: list[Part]) -> str:
    """The page, with `[[key]]` and `[[key::text]]` as links to their headings."""
    slugs: dict[str, str] = {}
    taken: dict[str, int] = {}
    for part in parts:
        slug = re.sub(r"[^\w -]", "", part.heading.lstrip("# ").lower()).replace(" ", "-")
        count = taken.get(slug, 0)
        taken[slug] = count + 1
        slugs[part.key] = f"{slug}-{count}" if count else slug
    text = "\n".join(f"{part.heading}\n\n{part.text}" if part.text else f"{part.heading}\n" for part in parts)

    def link(found: re.Match[str]) -> str:
        key, _, shown = found[1].partition("::")
        return f"[{shown or key}](#{slugs[key]})"

    return re.sub(r"\[\[([^\]]+)\]\]", link, text)
