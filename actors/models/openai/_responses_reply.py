"""Responses: a reply, streamed or whole, read into a turn. No I/O.

A terminal event or a whole body is a positive end; a stream without one is lost, and never passes for an answer.
Events are tied to their item by its id, or by its place in the output, or by what can grow: servers leave out the one
or the other, count places their own way, or make up a new id for each event. Events that are not known add nothing.
"""

from __future__ import annotations

from typing import Any

from protocol.errors import ModelReplyError, ModelServerError
from protocol.model import ModelEvent
from protocol.turns import Finish, Turn
from protocol.usage import Usage

from ..wire import (
    Endpoint,
    ServerFault,
    ServerSentEvent,
    fault_in,
    items,
    mapping,
    number,
    parse_reply,
    refusal,
    reply_fault,
    string,
)
from ._responses_items import Item, plain_parts, whole_parts
from ._responses_output import Output

__all__ = ("ResponsesReply",)

_ENDS = {
    "response.completed": "completed",
    "response.done": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.cancelled": "cancelled",
}
_STATUSES = {"completed", "incomplete", "failed", "cancelled"}
# What an event tells of: the type of its item, the kind of its content part, the field with the part's index, and the
# field with the whole text.
_TEXTS = {
    "response.output_text": ("message", "output_text", "content_index", "text"),
    "response.refusal": ("message", "refusal", "content_index", "refusal"),
    "response.reasoning_text": ("reasoning", "reasoning_text", "content_index", "text"),
    "response.reasoning_summary_text": ("reasoning", "summary_text", "summary_index", "text"),
}
_PARTS = {kind: (type_, kind, index, field) for type_, kind, index, field in _TEXTS.values()}


class ResponsesReply:
    """Reads one reply. Feed it events or a whole body, then take the turn from `finish()`, or from `lost()`."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._output = Output()
        self._status = ""
        self._reason: str | None = None
        self._usage: dict[str, int] = {}
        self._response: str | None = None
        self.started = False
        """Whether anything of the reply has come."""
        self.ended = False
        """Whether it has come to a positive end."""
        self.done = False
        """Whether nothing follows."""

    def feed(self, event: ServerSentEvent) -> list[ModelEvent]:
        """Take one event of the stream and return what it adds. Raises `ModelError`."""
        data = event.data.strip()
        if not data or self.ended:
            return []
        self.started = True
        if data == "[DONE]":  # not of this format, but sent by some: no end by itself
            self.done = True
            return []
        told = parse_reply(self._endpoint, data)
        type_ = string(mapping(told).get("type")) or event.event
        self._check(told, failed=type_ == "error")
        told = mapping(told)
        if type_ in _ENDS:
            return self._end(mapping(told.get("response")), _ENDS[type_])
        return self._take(type_, told)

    def feed_body(self, body: bytes) -> list[ModelEvent]:
        """Take a whole reply that was not streamed, and return what it holds. Raises `ModelError`."""
        self.started = True
        response = parse_reply(self._endpoint, body)
        status = string(mapping(response).get("status"))
        if status not in {"failed", "cancelled"}:  # what went wrong there is told below
            self._check(response)
        response = mapping(response)
        if "output" not in response and not status:
            raise reply_fault(self._endpoint, "holds no output", body.decode("utf-8", "replace"))
        if status and status not in _STATUSES:
            raise reply_fault(self._endpoint, "is not finished", f"its status is {status!r}")
        return self._end(response, "completed")

    def finish(self) -> Turn:
        """The whole turn. Raises `ModelReplyError` if a call has no name, or the reply did not come to its end."""
        if not self.ended:
            raise ModelReplyError(
                f"{self._endpoint.address}: the stream ended in the middle of the reply, without a terminal event",
                retryable=True,
            )
        for item in self._output.items:
            if item.type == "function_call" and not item.name and item.arguments.strip():
                raise reply_fault(
                    self._endpoint, "holds a broken tool call", f"it has no name; its arguments are {item.arguments!r}"
                )
        parts = whole_parts(self._output.items, last_is_cut=self._status == "incomplete")
        return Turn(parts, self._finish(), self._reason or self._status, self._read_usage(), response=self._response)

    def lost(self) -> Turn:
        """What had come when the reply broke off."""
        return Turn(plain_parts(self._output.items), usage=self._read_usage(), end="lost", response=self._response)

    def _check(self, told: Any, *, failed: bool = False) -> None:
        """Raise the error that is told; `failed`: there is one, whatever it looks like."""
        fault = fault_in(told)
        if failed and not mapping(told).get("error"):
            fault = fault_in({"error": {name: value for name, value in mapping(told).items() if name != "type"}})
            fault = fault or ServerFault("it does not say which")
        if fault is not None:
            raise refusal(self._endpoint, fault)

    def _end(self, response: dict[str, Any], status: str) -> list[ModelEvent]:
        """Take the response as a whole: its status counts where it is worse than the event's."""
        said = string(response.get("status"))
        self._status = said if said in _STATUSES and said != "completed" else status
        self._note(response)
        events = self._output.settle([mapping(item) for item in items(response.get("output"))])
        if self._status in {"failed", "cancelled"}:
            self._check({"error": response.get("error")})
            raise ModelServerError(
                f"{self._endpoint.address} broke off its reply, with the status {self._status!r}",
                status=500,
                retryable=self._status == "failed",
            )
        if self._status == "incomplete":
            self._reason = string(mapping(response.get("incomplete_details")).get("reason")).strip() or None
        self.ended = self.done = True
        return events + self._output.flush()

    def _note(self, response: dict[str, Any]) -> None:
        if self._response is None:
            self._response = string(response.get("id")) or None
        usage = mapping(response.get("usage"))
        given = mapping(usage.get("input_tokens_details"))
        made = mapping(usage.get("output_tokens_details"))
        reported = {
            "input": usage.get("input_tokens"),
            "output": usage.get("output_tokens"),
            "read": given.get("cached_tokens"),
            "write": given.get("cache_write_tokens"),
            "reasoning": made.get("reasoning_tokens"),
        }
        for name, value in reported.items():
            count = number(value)
            if count is not None:
                self._usage[name] = count

    def _take(self, type_: str, told: dict[str, Any]) -> list[ModelEvent]:
        stem, _, what = type_.rpartition(".")
        if stem in _TEXTS:
            return self._take_text(_TEXTS[stem], what, told, told)
        match stem, what:
            case "response.content_part" | "response.reasoning_summary_part", "done":
                part = mapping(told.get("part"))
                place = _PARTS.get(string(part.get("type")))
                return self._take_text(place, what, told, part) if place else []
            case "response.function_call_arguments", "delta" | "done":
                return self._take_arguments(what, told)
            case "response.output_item", "added" | "done":
                return self._take_item(what, told)
            case "response", "created" | "queued" | "in_progress":
                self._note(mapping(told.get("response")))
                return []
            case _:
                return []

    def _take_text(
        self, place: tuple[str, str, str, str], what: str, told: dict[str, Any], holder: dict[str, Any]
    ) -> list[ModelEvent]:
        type_, kind, index_field, text_field = place
        text = string(holder.get(text_field) if what == "done" else holder.get("delta"))
        if not text or what not in {"delta", "done"}:
            return []
        item = self._growing(type_, told)
        if item.done:
            return []  # it comes too late: the item has been told whole
        index = number(told.get(index_field)) or 0
        return item.settle_text(kind, index, text) if what == "done" else item.add(kind, index, text)

    def _take_arguments(self, what: str, told: dict[str, Any]) -> list[ModelEvent]:
        item = self._growing("function_call", told)
        if item.done:
            return []
        if what == "delta":
            return item.add_arguments(string(told.get("delta")))
        return item.announce({"name": told.get("name")}) + item.settle_arguments(told.get("arguments"))

    def _take_item(self, what: str, told: dict[str, Any]) -> list[ModelEvent]:
        given = mapping(told.get("item"))
        type_, index = string(given.get("type")), number(told.get("output_index"))
        if not type_:
            return []
        item = self._output.named(type_, given)
        if what == "added":
            return (item or self._output.open(type_, given, index)).announce(given)
        item = item or self._output.growing(type_, string(given.get("id")), index, given)
        return (item or self._output.open(type_, given, index)).settle(given)

    def _growing(self, type_: str, told: dict[str, Any]) -> Item:
        """The item that an event adds to. Raises `ModelReplyError` for arguments of which nobody knows whose they are."""
        id_, index = string(told.get("item_id")), number(told.get("output_index"))
        item = self._output.named(type_, {"id": id_}) or self._output.growing(type_, id_, index)
        if item is None and type_ == "function_call" and not id_ and index is None:
            raise reply_fault(self._endpoint, "holds a piece of a tool call that belongs to no call", repr(told))
        return item or self._output.open(type_, {"id": id_}, index)

    def _finish(self) -> Finish:
        calls = [item for item in self._output.items if item.type == "function_call" and item.name]
        if any(item.cut for item in calls) or (calls and self._status == "incomplete"):
            return "length"  # no call of a cut turn may run, and some servers call all items of one completed
        if self._status == "incomplete":
            return "content_filter" if (self._reason or "").lower() == "content_filter" else "length"
        return "tool_calls" if calls else "stop"

    def _read_usage(self) -> Usage:
        usage = self._usage
        given, output = usage.get("input"), usage.get("output")
        read, write = usage.get("read"), usage.get("write")
        return Usage(
            None if given is None else max(0, given - (read or 0) - (write or 0)),
            read,
            write,
            output,
            usage.get("reasoning"),
            complete=given is not None and output is not None,
        )
