"""Anthropic Messages: a reply, streamed or whole, read into a turn. No I/O.

`message_stop`, a stop reason or a whole body is a positive end; a stream without one is lost, and never passes for an
answer. Servers lose the start of the message, and of its first block, where a first token is half a character: what
a delta says is enough to open its block.
"""

from __future__ import annotations

from typing import Any

import attrs

from protocol.errors import ModelReplyError
from protocol.model import ModelEvent
from protocol.turns import Finish, Part, ToolCall, Turn
from protocol.usage import Usage

from ..wire import (
    Endpoint,
    ServerSentEvent,
    check_reply,
    fault_in,
    items,
    mapping,
    number,
    parse_reply,
    reply_fault,
    string,
)
from ._messages_growing import BLOCK_OF_DELTA, GrowingBlock

__all__ = ("MessagesReply", "finish_of")

_FINISHES: dict[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "paused",
    "compaction": "paused",
    "refusal": "content_filter",
}


def finish_of(reason: str | None) -> Finish | None:
    """A server's stop reason in common words; `None` if it gave none, `other` if the word is not known."""
    return None if reason is None else _FINISHES.get(reason.lower(), "other")


class MessagesReply:
    """Reads one reply. Feed it events or a whole body, then take the turn from `finish()`, or from `lost()`."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._blocks: list[GrowingBlock] = []
        self._by_index: dict[int | None, GrowingBlock] = {}
        self._calls = 0
        self._raw_finish: str | None = None
        self._usage: dict[str, int] = {}
        self._counted = False
        self._response: str | None = None
        self.started = False
        """Whether anything of the reply has come."""
        self.ended = False
        """Whether it has come to a positive end; usage may still follow."""
        self.done = False
        """Whether nothing follows."""

    def feed(self, event: ServerSentEvent) -> list[ModelEvent]:
        """Take one event of the stream and return what it adds. Raises `ModelError`."""
        text = event.data.strip()
        if not text:
            return []
        self.started = True
        if text == "[DONE]":  # no word of this format, but gateways send it
            self.done = True
            return []
        data = parse_reply(self._endpoint, text)
        if event.event == "error" and fault_in(data) is None:
            data = {"error": data}
        check_reply(self._endpoint, data)
        data = mapping(data)
        match string(data.get("type")) or event.event:
            case "message_start":
                self._read_head(mapping(data.get("message")))
            case "content_block_start":
                return self._begin(mapping(data.get("content_block")), data.get("index"))
            case "content_block_delta":
                return self._add(mapping(data.get("delta")), data.get("index"))
            case "content_block_stop":
                block = self._by_index.get(number(data.get("index")))
                return block.stop() if block else []
            case "message_delta":
                self._read_usage(mapping(data.get("usage")), final=True)
                self._read_finish(mapping(data.get("delta")))
                return self._flush() if self.ended else []
            case "message_stop":
                self.ended = self.done = True
                return self._flush()
            case _:
                pass  # `ping`, and what is not known yet
        return []

    def feed_body(self, body: bytes) -> list[ModelEvent]:
        """Take a whole reply that was not streamed, and return what it holds. Raises `ModelError`."""
        self.started = True
        message = parse_reply(self._endpoint, body)
        check_reply(self._endpoint, message)
        message = mapping(message)
        if not isinstance(message.get("content"), list):
            raise reply_fault(self._endpoint, "holds no content", body.decode("utf-8", "replace"))
        self.ended = self.done = True
        self._read_head(message)
        self._read_usage(mapping(message.get("usage")), final=True)
        self._read_finish(message)
        events: list[ModelEvent] = []
        for block in items(message["content"]):
            events += self._begin(mapping(block), None)
        return events + self._flush()

    def finish(self) -> Turn:
        """The whole turn. Raises `ModelReplyError` if a call has no name, or the reply did not come to its end."""
        if not self.ended:
            raise ModelReplyError(
                f"{self._endpoint.address}: the stream ended in the middle of the reply,"
                " with neither a stop reason nor message_stop",
                retryable=True,
            )
        parts = [part for block in self._blocks for part in block.parts()]
        for part in parts:
            if isinstance(part, ToolCall) and not part.name:
                raise reply_fault(self._endpoint, "holds a tool call without a name; its arguments are", part.arguments)
        return self._turn(parts)

    def lost(self) -> Turn:
        """What had come when the reply broke off; of blocks that only their maker can read, the whole ones."""
        parts = [
            part
            for block in self._blocks
            if block.stopped or block.readable
            for part in block.parts()
            if not isinstance(part, ToolCall) or part.name
        ]
        return attrs.evolve(self._turn(parts), end="lost")

    def _begin(self, fields: dict[str, Any], index: Any) -> list[ModelEvent]:
        if not string(fields.get("type")):
            return []  # its deltas will say what it is
        block = GrowingBlock(fields)
        if block.kind == "tool_use":
            block.call = self._calls
            self._calls += 1
        self._blocks.append(block)
        self._by_index[number(index)] = block
        return block.begin()

    def _add(self, delta: dict[str, Any], index: Any) -> list[ModelEvent]:
        kind = string(delta.get("type"))
        block = self._by_index.get(number(index))
        if block is not None and block.takes(kind):
            return block.add(delta)
        match BLOCK_OF_DELTA.get(kind):
            case None:
                return []
            case "tool_use":
                piece = string(delta.get("partial_json"))
                if not piece or piece.isspace():
                    return []
                raise reply_fault(self._endpoint, "holds a piece of a tool call that belongs to no call", piece)
            case opened:
                self._begin({"type": opened}, index)
                return self._by_index[number(index)].add(delta)

    def _flush(self) -> list[ModelEvent]:
        return [event for block in self._blocks for event in block.stop()]

    def _read_head(self, message: dict[str, Any]) -> None:
        self._response = self._response or string(message.get("id")) or None
        self._read_usage(mapping(message.get("usage")), final=False)

    def _read_finish(self, told: dict[str, Any]) -> None:
        reason = string(told.get("stop_reason")).strip()
        if reason:
            self._raw_finish = reason
            self.ended = True

    def _read_usage(self, usage: dict[str, Any], *, final: bool) -> None:
        """Take counts that replace those before; the output that the head tells is no more than a beginning."""
        reported = {
            "input": usage.get("input_tokens"),
            "read": usage.get("cache_read_input_tokens"),
            "write": usage.get("cache_creation_input_tokens"),
            "output": usage.get("output_tokens"),
            "reasoning": mapping(usage.get("output_tokens_details")).get("thinking_tokens"),
        }
        for name, value in reported.items():
            count = number(value)
            if count is not None:
                self._usage[name] = count
                self._counted = self._counted or (final and name == "output")

    def _turn(self, parts: list[Part]) -> Turn:
        usage = self._usage
        return Turn(
            tuple(parts),
            finish_of(self._raw_finish),
            self._raw_finish,
            Usage(
                usage.get("input"),
                usage.get("read"),
                usage.get("write"),
                usage.get("output"),
                usage.get("reasoning"),
                complete=self._counted and "input" in usage,
            ),
            response=self._response,
        )
