"""generateContent: a reply, streamed or whole, read into a turn. No I/O.

A stream is whole objects of one shape, each with what is new; so is a whole reply, or a list of such objects. A finish
reason or a blocked prompt is a positive end; what ends without one is lost, and never passes for an answer. What
the conversation has no words for is kept beside its part, as `_generate_parts` says.
"""

from __future__ import annotations

from typing import Any

import attrs

from protocol.errors import ModelReplyError
from protocol.model import ModelEvent, ReasoningDelta, TextDelta
from protocol.text import clean
from protocol.turns import Finish, OpaquePart, Part, ReasoningPart, TextPart, ToolCall, Turn, Unfinished
from protocol.usage import Usage

from ..wire import Endpoint, ServerSentEvent, fault_in, items, mapping, number, parse, refusal, reply_fault, string
from ._generate_calls import BrokenCallError, CallReader, FunctionCall
from ._generate_parts import opaque, opaque_rest_of_text

__all__ = ("GenerateReply", "finish_of")

_FINISHES: dict[str, Finish] = {
    "STOP": "stop",
    "FUNCTION_CALL": "tool_calls",  # not Google's word, but that of servers in its place
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "MODEL_ARMOR": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter",
    "MALFORMED_FUNCTION_CALL": "malformed",
    "MALFORMED_RESPONSE": "malformed",
    "UNEXPECTED_TOOL_CALL": "malformed",
}
_NO_REASON = "FINISH_REASON_UNSPECIFIED"
_NO_BLOCK = "BLOCK_REASON_UNSPECIFIED"
_COUNTS = {
    "promptTokenCount": "prompt",
    "cachedContentTokenCount": "cached",
    "candidatesTokenCount": "candidates",
    "thoughtsTokenCount": "thoughts",
    "toolUsePromptTokenCount": "tool_use",
    "totalTokenCount": "total",
}


def finish_of(reason: str) -> Finish:
    """A server's finish reason in common words; `other` if the word is not known."""
    return _FINISHES.get(reason.upper(), "other")


@attrs.define(eq=False)
class _Piece:
    """Text or a thought that may still grow."""

    thought: bool
    texts: list[str] = attrs.Factory(list[str])
    rest: OpaquePart | None = None
    """What else its part held: nothing can be added to it then."""


class GenerateReply:
    """Reads one reply. Feed it events or a whole body, then take the turn from `finish()`, or from `lost()`."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._order: list[_Piece | FunctionCall | OpaquePart] = []
        self._calls = CallReader()
        self._raw_finish: str | None = None
        self._finish: Finish | None = None
        self._token = ""
        self._counts: dict[str, int] = {}
        self._response: str | None = None
        self.started = False
        """Whether anything of the reply has come."""
        self.ended = False
        """Whether it has come to a positive end; usage may still follow."""
        self.done = False
        """Whether nothing follows."""

    def feed(self, event: ServerSentEvent) -> list[ModelEvent]:
        """Take one event of the stream and return what it adds. Raises `ModelError`."""
        data = event.data.strip()
        if not data:
            return []
        self.started = True
        if data == "[DONE]":
            self.done = True
            return []
        return self._take_all(data, data, fault=event.event == "error")

    def feed_body(self, body: bytes) -> list[ModelEvent]:
        """Take a whole reply that was not streamed, and return what it holds. Raises `ModelError`."""
        self.started = self.done = True
        text = body.decode("utf-8", "replace")
        events = self._take_all(body, text)
        if not (self.ended or self._order or self._token or self._counts):
            raise reply_fault(self._endpoint, "holds no candidates", text)
        return events

    def finish(self) -> Turn:
        """The whole turn. Raises `ModelReplyError` if the reply did not come to its end."""
        if not self.ended and not self._token:
            raise ModelReplyError(
                f"{self._endpoint.address}: the reply ended without a finish reason, in the middle", retryable=True
            )
        self._finish = self._finish or "length"  # it ends with no more than a token to go on from
        return self._turn()

    def lost(self) -> Turn:
        """What had come when the reply broke off."""
        return attrs.evolve(self._turn(), end="lost")

    def _take_all(self, data: str | bytes, text: str, *, fault: bool = False) -> list[ModelEvent]:
        try:
            parsed = parse(data)
        except ValueError:
            parsed = None
        chunks = items(parsed) if isinstance(parsed, list) else [parsed]
        events: list[ModelEvent] = []
        for chunk in chunks:
            found = fault_in(chunk) or (fault_in({"error": chunk}) if fault else None)
            if found is not None:
                raise refusal(self._endpoint, found)
            if not isinstance(chunk, dict):
                raise reply_fault(self._endpoint, "is no JSON object", text)
            try:
                self._take(mapping(chunk), events)
            except BrokenCallError as error:
                raise reply_fault(self._endpoint, "holds a broken function call", str(error)) from error
        return events

    def _take(self, chunk: dict[str, Any], events: list[ModelEvent]) -> None:
        if self._response is None:
            self._response = clean(string(chunk.get("responseId"))) or None
        for name, value in mapping(chunk.get("usageMetadata")).items():
            count = number(value)
            if name in _COUNTS and count is not None:
                self._counts[_COUNTS[name]] = count  # each chunk counts from the beginning
        candidates = items(chunk.get("candidates"))
        for entry in candidates:
            candidate = mapping(entry)
            if candidate.get("index"):
                continue  # one reply was asked for
            for part in items(mapping(candidate.get("content")).get("parts")):
                self._take_part(mapping(part), events)
            self._token = string(candidate.get("continuationToken")) or self._token
            self._end(string(candidate.get("finishReason")), _NO_REASON)
        if not candidates and not self.ended:
            blocked = string(mapping(chunk.get("promptFeedback")).get("blockReason"))
            if self._end(blocked, _NO_BLOCK):
                self._finish = "content_filter"

    def _end(self, reason: str, none: str) -> bool:
        reason = clean(reason.strip())
        if not reason or reason == none:
            return False
        self._raw_finish = reason
        self._finish = finish_of(reason)
        self.ended = True
        return True

    def _take_part(self, part: dict[str, Any], events: list[ModelEvent]) -> None:
        text = part.get("text")
        if isinstance(part.get("functionCall"), dict):
            known = len(self._calls.calls)
            events += self._calls.feed(part)
            self._order += self._calls.calls[known:]
        elif isinstance(text, str) and text:
            self._take_text(clean(text), part, events)
        elif any(name not in {"text", "thought"} for name in part):
            self._order.append(opaque(part))

    def _take_text(self, text: str, part: dict[str, Any], events: list[ModelEvent]) -> None:
        thought = bool(part.get("thought"))
        rest = opaque_rest_of_text(part)
        last = self._order[-1] if self._order else None
        if rest is not None or not isinstance(last, _Piece) or last.rest is not None or last.thought is not thought:
            last = _Piece(thought, rest=rest)
            self._order.append(last)
        last.texts.append(text)
        events.append(ReasoningDelta(text) if thought else TextDelta(text))

    def _turn(self) -> Turn:
        parts: list[Part] = []
        for item in self._order:
            match item:
                case _Piece(thought=thought, texts=texts, rest=rest):
                    text = "".join(texts)
                    parts.append(ReasoningPart(text) if thought else TextPart(text))
                    if rest is not None:
                        parts.append(rest)
                case FunctionCall():
                    parts.append(ToolCall(item.id, item.name, item.arguments))
                    if item.kept is not None:
                        parts.append(item.kept)
                case OpaquePart():
                    parts.append(item)
        finish = "tool_calls" if self._finish == "stop" and self._calls.calls else self._finish
        goes_on = self._token if self._raw_finish in {None, "CONTINUATION"} else ""
        unfinished = Unfinished(goes_on) if goes_on else None
        return Turn(
            tuple(parts), finish, self._raw_finish, self._usage(), response=self._response, unfinished=unfinished
        )

    def _usage(self) -> Usage:
        counts = self._counts
        prompt, thoughts, output = counts.get("prompt"), counts.get("thoughts"), counts.get("candidates")
        tool_use, total, cached = counts.get("tool_use", 0), counts.get("total"), counts.get("cached")
        if output is not None:
            output += thoughts or 0
        elif prompt is not None and total is not None:
            output = max(0, total - prompt - tool_use)  # a count of 0 is left out
        else:
            output = thoughts
        return Usage(
            None if prompt is None else max(0, prompt + tool_use - (cached or 0)),
            cached,
            None,
            output,
            thoughts,
            complete=prompt is not None and output is not None,
        )
