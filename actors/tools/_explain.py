"""Why arguments do not fit, in words that a model can act on."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from protocol.text import clean, cut_middle

from ._bound import ArgumentsInvalid
from ._check import Path, Problem, json_type
from ._json import list_or_empty, mapping_or_empty

__all__ = ("invalid", "place", "quoted", "refusal")

_MOST_LINES = 8
_MOST_CHARS = 120
_MOST_NAMES = 40
_MOST_TEXT = 8000


def refusal(tool: str, schema: Mapping[str, Any], problems: Sequence[Problem]) -> ArgumentsInvalid:
    """The error for `problems` with arguments of `tool`."""
    lines = [_line(problem) for problem in problems[:_MOST_LINES]]
    if len(problems) > _MOST_LINES:
        lines.append(f"and {len(problems) - _MOST_LINES} more")
    if any(problem.kind in {"unknown", "missing"} and len(problem.path) == 1 for problem in problems):
        lines.append(_parameters(schema))
    return invalid(tool, lines)


def invalid(tool: str, lines: Sequence[str]) -> ArgumentsInvalid:
    """The error whose lines say what is wrong with arguments of `tool`."""
    text = "\n- ".join([f"Tool {tool!r} was not run: its arguments do not fit.", *lines])
    return ArgumentsInvalid(clean(cut_middle(text, _MOST_TEXT)))


def place(path: Path) -> str:
    """A path as a model would write it: `edits[0].old`."""
    text = "".join([f"[{step}]" if isinstance(step, int) else f".{_short(step)}" for step in path])
    return text.removeprefix(".") or "arguments"


def quoted(value: Any) -> str:
    """A JSON value in at most 120 characters or so, and its type: `string "abc"`."""
    kind = json_type(value)
    if isinstance(value, str):
        # Only what is shown is encoded: the value may be megabytes.
        shown = msgspec.json.encode(clean(value[:_MOST_CHARS])).decode()
        return f"{kind} {shown}" + (f" ({len(value)} characters in full)" if len(value) > _MOST_CHARS else "")
    if kind in {"object", "array"}:
        return f"{kind} of {len(value)}" if value else f"empty {kind}"
    if isinstance(value, int) and value.bit_length() > 256:
        return f"{kind} of {value.bit_length()} bits"
    return kind if value is None else f"{kind} {msgspec.json.encode(value).decode()}"


def _line(problem: Problem) -> str:
    where = place(problem.path)
    match problem.kind:
        case "missing":
            expected = f" (expected {' or '.join(problem.wanted)})" if problem.wanted else ""
            return f"{where}: required property is missing{expected}"
        case "unknown":
            return f"{where}: unknown property, given {quoted(problem.value)}{_similar(problem)}"
        case "type":
            return f"{where}: expected {' or '.join(problem.wanted)}, given {quoted(problem.value)}"
        case "value":
            shown = [quoted(value) for value in problem.wanted[:_MOST_NAMES]]
            more = ", ..." if len(problem.wanted) > _MOST_NAMES else ""
            return f"{where}: expected {' or '.join(shown)}{more}, given {quoted(problem.value)}"


def _similar(problem: Problem) -> str:
    known = [str(name) for name in problem.wanted[:_MOST_NAMES]]
    close = difflib.get_close_matches(str(problem.path[-1])[:_MOST_CHARS], known, n=1) if problem.path else []
    if close:
        return f"; did you mean {close[0]!r}?"
    # At the top, the parameters are listed below all lines.
    return f"; known are {', '.join(known)}" if known and len(problem.path) > 1 else ""


def _parameters(schema: Mapping[str, Any]) -> str:
    properties: Mapping[str, Any] = schema.get("properties", {})
    required = schema.get("required", ())
    if not properties:
        return "the tool takes no parameters; give {}"
    shown = [
        f"{name} ({_type_text(node)}{'required' if name in required else 'optional'})"
        for name, node in list(properties.items())[:_MOST_NAMES]
    ]
    return "the parameters are: " + ", ".join(shown) + (", ..." if len(properties) > _MOST_NAMES else "")


def _type_text(node: Any) -> str:
    schema = mapping_or_empty(node)
    branches = [schema, *map(mapping_or_empty, list_or_empty(schema.get("anyOf")))]
    named = [branch.get("type") for branch in branches]
    kinds = [kind for each in named for kind in ([each] if isinstance(each, str) else list_or_empty(each))]
    return f"{' or '.join(map(str, kinds))}, " if kinds else ""


def _short(name: str) -> str:
    return name if len(name) <= _MOST_CHARS else name[:_MOST_CHARS] + "..."
