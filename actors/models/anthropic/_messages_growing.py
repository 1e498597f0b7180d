"""Anthropic Messages: one content block while it comes in. No I/O."""

from __future__ import annotations

from typing import Any

import attrs

from protocol.model import CallDelta, ModelEvent, ReasoningDelta, TextDelta
from protocol.text import clean
from protocol.turns import Part

from ..wire import items, mapping, parse, string
from ._messages_blocks import json_text, parts_of

__all__ = ("BLOCK_OF_DELTA", "GrowingBlock")

BLOCK_OF_DELTA = {
    "text_delta": "text",
    "citations_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
    "input_json_delta": "tool_use",
}
"""The type of block that a delta belongs to, or to one of a type that is not known here."""

_OWN = {"text", "thinking", "tool_use"}


@attrs.define(eq=False)
class GrowingBlock:
    """A block, from its start on."""

    fields: dict[str, Any]
    """What has come, but for pieces."""
    call: int | None = None
    """The number of the call that it is."""
    _pieces: dict[str, list[str]] = attrs.Factory(dict[str, list[str]])
    _input: list[str] = attrs.Factory(list[str])
    _half: str = ""
    stopped: bool = False

    @property
    def kind(self) -> str:
        """Its type."""
        return string(self.fields.get("type"))

    @property
    def readable(self) -> bool:
        """Whether even the beginning of it is of use."""
        return self.kind in _OWN

    def takes(self, delta: str) -> bool:
        """Whether a delta of this type can belong to it."""
        return self.kind not in _OWN or BLOCK_OF_DELTA.get(delta, self.kind) == self.kind

    def begin(self) -> list[ModelEvent]:
        """Report what the start holds."""
        if self.call is not None:
            return [CallDelta(self.call, "", clean(string(self.fields.get("name"))))]
        return self._shown(string(self.fields.get(self.kind))) if self.kind in _OWN else []

    def add(self, delta: dict[str, Any]) -> list[ModelEvent]:
        """Take a delta, and report what it adds."""
        match delta.get("type"):
            case "text_delta":
                return self._grow("text", delta)
            case "thinking_delta":
                return self._grow("thinking", delta)
            case "signature_delta":
                self.fields["signature"] = string(delta.get("signature"))
            case "citations_delta":
                self.fields["citations"] = [*items(self.fields.get("citations")), mapping(delta.get("citation"))]
            case "input_json_delta":
                piece = string(delta.get("partial_json"))
                self._input.append(piece)
                return self._shown(piece)
            case _:
                for name, value in delta.items():
                    if name != "type":
                        self._extend(name, value)
        return []

    def stop(self) -> list[ModelEvent]:
        """Nothing follows: report what was held back."""
        given = self.call is not None and not self.stopped and not any(self._input)
        self.stopped = True
        return self._shown(self._arguments() if given else "")

    def parts(self) -> list[Part]:
        """What it is in a turn; nothing if it cannot be sent back."""
        block = dict(self.fields)
        for name, pieces in self._pieces.items():
            block[name] = string(block.get(name)) + "".join(pieces)
        if self.call is not None:
            return parts_of(block, self._arguments())
        if self.kind not in _OWN and any(self._input):
            block["input"] = _object("".join(self._input))
            if block["input"] is None:
                return []
        return parts_of(block)

    def _grow(self, name: str, delta: dict[str, Any]) -> list[ModelEvent]:
        text = string(delta.get(name))
        self._pieces.setdefault(name, []).append(text)
        return self._shown(text) if name == self.kind else []

    def _extend(self, name: str, value: Any) -> None:
        """A field that is not known here: text grows, anything else is replaced."""
        if isinstance(value, str) and isinstance(self.fields.get(name, ""), str):
            self._pieces.setdefault(name, []).append(value)
        else:
            self._pieces.pop(name, None)
            self.fields[name] = value

    def _arguments(self) -> str:
        if any(self._input):
            return "".join(self._input)
        given = self.fields.get("input")
        if not given or isinstance(given, str):
            return given or ""
        return json_text(given) or "(nested too deeply)"

    def _shown(self, text: str) -> list[ModelEvent]:
        # Half a character (a lone surrogate) waits for its other half, or for the end.
        text, self._half = self._half + text, ""
        if text and "\ud800" <= text[-1] <= "\udbff" and not self.stopped:
            text, self._half = text[:-1], text[-1]
        if not text:
            return []
        text = clean(text)
        if self.call is not None:
            return [CallDelta(self.call, text)]
        return [ReasoningDelta(text) if self.kind == "thinking" else TextDelta(text)] if self.kind in _OWN else []


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = parse(text)
    except ValueError:
        return None
    return mapping(value) if isinstance(value, dict) else None
