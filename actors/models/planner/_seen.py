"""What the conversation already holds: the task in hand, and what became of every call.

The planner keeps nothing between its turns. All of this is read from the messages of each request anew.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from typing import Any

import attrs

from protocol.turns import AssistantMessage, Message, ToolMessage, ToolResult, UserMessage, calls_of

from ._rules import Narrowing, Task, Wish, read_wish

__all__ = ("Ask", "Seen", "see")

MAX_ATTEMPTS = 2
"""How often the same call is asked for, since somebody last spoke up, before it is given up."""

_NOTIFICATION = "System notification:"
"""How the runtime's own user messages begin."""


@attrs.frozen(cache_hash=True)
class Ask:
    """A call the planner wants, before it has an id. Two with the same name and arguments are the same."""

    tool: str
    arguments: str
    """The JSON text of the arguments, keys sorted."""

    @classmethod
    def of(cls, tool: str, **arguments: Any) -> Ask:
        """The call of `tool` with `arguments`."""
        return cls(tool, json.dumps(arguments, sort_keys=True, ensure_ascii=False))

    def argument(self, name: str) -> str:
        """One of the arguments, as text; `""` if there is none of that name."""
        return str(json.loads(self.arguments).get(name, ""))


@attrs.define
class Seen:
    """The conversation, folded."""

    task: Task | None = None
    narrowing: Narrowing = attrs.field(factory=Narrowing)
    ended: bool = False
    """Somebody asked for the report of what is known."""
    unknown: str | None = None
    """A prompt that no rule matches, if that is what there is to answer."""
    remarks: list[str] = attrs.field(factory=list[str])
    """Messages during the task that no rule matches: they changed nothing, and the report says so."""
    attempts: dict[Ask, int] = attrs.field(factory=dict[Ask, int])
    results: dict[Ask, ToolResult] = attrs.field(factory=dict[Ask, ToolResult])
    """The good result of each call that has one, else its last."""

    def text(self, ask: Ask) -> str | None:
        """What the tool answered, if it did."""
        result = self.results.get(ask)
        return result.text if result is not None and result.status == "ok" else None

    def failure(self, ask: Ask) -> ToolResult | None:
        """The last result of a call that is given up: refused, or asked for often enough."""
        result = self.results.get(ask)
        if result is None or result.status == "ok":
            return None
        return result if result.status == "denied" or self.attempts.get(ask, 0) >= MAX_ATTEMPTS else None


def see(messages: Sequence[Message]) -> Seen:
    """Fold the conversation."""
    seen = Seen()
    asked: dict[str, Ask] = {}
    answered = True
    for message in messages:
        match message:
            case UserMessage(text=text):
                if not text.startswith(_NOTIFICATION):
                    seen = _hear(seen, text, opens=answered)
                answered = False
            case AssistantMessage(parts=parts):
                calls = calls_of(parts)
                answered = not calls
                for call in calls:
                    asked[call.id] = ask = _ask_of(call.name, call.arguments)
                    seen.attempts[ask] = seen.attempts.get(ask, 0) + 1
            case ToolMessage(results=results):
                for result in results:
                    known = asked.get(result.call)
                    if known is not None and seen.text(known) is None:
                        seen.results[known] = result
    return seen


def _hear(seen: Seen, text: str, *, opens: bool) -> Seen:
    """Take in a message. `opens`: it does not interrupt a task, it is a new prompt."""
    wish = read_wish(text)
    if wish.task is not None:
        return Seen(wish.task, wish.narrowing)
    if seen.task is None or not wish.understood:
        if opens or seen.task is None:
            seen.unknown = text
        else:
            seen.remarks.append(text)
        return seen
    return _narrow(seen, wish, opens=opens)


def _narrow(seen: Seen, wish: Wish, *, opens: bool) -> Seen:
    seen.unknown = None
    seen.narrowing += wish.narrowing
    seen.ended = wish.ends
    if opens or wish.resumes:
        seen.attempts.clear()
    return seen


@functools.lru_cache(maxsize=65_536)  # the conversation is read anew in every turn
def _ask_of(name: str, arguments: str) -> Ask:
    try:
        return Ask.of(name, **json.loads(arguments))
    except (ValueError, TypeError):
        return Ask(name, arguments)
