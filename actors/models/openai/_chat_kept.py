"""Chat Completions: what servers add to a turn and demand back with it, such as signatures of reasoning. No I/O.

It is kept as an `OpaquePart` whose data is a JSON object: the fields to lay over the message, or over one call of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from protocol import codec
from protocol.turns import OpaquePart, Part

from ..wire import items, mapping, parse, string

__all__ = ("REASONING_FIELD", "KeptFields", "fields_of_call", "kept_in", "kept_part", "merge")

FORMAT = "openai-chat"
"""The format's name in `OpaquePart`."""

REASONING_FIELD = "reasoning_field"
"""In the data of a message: no field of it, but the name of the one that its reasoning came in."""

_OF_CALL = {"id", "index", "type", "function"}
_OF_FUNCTION = {"id", "name", "arguments"}
_TEXTS = {"reasoning.text": "text", "reasoning.summary": "summary"}


class KeptFields:
    """The fields of one reply's message that go back with it."""

    def __init__(self) -> None:
        self._details: list[dict[str, Any]] = []
        self._extra: dict[str, Any] = {}

    def feed(self, message: dict[str, Any]) -> str:
        """Take what a delta, or a whole message, holds of them; the reasoning text in it."""
        merge(self._extra, {"extra_content": message.get("extra_content")})
        texts: list[str] = []
        for entry in items(message.get("reasoning_details")):
            detail = mapping(entry)
            if detail:
                texts.append(string(detail.get(_TEXTS.get(string(detail.get("type")), ""))))
                self._take(detail)
        return "".join(texts)

    @property
    def fields(self) -> dict[str, Any]:
        """The fields, put together."""
        return {**({"reasoning_details": self._details} if self._details else {}), **self._extra}

    def _take(self, detail: dict[str, Any]) -> None:
        """A detail is streamed in pieces: those of one text, one behind the other, are one."""
        text = _TEXTS.get(string(detail.get("type")))
        last = self._details[-1] if self._details else None
        if text is None or last is None or _place(last) != _place(detail):
            self._details.append(dict(detail))
            return
        whole = string(last.get(text)) + string(detail.get(text))
        merge(last, detail)
        last[text] = whole


def _place(detail: dict[str, Any]) -> tuple[Any, Any]:
    return detail.get("type"), detail.get("index")


def fields_of_call(entry: dict[str, Any], function: dict[str, Any]) -> dict[str, Any]:
    """What an entry of `tool_calls` holds beyond the format, as it is to be laid over the call that is sent back."""
    nested = entry.get("function") is function
    known = _OF_CALL if nested else _OF_CALL | _OF_FUNCTION
    kept = {key: value for key, value in entry.items() if key not in known and value is not None}
    if nested:
        inner = {key: value for key, value in function.items() if key not in _OF_FUNCTION and value is not None}
        if inner:
            kept["function"] = inner
    return kept


def merge(into: dict[str, Any], more: dict[str, Any], depth: int = 3) -> None:
    """Lay objects over each other: what is not null wins, objects inside are merged likewise, down to a depth."""
    for key, value in more.items():
        inner = into.get(key)
        if depth and isinstance(value, dict) and isinstance(inner, dict):
            merge(cast("dict[str, Any]", inner), mapping(value), depth - 1)
        elif value is not None:
            into[key] = dict(mapping(value)) if isinstance(value, dict) else value


def kept_part(fields: dict[str, Any], call: str | None = None) -> OpaquePart:
    """The part that holds fields of a message, or of one of its calls."""
    return OpaquePart(FORMAT, codec.encode(fields).decode(), call)


def kept_in(parts: Iterable[Part]) -> dict[str | None, dict[str, Any]]:
    """The fields that the parts of a message hold: its own under `None`, those of its calls under their ids."""
    found: dict[str | None, dict[str, Any]] = {}
    for part in parts:
        if isinstance(part, OpaquePart) and part.format == FORMAT:
            try:
                merge(found.setdefault(part.call, {}), mapping(parse(part.data)))
            except ValueError:
                continue  # a history that somebody else wrote: what cannot be read cannot be sent
    return found
