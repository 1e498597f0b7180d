"""Reading a model's turn into its canonical form (R2, R3, T2, T3), once, when it has ended.

Ids become non-empty and new in the conversation; arguments become the text of a JSON object, with what came instead
kept beside it; lone surrogates are replaced; calls beyond the limit are cut off.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, cast

import attrs
import msgspec

from .ids import new_id
from .text import clean
from .turns import OpaquePart, Part, ReasoningPart, TextPart, ToolCall, Turn

__all__ = ("Arguments", "normalise", "parse_arguments")

Arguments = dict[str, dict[str, Any]]
"""The decoded arguments of a turn's calls, by id; of a malformed call, `{}`."""

MAX_DEPTH = 64
"""Arguments nested deeper are malformed: the bound does not depend on whose stack is in use."""

_decode = msgspec.json.Decoder().decode


def normalise(turn: Turn, *, knows_call: Callable[[str], bool], max_calls: int) -> tuple[Turn, Arguments]:
    """Return the turn in canonical form, and the decoded arguments of its calls.

    `knows_call` says whether an id is already used in the conversation; calls beyond `max_calls` are dropped, with
    the opaque items that belong to them. Where several calls have one id, or none, an item belongs to the last of
    them that stands before it.
    """
    parts: list[Part | None] = []
    arguments: Arguments = {}
    dropped = 0
    for part in turn.parts:
        if isinstance(part, ToolCall):
            if len(arguments) == max_calls:
                dropped += 1
                parts.append(None)
                continue
            call, decoded = _read_call(part, arguments, knows_call)
            arguments[call.id] = decoded
            parts.append(call)
        elif isinstance(part, TextPart):
            parts.append(part if part.text.isascii() else TextPart(clean(part.text)))
        elif isinstance(part, ReasoningPart):
            parts.append(part if part.text.isascii() else ReasoningPart(clean(part.text), part.signature))
        else:
            parts.append(_clean_opaque(part))
    if not dropped and turn.parts == tuple(parts):
        return turn, arguments
    return attrs.evolve(turn, parts=_follow(turn.parts, parts), dropped_calls=turn.dropped_calls + dropped), arguments


def parse_arguments(raw: str) -> dict[str, Any] | None:
    """Decode a call's arguments; `None` if they are no JSON object. Empty, blank and `null` are `{}`."""
    if raw[:1] != "{" and (not raw or raw.isspace() or raw.strip() == "null"):
        return {}
    if raw.count("[") + raw.count("{") > MAX_DEPTH and _depth(raw) > MAX_DEPTH:
        return None
    try:
        value = _decode(raw)
    except (msgspec.DecodeError, UnicodeEncodeError):
        value = _decode_surrogates(raw)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _depth(raw: str) -> int:
    """How deep the brackets outside strings are nested, at most."""
    deepest = depth = 0
    in_string = escaped = False
    for char in raw:
        if in_string:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                in_string = False
        elif char == '"':
            in_string = True
        elif char in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "]}":
            depth -= 1
    return deepest


def _decode_surrogates(raw: str) -> object:
    """Lone surrogates, written out or escaped, are all that is mended."""
    try:
        value = json.loads(clean(raw), parse_constant=_no_constant)
        return _decode(clean(json.dumps(value, ensure_ascii=False)))
    except (ValueError, msgspec.DecodeError):
        return None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _read_call(part: ToolCall, taken: Arguments, knows_call: Callable[[str], bool]) -> tuple[ToolCall, dict[str, Any]]:
    fresh = part.id if part.id.isascii() else clean(part.id)
    name = part.name if part.name.isascii() else clean(part.name)
    if not fresh or fresh in taken or knows_call(fresh):
        fresh = new_id("call")
    raw = part.arguments
    if part.malformed is not None:
        return ToolCall(fresh, name, "{}", clean(part.malformed), _vendor_id(part, fresh)), {}
    decoded = parse_arguments(raw)
    if decoded is None:
        return ToolCall(fresh, name, "{}", clean(raw), _vendor_id(part, fresh)), {}
    if decoded and raw.isascii() and "\\ud" not in raw and "\\uD" not in raw:
        if fresh is part.id and name is part.name:
            return part, decoded
        text = raw
    else:
        text = msgspec.json.encode(decoded).decode()
    return ToolCall(fresh, name, text, None, _vendor_id(part, fresh)), decoded


def _vendor_id(part: ToolCall, fresh: str) -> str | None:
    return part.vendor_id or (clean(part.id) if part.id and part.id != fresh else None)


def _clean_opaque(part: OpaquePart) -> OpaquePart:
    call = part.call
    if part.data.isascii() and (call is None or call.isascii()):
        return part
    return OpaquePart(part.format, clean(part.data), None if call is None else clean(call))


def _follow(before: Sequence[Part], after: Sequence[Part | None]) -> tuple[Part, ...]:
    """Tell the opaque items what their calls are called now; those of a call that is cut off go with it."""
    owners: dict[str, str | None] = {}  # of each id, the last call up to here; at first, the first that comes
    for old, new in zip(reversed(before), reversed(after), strict=True):
        if isinstance(old, ToolCall):
            owners[clean(old.id)] = new.id if isinstance(new, ToolCall) else None
    kept: list[Part] = []
    for old, new in zip(before, after, strict=True):
        if isinstance(old, ToolCall):
            owners[clean(old.id)] = new.id if isinstance(new, ToolCall) else None
        if isinstance(new, OpaquePart) and new.call is not None:
            owner = owners.get(new.call, new.call)
            if owner is not None:
                kept.append(OpaquePart(new.format, new.data, owner))
        elif new is not None:
            kept.append(new)
    return tuple(kept)
