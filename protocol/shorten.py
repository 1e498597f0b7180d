"""Making a conversation shorter without harm: what may go, and what has to stay. Pure; how long it is, the caller says.

A conversation is read as *blocks* that stay or go as a whole: a user message, an answer, or a turn with tool calls and its
results. What the run was asked for, the user's last message and the last block always stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from .text import cut_middle
from .turns import AssistantMessage, Message, ToolMessage, ToolResult, UserMessage, calls_of, text_of

__all__ = ("clear_results", "cut_results", "going", "kept_faults", "transcript_of")

Count: TypeAlias = Callable[[Sequence[Message]], int]


def going(messages: Sequence[Message], count: Count, *, prompt: str, keep_last: int, most: int) -> frozenset[int]:
    """The places of the messages that go: the oldest blocks, until what stays counts at most `most`.

    The last `keep_last` messages stay, with the rest of an exchange that a cut there would part and the user message that
    they answer; so do the last message that says `prompt`, the user's last message, and the last block. An answer whose
    question went goes too.
    """
    blocks = _blocks_of(messages)
    stays = _stays(messages, blocks, prompt=prompt, keep_last=keep_last)
    sizes = [count(messages[start:end]) for start, end in blocks]
    size, gone = sum(sizes), set[int]()
    for number, one in enumerate(sizes):
        if size <= most and not _is_orphan(messages, blocks, gone, number):
            break
        if number not in stays:
            gone.add(number)
            size -= one
    return frozenset([index for number in gone for index in range(*blocks[number])])


def _blocks_of(messages: Sequence[Message]) -> list[tuple[int, int]]:
    """Where each block begins and ends."""
    blocks: list[tuple[int, int]] = []
    for index, message in enumerate(messages):
        if isinstance(message, ToolMessage) and blocks:
            blocks[-1] = (blocks[-1][0], index + 1)
        else:
            blocks.append((index, index + 1))
    return blocks


def _stays(messages: Sequence[Message], blocks: list[tuple[int, int]], *, prompt: str, keep_last: int) -> set[int]:
    """The numbers of the blocks that stay whatever their size."""
    stays: set[int] = {len(blocks) - 1}
    tail = len(messages) - keep_last
    stays |= {number for number, (_, end) in enumerate(blocks) if end > tail}
    said = [number for number, (start, _) in enumerate(blocks) if isinstance(messages[start], UserMessage)]
    stays |= set(said[-1:])
    stays |= set([number for number in said if messages[blocks[number][0]] == UserMessage(prompt)][-1:])
    first = min(stays)
    stays |= set([number for number in said if number <= first][-1:])
    return stays


def _is_orphan(messages: Sequence[Message], blocks: list[tuple[int, int]], gone: set[int], number: int) -> bool:
    """Whether a block would begin the conversation, and answers what went."""
    return len(gone) == number > 0 and not isinstance(messages[blocks[number][0]], UserMessage)


def clear_results(messages: Sequence[Message], *, max_chars: int, keep_last: int) -> tuple[Message, ...]:
    """Replace the texts of tool results that are longer than `max_chars` by a word that they were; the calls stay.

    Results among the last `keep_last` messages stay as they are, and those of the last exchange.
    """
    last = max([index for index, message in enumerate(messages) if isinstance(message, ToolMessage)], default=-1)
    tail = min(last, len(messages) - keep_last)
    return tuple([
        _mapped(message, lambda text: _cleared(text, max_chars)) if index < tail else message
        for index, message in enumerate(messages)
    ])


def _cleared(text: str, max_chars: int) -> str:
    marker = f"[A result of {len(text)} characters was removed to save room; call the tool again if it is needed.]"
    return marker if len(text) > max(max_chars, LEAST_CLEARED) else text


LEAST_CLEARED = 120
"""Characters up to which a result is not cleared: as many as the word that stands for it may take."""


def cut_results(messages: Sequence[Message], count: Count, *, most: int) -> tuple[Message, ...]:
    """Cut the texts of tool results in the middle, all to one length, until the whole counts at most `most`, if it can."""
    longest = max([len(r.text) for m in messages if isinstance(m, ToolMessage) for r in m.results], default=0)
    limit, shorter = longest, tuple(messages)
    while limit > LEAST_RESULT and count(shorter) > most:
        limit //= 2
        shorter = tuple([_mapped(message, lambda text: _cut(text, limit)) for message in messages])  # noqa: B023
    return shorter


LEAST_RESULT = 200
"""Characters of a result that `cut_results` cuts no further."""


def _cut(text: str, limit: int) -> str:
    cut = cut_middle(text, limit)
    return cut if len(cut) < len(text) else text


def _mapped(message: Message, change: Callable[[str], str]) -> Message:
    if not isinstance(message, ToolMessage):
        return message
    return ToolMessage(
        tuple([ToolResult(r.call, r.name, r.status, change(r.text), r.entered) for r in message.results])
    )


def transcript_of(messages: Sequence[Message], *, max_result_chars: int) -> str:
    """The conversation as plain text, for a reader who does not take part in it."""
    lines: list[str] = []
    for message in messages:
        match message:
            case UserMessage(text=text):
                lines.append(f"USER: {text}")
            case AssistantMessage(parts=parts):
                text = text_of(parts)
                lines += [f"ASSISTANT: {text}"] if text else []
                lines += [
                    f"CALL {call.name} {cut_middle(call.arguments, max_result_chars)}" for call in calls_of(parts)
                ]
            case ToolMessage(results=results):
                lines += [f"RESULT of {r.name} ({r.status}): {cut_middle(r.text, max_result_chars)}" for r in results]
    return "\n\n".join(lines)


def kept_faults(before: Sequence[Message], after: Sequence[Message], *, prompt: str) -> str | None:
    """What a shorter conversation lacks that it must have, or `None`. That calls have their results is held elsewhere (R2)."""
    if not isinstance(after[0], UserMessage) and after[0] != before[0]:
        return "it must begin with a user message"
    if isinstance(after[-1], AssistantMessage) and not isinstance(before[-1], AssistantMessage):
        return "it must not end with the assistant: the model is to answer it"
    said = [message for message in before if isinstance(message, UserMessage)]
    for text, what in (
        (prompt, "what the run was asked for"),
        (said[-1].text if said else "", "the user's last message"),
    ):
        if UserMessage(text) in said and UserMessage(text) not in after:
            return f"{what} is gone"
    calls = [call.id for message in after if isinstance(message, AssistantMessage) for call in calls_of(message.parts)]
    if len(set(calls)) != len(calls):
        return "two of its calls have the same id"
    return None
