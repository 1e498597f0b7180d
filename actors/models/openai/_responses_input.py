"""Responses: the conversation as input items. No I/O.

What the server told of its own items goes back as it came, as long as the item is still there: a reasoning item
directly in front of the item it came with, or not at all; an item that waits for an output together with it, or not
at all. Ids of items and of calls are each unique in the request. Items of other formats are never sent.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

from protocol.model import ModelRequest
from protocol.text import is_visible
from protocol.turns import (
    AssistantMessage,
    OpaquePart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)

from ..wire import string
from ._responses_shell import call_with, item_in, message_with

__all__ = ("input_items",)

_MAX_CALL_ID = 64  # characters; OpenAI refuses longer ones, such as those of other vendors


def input_items(request: ModelRequest, *, replays_open_reasoning: bool) -> list[dict[str, Any]]:
    """The items of a request's conversation.

    `replays_open_reasoning`: reasoning that is not encrypted is sent back too. OpenAI's own server looks such items up
    by their id, and refuses those that it did not store.
    """
    writer = _Writer(replays_open_reasoning=replays_open_reasoning)
    for message in request.conversation():
        match message:
            case UserMessage(text=text):
                writer.items.append({"type": "message", "role": "user", "content": text})
            case AssistantMessage(parts=parts):
                writer.add_turn(parts)
            case ToolMessage(results=results):
                for result in results:
                    call_id = writer.call_ids.get(result.call, result.call)
                    writer.items.append({"type": "function_call_output", "call_id": call_id, "output": result.text})
    if request.resume is not None and request.resume.strategy == "exact_prefix":
        _leave_open(writer.items)
    return writer.items


def _leave_open(items: list[dict[str, Any]]) -> None:
    """Mark the last message as the model's own unfinished one, as vLLM reads it."""
    last = items[-1] if items else {}
    if last.get("role") == "assistant":
        content = last["content"]
        text = content if isinstance(content, str) else "".join([string(part.get("text")) for part in content])
        items[-1] = {"type": "message", "role": "assistant", "content": text, "status": "in_progress"}


class _Writer:
    """Writes one request's items."""

    def __init__(self, *, replays_open_reasoning: bool) -> None:
        self.items: list[dict[str, Any]] = []
        self.call_ids: dict[str, str] = {}
        """The ids by which the server knows the calls."""
        self._replays_open_reasoning = replays_open_reasoning
        self._used_ids: set[str] = set()
        self._used_call_ids: set[str] = set()
        self._thoughts: list[tuple[str | None, dict[str, Any]]] = []
        self._shell: tuple[str | None, dict[str, Any]] = (None, {})
        self._texts: list[str] = []

    def add_turn(self, parts: Sequence[Part]) -> None:
        """Add the items of an assistant message."""
        own = [item_in(part) if isinstance(part, OpaquePart) else {} for part in parts]
        named = Counter([string(item.get("call_id")) for item in own])
        for part, item in zip(parts, own, strict=True):
            if isinstance(part, TextPart):
                self._texts.append(part.text)
                continue
            if isinstance(part, ReasoningPart):
                continue
            self._end_text()
            if isinstance(part, ToolCall):
                self._add_call(part)
                continue
            type_ = string(item.get("type"))
            if self._shell[1]:
                self._forget()  # what it belongs to is no longer there
            if type_ == "reasoning":
                self._thoughts.append((part.call, item))
            elif type_ in {"message", "function_call"}:
                self._shell = (part.call, item)
            elif type_ and string(item.get("id")) not in self._used_ids:
                # What has the id of a call waits for an output: one without the other is refused for ever.
                if not item.get("call_id") or named[string(item["call_id"])] > 1:
                    self._add(item)
                self._forget()
        self._end_text()
        self._forget()

    def _end_text(self) -> None:
        texts, self._texts = self._texts, []
        if not is_visible("".join(texts)):
            return
        shell = self._shell[1]
        made = message_with(shell, texts) if shell.get("type") == "message" else None
        if made is not None:
            item, texts = made
            self._add(item)
        self._forget()
        text = "".join(texts)
        if is_visible(text):
            self._add({"type": "message", "role": "assistant", "content": text})

    def _add_call(self, part: ToolCall) -> None:
        call, shell = self._shell
        if shell.get("type") != "function_call" or call != part.id:
            shell = {}
        call_id = self.call_ids[part.id] = self._call_id(part)
        self._add(call_with(shell, call_id, part.name, part.arguments), part.id)

    def _add(self, item: dict[str, Any], call: str | None = None) -> None:
        """Add an item, behind the reasoning that came with it."""
        thoughts = [thought for of_call, thought in self._thoughts if of_call == call]
        sent = [thought for thought in thoughts if self._may_send(thought)]
        self.items += sent
        # Under its id the server would miss the reasoning that it came with, or find the item twice.
        known = len(sent) == len(thoughts) and self._takes_id(item)
        self.items.append(item if known else {name: value for name, value in item.items() if name != "id"})
        self._forget()

    def _may_send(self, thought: dict[str, Any]) -> bool:
        return (bool(thought.get("encrypted_content")) or self._replays_open_reasoning) and self._takes_id(thought)

    def _forget(self) -> None:
        self._thoughts.clear()
        self._shell = (None, {})

    def _takes_id(self, item: dict[str, Any]) -> bool:
        """Whether the item has no id, or one that is new in the request."""
        id_ = string(item.get("id"))
        if id_ in self._used_ids:
            return False
        if id_:
            self._used_ids.add(id_)
        return True

    def _call_id(self, part: ToolCall) -> str:
        """The vendor's own id where it is new in the request; servers use some of theirs again in each turn."""
        for id_ in (part.vendor_id, part.id):
            if id_ and len(id_) <= _MAX_CALL_ID and id_ not in self._used_call_ids:
                break
        else:
            made = (f"{part.id[: _MAX_CALL_ID // 2]}-{number}" for number in itertools.count(2))
            id_ = next(id_ for id_ in made if id_ not in self._used_call_ids)
        self._used_call_ids.add(id_)
        return id_
