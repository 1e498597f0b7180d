"""Binding: decoded JSON arguments in, keyword arguments for the function out.

What comes in is brought to its JSON form first, for a person or a hook that edits arguments may give any Python value;
what goes out to the function is its own, for it may change it, and the arguments are still shown afterwards.

For a function's own parameters msgspec converts them all in one call; the schema is looked at only where that fails,
to mend and to explain, and where nested objects must take no unknown properties (which msgspec would drop in silence).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ._bound import ArgumentsInvalid, Binder, Bound
from ._check import Problem, check, json_type
from ._explain import invalid, quoted, refusal
from ._mend import mend
from ._output import render_error
from ._schema import closed_objects, decode_path
from ._signature import Keywords, Parameter

__all__ = ("foreign_binder", "signature_binder")

_FOREIGN = (Exception, SystemExit)
"""What a class of a parameter or of a value may raise."""

_AT = re.compile(r"(?P<what>.*?)(?: - at `(?:key in )?\$\.?(?P<path>.*)`)?", re.DOTALL)


def signature_binder(parameters: Sequence[Parameter], schema: Mapping[str, Any]) -> Binder:
    """Bind by a function's own parameters; `schema` is theirs."""
    unset = msgspec.field(default=msgspec.UNSET)
    fields = [(p.name, p.type) if p.required else (p.name, p.type, unset) for p in parameters]
    struct = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
    nested = closed_objects(schema)

    def convert(arguments: dict[str, Any]) -> dict[str, Any]:
        made = msgspec.convert(arguments, struct, str_keys=True, dec_hook=decode_path)
        if len(arguments) == len(fields):
            return msgspec.structs.asdict(made)
        # Only what was given: for the rest the function has its own defaults.
        return {name: getattr(made, name) for name in arguments}

    def bind(tool: str, given: dict[str, Any]) -> Bound:
        arguments = _as_json(tool, given)
        own = _own(tool, arguments)
        try:
            keywords = convert(own)
        except _FOREIGN:  # it may run code of the parameters' classes; `_second_try` tells what it is
            return _second_try(tool, arguments, schema=schema, convert=convert)
        if nested:
            _refuse_unknown(tool, schema, arguments)
        return Bound(keywords, False, arguments)

    return bind


def foreign_binder(schema: Mapping[str, Any], keywords: Keywords) -> Binder:
    """Bind by a schema that came with the tool; `keywords` are those of its function."""

    def bind(tool: str, given: dict[str, Any]) -> Bound:
        arguments = _as_json(tool, given)
        mended = _mended(tool, arguments, schema=schema)
        if unknown := [name for name in mended if not keywords.takes(name)]:
            known = tuple(schema["properties"])
            raise refusal(tool, schema, [Problem((name,), "unknown", mended[name], known) for name in unknown])
        return Bound(_own(tool, mended), mended is not arguments, mended)

    return bind


def _own(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """A copy of JSON values that shares nothing with them."""
    try:
        copy: dict[str, Any] = msgspec.to_builtins(arguments)
    except RecursionError as error:  # what a mended string held
        raise _too_deep(tool) from error
    return copy


def _as_json(tool: str, given: dict[str, Any]) -> dict[str, Any]:
    """A copy of what was given, as it comes back when it is written as JSON and read."""
    try:
        arguments: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(given))
    except RecursionError as error:
        raise _too_deep(tool) from error
    except UnicodeEncodeError as error:
        raise invalid(tool, ["a string holds half of a surrogate pair; give whole characters"]) from error
    except _FOREIGN as error:  # of whatever class the value is
        raise invalid(tool, [f"a value cannot be written as JSON: {render_error(error)}"]) from error
    return arguments


def _second_try(
    tool: str,
    arguments: dict[str, Any],
    *,
    schema: Mapping[str, Any],
    convert: Callable[[dict[str, Any]], dict[str, Any]],
) -> Bound:
    """Mend the arguments, or say why they do not fit."""
    mended = _mended(tool, arguments, schema=schema)
    own = _own(tool, mended)
    try:
        keywords = convert(own)
    except msgspec.ValidationError as error:
        raise invalid(tool, [_told(str(error), mended)]) from error
    except _FOREIGN as error:  # raised by a class of a parameter: for the model, its value is wrong
        raise invalid(tool, [render_error(error)]) from error
    return Bound(keywords, mended is not arguments, mended)


def _mended(tool: str, arguments: dict[str, Any], *, schema: Mapping[str, Any]) -> dict[str, Any]:
    try:
        mended, problems = mend(schema, arguments)
    except RecursionError as error:
        raise _too_deep(tool) from error
    if problems:
        raise refusal(tool, schema, problems)
    return mended


def _refuse_unknown(tool: str, schema: Mapping[str, Any], arguments: dict[str, Any]) -> None:
    try:
        unknown = [problem for problem in check(schema, arguments) if problem.kind == "unknown"]
    except RecursionError as error:
        raise _too_deep(tool) from error
    if unknown:
        raise refusal(tool, schema, unknown)


def _too_deep(tool: str) -> ArgumentsInvalid:
    return invalid(tool, ["the value is nested too deep; give it in a flatter form"])


def _told(message: str, arguments: dict[str, Any]) -> str:
    """The message of msgspec with the place first, and what stands there."""
    match = _AT.fullmatch(message)
    path = match["path"] if match else None
    if not match or not path:
        return message
    value: Any = arguments
    for step in re.findall(r"[^.\[\]]+", path):
        inside = json_type(value)
        try:
            value = value[int(step)] if inside == "array" else value[step]
        except (LookupError, ValueError, TypeError):  # `[...]`: some entry, msgspec does not say which
            break
    return f"{path}: {match['what']}, given {quoted(value)}"
