"""Chat Completions: a reply, streamed or whole, read into a turn. No I/O.

`[DONE]`, a finish reason or a whole body is a positive end; a stream without one is lost, and never passes for an
answer. What servers add to the format is left alone, or kept where they want it back; what they leave out or write
otherwise is taken as it comes.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import attrs
import msgspec

from protocol.errors import ModelReplyError, ModelServerError
from protocol.model import ModelEvent, ReasoningDelta, Resume, TextDelta
from protocol.text import clean
from protocol.turns import Part, ReasoningPart, TextPart, ToolCall, Turn, text_of

from ..servers import COMPATIBLE, Server
from ..wire import (
    Endpoint,
    ServerSentEvent,
    check_reply,
    fault_in,
    items,
    mapping,
    parse_reply,
    reply_fault,
    string,
)
from ._chat_calls import CallAssembler, StrayFragmentError
from ._chat_echo import EchoFilter
from ._chat_finish import failed, finish_of, outranking
from ._chat_kept import REASONING_FIELD, KeptFields, kept_part
from ._chat_usage import UsageTally

__all__ = ("ChatReply",)

_REASONING = ("reasoning_content", "reasoning")


@attrs.define(eq=False)
class _Piece:
    """Text or reasoning that is still growing."""

    reasoning: bool
    texts: list[str] = attrs.Factory(list[str])


class ChatReply:
    """Reads one reply. Feed it events or a whole body, then take the turn from `finish()`, or from `lost()`."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        server: Server = COMPATIBLE,
        echoes_reasoning: bool = False,
        resume: Resume | None = None,
    ) -> None:
        exact = resume if resume is not None and resume.strategy == "exact_prefix" else None
        self._endpoint = endpoint
        self._order: list[_Piece | KeptFields | int] = []  # a number stands for that call
        self._calls = CallAssembler()
        self._kept = KeptFields()
        self._echo = EchoFilter(text_of(exact.parts) if exact is not None and server.echoes_prefix else "")
        self._reasons_aloud = exact is not None and server.continues_in_reasoning
        self._usual_field = server.reasoning_field if echoes_reasoning else None
        self._reasoning_field = ""
        self._ordered_calls = 0
        self._half: dict[bool, str] = {}
        self._raw_finish: str | None = None
        self._usage = UsageTally()
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
            return self._flush()
        chunk = parse_reply(self._endpoint, data)
        if event.event == "error" and fault_in(chunk) is None:
            chunk = {"error": chunk}
        check_reply(self._endpoint, chunk)
        return self._take(chunk, "delta")

    def feed_body(self, body: bytes) -> list[ModelEvent]:
        """Take a whole reply that was not streamed, and return what it holds. Raises `ModelError`."""
        self.started = True
        completion = parse_reply(self._endpoint, body)
        check_reply(self._endpoint, completion)
        if not items(mapping(completion).get("choices")):
            raise reply_fault(self._endpoint, "holds no choices", body.decode("utf-8", "replace"))
        self.ended = self.done = True
        return [*self._take(completion, "message"), *self._flush()]

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
            raise reply_fault(self._endpoint, "holds a broken tool call", str(error)) from error
        return self._turn(parts)

    def lost(self) -> Turn:
        """What had come when the reply broke off."""
        return attrs.evolve(self._turn(self._parts(strict=False)), end="lost")

    def _take(self, chunk: Any, kind: str) -> list[ModelEvent]:
        chunk = mapping(chunk)
        if self._response is None:
            self._response = string(chunk.get("id")) or None
        usage = chunk.get("usage")
        if usage:
            self._usage.feed(mapping(usage))
        events: list[ModelEvent] = []
        for entry in items(chunk.get("choices")):
            choice = mapping(entry)
            if choice.get("index"):
                continue  # one reply was asked for
            message = mapping(choice[kind] if kind in choice else choice.get("message"))
            self._read_message(message, events, whole=kind == "message")
            done = choice.get("done_reason") or chunk.get("done_reason")
            reason = choice.get("finish_reason") or done
            if reason:
                told = [string(one).strip() for one in (choice.get("native_finish_reason"), done, reason)]
                self._read_finish(told, events)
            if choice.get("usage"):  # some put it there
                self._usage.feed(mapping(choice["usage"]))
        return events

    def _read_message(self, message: dict[str, Any], events: list[ModelEvent], *, whole: bool) -> None:
        # Most deltas hold one thing alone: what is not there is not looked into.
        told = ""
        if "reasoning_details" in message or "extra_content" in message:
            told = self._kept.feed(message)
            if self._kept.fields and self._kept not in self._order:
                self._order.append(self._kept)
        for field in _REASONING:
            thought = string(message.get(field))
            if thought:
                self._reasoning_field = field
                self._add(thought, events, reasoning=True)
                break
        else:
            self._add(told, events, reasoning=True)
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
                raise reply_fault(self._endpoint, "holds a broken tool call", str(error)) from error
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
        reasoning = reasoning and not self._reasons_aloud
        if not reasoning:
            text = self._echo.feed(text)
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

    def _read_finish(self, told: list[str], events: list[ModelEvent]) -> None:
        reason = told[-1]
        if not reason:
            return
        if failed(reason):
            raise ModelServerError(
                f"{self._endpoint.address} broke off its reply, with the finish reason {reason!r}",
                status=500,
                retryable=True,
            )
        self._raw_finish = outranking((self._raw_finish or "", *told))
        self.ended = True
        events += self._flush()

    def _flush(self) -> list[ModelEvent]:
        """Report what was held back."""
        events: list[ModelEvent] = []
        self._add(self._echo.flush(), events, reasoning=False)
        return [*events, *self._calls.flush()]

    def _turn(self, parts: tuple[Part, ...]) -> Turn:
        return Turn(parts, finish_of(self._raw_finish), self._raw_finish, self._usage.usage(), response=self._response)

    def _parts(self, *, strict: bool) -> tuple[Part, ...]:
        parts: list[Part] = []
        calls = [self._calls.call(number, strict=strict) for number in range(len(self._calls))]
        ids = Counter([call.id for call in calls if call is not None])
        for item in self._order:
            if isinstance(item, int):
                call = calls[item]
                if call is not None:
                    parts += self._with_kept(call, item, ids)
            elif isinstance(item, KeptFields):
                parts.append(kept_part(item.fields))
            else:
                text = clean("".join(item.texts))
                parts.append(ReasoningPart(text) if item.reasoning else TextPart(text))
        if self._usual_field is not None and self._reasoning_field not in {"", self._usual_field}:
            parts.insert(0, kept_part({REASONING_FIELD: self._reasoning_field}))
        return tuple(parts)

    def _with_kept(self, call: ToolCall, number: int, ids: Counter[str]) -> list[Part]:
        """A call and the part that belongs to it, which finds it by an id of its own."""
        fields = self._calls.kept(number)
        if not fields:
            return [call]
        if not call.id or ids[call.id] > 1:
            fresh = f"call_{number}"
            while fresh in ids:
                fresh += "_"
            ids[fresh] = 1
            call = msgspec.structs.replace(call, id=fresh, vendor_id=call.id or None)
        return [call, kept_part(fields, call.id)]
