"""Chat Completions: a reply, streamed or whole, read into a turn. No I/O.

`[DONE]`, a finish reason or a whole body is a positive end; a stream without one is lost, and never passes for an
answer. What servers add to the format is left alone; what they leave out or write otherwise is taken as it comes.
"""

from __future__ import annotations

from typing import Any, cast

import attrs

from protocol.errors import ModelReplyError, ModelServerError
from protocol.model import ModelEvent, ReasoningDelta, TextDelta
from protocol.text import clean
from protocol.turns import Finish, Part, ReasoningPart, TextPart, Turn
from protocol.usage import Usage

from ..wire import Endpoint, ServerSentEvent, fault_in, items, mapping, number, parse, refusal, string
from ._chat_calls import CallAssembler, StrayFragmentError

__all__ = ("ChatReply", "finish_of")

_FINISHES: dict[str, Finish] = {
    "stop": "stop",
    "end_turn": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "stop_sequence": "stop",
    "complete": "stop",
    "tool_calls": "tool_calls",
    "tool_call": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "refusal": "content_filter",
    "malformed_function_call": "malformed",
}
_FAILED = {"error", "abort"}


def finish_of(reason: str | None) -> Finish | None:
    """A server's finish reason in common words; `None` if it gave none, `other` if the word is not known."""
    if reason is None:
        return None
    word = reason.strip().lower()
    # Some put what was found behind a colon: "content_filter: SAFETY".
    return _FINISHES.get(word) or _FINISHES.get(word.partition(":")[0]) or "other"


@attrs.define(eq=False)
class _Piece:
    """Text or reasoning that is still growing."""

    reasoning: bool
    texts: list[str] = attrs.Factory(list[str])


class ChatReply:
    """Reads one reply. Feed it events or a whole body, then take the turn from `finish()`, or from `lost()`."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._order: list[_Piece | int] = []  # a number stands for that call
        self._calls = CallAssembler()
        self._ordered_calls = 0
        self._half: dict[bool, str] = {}
        self._raw_finish: str | None = None
        self._usage: dict[str, int] = {}
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
            self.ended = self.done = True
            return [*self._calls.flush()]
        chunk = self._parse(data)
        if event.event == "error" and fault_in(chunk) is None:
            chunk = {"error": chunk}
        self._check(chunk)
        return self._take(chunk, "delta")

    def feed_body(self, body: bytes) -> list[ModelEvent]:
        """Take a whole reply that was not streamed, and return what it holds. Raises `ModelError`."""
        self.started = True
        completion = self._parse(body)
        self._check(completion)
        if not items(mapping(completion).get("choices")):
            raise self._fault("holds no choices", body.decode("utf-8", "replace"))
        self.ended = self.done = True
        return [*self._take(completion, "message"), *self._calls.flush()]

    def finish(self) -> Turn:
        """The whole turn. Raises `ModelReplyError` if a call has no name, or the reply did not come to its end."""
        if not self.ended:
            raise ModelReplyError(
                f"{self._endpoint.address}: the stream ended in the middle of the reply,"
                " with neither a finish reason nor [DONE]",
                retryable=True,
            )
        try:
            parts = self._parts(strict=True)
        except StrayFragmentError as error:
            raise self._fault("holds a broken tool call", str(error)) from error
        return self._turn(parts)

    def lost(self) -> Turn:
        """What had come when the reply broke off."""
        return attrs.evolve(self._turn(self._parts(strict=False)), end="lost")

    def _parse(self, data: str | bytes) -> Any:
        try:
            parsed = parse(data)
        except ValueError:
            parsed = None
        if isinstance(parsed, dict) or fault_in(parsed) is not None:
            return cast("Any", parsed)
        raise self._fault("is no JSON object", data if isinstance(data, str) else data.decode("utf-8", "replace"))

    def _fault(self, what: str, text: str) -> ModelReplyError:
        quoted = self._endpoint.quote(text, max_chars=200)
        return ModelReplyError(f"{self._endpoint.address}: the reply {what}: {quoted}")

    def _check(self, chunk: Any) -> None:
        fault = fault_in(chunk)
        if fault is not None:
            raise refusal(self._endpoint, fault)

    def _take(self, chunk: Any, kind: str) -> list[ModelEvent]:
        chunk = mapping(chunk)
        if self._response is None:
            self._response = string(chunk.get("id")) or None
        usage = chunk.get("usage")
        if usage:
            self._read_usage(mapping(usage))
        events: list[ModelEvent] = []
        for entry in items(chunk.get("choices")):
            choice = mapping(entry)
            if choice.get("index"):
                continue  # one reply was asked for
            message = mapping(choice[kind] if kind in choice else choice.get("message"))
            self._read_message(message, events, whole=kind == "message")
            reason = choice.get("finish_reason")
            if reason:
                self._read_finish(string(reason).strip(), events)
        return events

    def _read_message(self, message: dict[str, Any], events: list[ModelEvent], *, whole: bool) -> None:
        # Most deltas hold one thing alone: what is not there is not looked into.
        thought = string(message.get("reasoning_content")) or string(message.get("reasoning"))
        if thought:
            self._add(thought, events, reasoning=True)
        content = message.get("content")
        if isinstance(content, str):
            self._add(content, events, reasoning=False)
        elif content:
            self._read_blocks(items(content), events)
        if "refusal" in message:
            self._add(string(message["refusal"]), events, reasoning=False)
        if "tool_calls" in message or "function_call" in message:
            self._read_calls(message, events, whole=whole)

    def _read_calls(self, message: dict[str, Any], events: list[ModelEvent], *, whole: bool) -> None:
        entries = items(message.get("tool_calls"))
        if not entries and mapping(message.get("function_call")):  # the form before there were several
            entries = [{"index": 0, "function": message["function_call"]}]
        for entry in entries:
            try:
                events += self._calls.feed(entry, whole=whole)
            except StrayFragmentError as error:
                raise self._fault("holds a broken tool call", str(error)) from error
            self._order += range(self._ordered_calls, len(self._calls))
            self._ordered_calls = len(self._calls)

    def _read_blocks(self, blocks: list[Any], events: list[ModelEvent]) -> None:
        for entry in blocks:
            block = mapping(entry)
            thought = block.get("thinking")
            if thought:
                texts = (
                    [string(thought)]
                    if isinstance(thought, str)
                    else [string(mapping(piece).get("text")) for piece in items(thought)]
                )
                self._add("".join(texts), events, reasoning=True)
            self._add(string(block.get("text")), events, reasoning=False)

    def _add(self, text: str, events: list[ModelEvent], *, reasoning: bool) -> None:
        if not text:
            return
        last = self._order[-1] if self._order else None
        if not isinstance(last, _Piece) or last.reasoning is not reasoning:
            last = _Piece(reasoning)
            self._order.append(last)
        last.texts.append(text)
        if not text.isascii() or reasoning in self._half:
            # Half a character (a lone surrogate) waits for its other half.
            text = self._half.pop(reasoning, "") + text
            if "\ud800" <= text[-1] <= "\udbff":
                self._half[reasoning] = text[-1]
                text = text[:-1]
            text = clean(text)
        if text:
            events.append(ReasoningDelta(text) if reasoning else TextDelta(text))

    def _read_finish(self, reason: str, events: list[ModelEvent]) -> None:
        if not reason:
            return
        if reason.lower() in _FAILED:
            raise ModelServerError(
                f"{self._endpoint.address} broke off its reply, with the finish reason {reason!r}",
                status=500,
                retryable=True,
            )
        self._raw_finish = reason
        self.ended = True
        events += self._calls.flush()

    def _read_usage(self, usage: dict[str, Any]) -> None:
        prompt = mapping(usage.get("prompt_tokens_details"))
        completion = mapping(usage.get("completion_tokens_details"))
        reported = {
            "prompt": usage.get("prompt_tokens"),
            "output": usage.get("completion_tokens"),
            "read": prompt.get("cached_tokens", usage.get("prompt_cache_hit_tokens")),
            "write": prompt.get("cache_write_tokens"),
            "reasoning": completion.get("reasoning_tokens"),
        }
        for name, value in reported.items():
            count = number(value)
            if count is not None:
                self._usage[name] = count

    def _turn(self, parts: tuple[Part, ...]) -> Turn:
        usage = self._usage
        prompt, output = usage.get("prompt"), usage.get("output")
        read, write = usage.get("read"), usage.get("write")
        return Turn(
            parts,
            finish_of(self._raw_finish),
            self._raw_finish,
            Usage(
                None if prompt is None else max(0, prompt - (read or 0) - (write or 0)),
                read,
                write,
                output,
                usage.get("reasoning"),
                complete=prompt is not None and output is not None,
            ),
            response=self._response,
        )

    def _parts(self, *, strict: bool) -> tuple[Part, ...]:
        parts: list[Part] = []
        for item in self._order:
            if isinstance(item, int):
                call = self._calls.call(item, strict=strict)
                if call is not None:
                    parts.append(call)
            else:
                text = clean("".join(item.texts))
                parts.append(ReasoningPart(text) if item.reasoning else TextPart(text))
        return tuple(parts)
