"""Every `assert` line of the cases has code of its own: a function that raises if the line does not hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from protocol.turns import AssistantMessage, Message, ToolCall, ToolMessage, ToolResult, UserMessage

Claim: TypeAlias = Callable[..., None]
"""Takes the way in which questions are answered, if somebody is asked in the case; else nothing."""
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
    return [call.id for call in calls_in(messages)]


def calls_in(messages: Iterable[Message]) -> list[ToolCall]:
    """The calls, in order."""
    return [
        part
        for message in messages
        if isinstance(message, AssistantMessage)
        for part in message.parts
        if isinstance(part, ToolCall)
    ]


def answered(messages: Iterable[Message]) -> list[tuple[str, str]]:
    """Ids and statuses of the results, in order."""
    return [(result.call, result.status) for result in results_in(messages)]


def results_in(messages: Iterable[Message]) -> list[ToolResult]:
    """The results, in order."""
    return [result for message in messages if isinstance(message, ToolMessage) for result in message.results]
