"""generateContent: what a part holds beyond what the conversation has words for. No I/O.

Text, thoughts and function calls are read into the canonical parts that every format knows. What else such a part
held (a thought signature, the vendor's id of a call, fields nobody knows yet) is its *rest*: an opaque part directly
behind it, which holds the part as it came, without what the canonical part says. For a text or a thought, `"text"` is
null there; for a call the opaque part names the call, with which it lives and dies. When the part is written again,
both are put together. A part of any other kind is opaque as a whole.
"""

from __future__ import annotations

from typing import Any

from protocol import codec
from protocol.text import clean
from protocol.turns import OpaquePart

from ..wire import mapping, parse, string

__all__ = ("FORMAT", "is_rest_of_text", "item_in", "opaque", "opaque_rest_of_text", "rest_of_call", "vendor_id_in")

FORMAT = "gemini"
"""The name of the format that opaque parts carry."""

_SAID_BY_CALL = frozenset({"name", "args", "partialArgs", "willContinue"})


def opaque(item: dict[str, Any], call: str | None = None) -> OpaquePart:
    """Keep an item of this format."""
    return OpaquePart(FORMAT, codec.encode(item).decode(), call)


def item_in(part: OpaquePart) -> dict[str, Any]:
    """The item that an opaque part holds; an empty one if that is no JSON object."""
    try:
        return mapping(parse(clean(part.data)))
    except ValueError:
        return {}


def opaque_rest_of_text(part: dict[str, Any]) -> OpaquePart | None:
    """What a part holds beyond its text and that it is a thought, or `None`."""
    if all(name in {"text", "thought"} for name in part):
        return None
    return opaque({**part, "text": None})


def is_rest_of_text(item: dict[str, Any]) -> bool:
    """Whether an item belongs to the text or thought directly before it."""
    return "text" in item and item["text"] is None


def rest_of_call(part: dict[str, Any]) -> dict[str, Any]:
    """What a part holds beyond the call's name and arguments; empty if there is nothing."""
    rest = {name: value for name, value in part.items() if name != "functionCall"}
    inner = {name: value for name, value in mapping(part.get("functionCall")).items() if name not in _SAID_BY_CALL}
    return {**rest, "functionCall": inner} if inner else rest


def vendor_id_in(item: dict[str, Any]) -> str:
    """The vendor's id of a call, in a part or in the rest of one; `""` if it gave none."""
    return string(mapping(item.get("functionCall")).get("id"))
