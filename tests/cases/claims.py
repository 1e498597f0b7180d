"""Every `assert` line of the cases has code of its own: a function that raises if the line does not hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from protocol.turns import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage

from .runner import Gate

Claim: TypeAlias = Callable[[Gate], None]
CLAIMS: dict[tuple[str, str], Claim] = {}


def claim(id: str, line: str) -> Callable[[Claim], Claim]:
    """Say that the function is the code of this line of this case."""

    def note(fn: Claim) -> Claim:
        if (id, line) in CLAIMS:
            raise ValueError(f"{id} has two claims for: {line}")
        CLAIMS[id, line] = fn
        return fn

    return note


def said(messages: Iterable[Message]) -> list[str]:
    """What the user role says, in order."""
    return [message.text for message in messages if isinstance(message, UserMessage)]


def called(messages: Iterable[Message]) -> list[str]:
    """Ids of the calls, in order."""
    return [
        part.id
        for message in messages
        if isinstance(message, AssistantMessage)
        for part in message.parts
        if isinstance(part, ToolCall)
    ]


def answered(messages: Iterable[Message]) -> list[tuple[str, str]]:
    """Ids and statuses of the results, in order."""
    return [
        (result.call, result.status)
        for message in messages
        if isinstance(message, ToolMessage)
        for result in message.results
    ]
