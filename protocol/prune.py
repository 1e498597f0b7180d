"""Cutting a conversation to size, and the calls at its end that still wait: both know where exchanges begin and end.

The cut moves *outwards*: an exchange that it would part is kept whole. Dropping it would take away more than was
asked for, and what stands at the end, the results that the model has just waited for, is what it needs most.
"""

from __future__ import annotations

from collections.abc import Sequence

from .errors import SpecError
from .turns import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage, calls_of

__all__ = ("prune_messages", "unanswered_calls")


def prune_messages(messages: Sequence[Message], *, keep_last: int, keep_first: int = 0) -> tuple[Message, ...]:
    """Keep the last messages, and the first ones if asked for, without parting a call from its result.

    Both numbers count messages and are the least that is kept. On top of them come: the rest of an exchange that
    a cut would part, and, where the kept end would begin with the assistant, the last user message before it, which
    is the one that it works for. That is three messages at most, if every call has its one result. The result then
    keeps rule R2 if `messages` does, and never begins with results: those without a call in front are left out.

    Raises `SpecError` for a number that is no integer of 0 or more.
    """
    for name, value in (("keep_last", keep_last), ("keep_first", keep_first)):
        if type(value) is not int or value < 0:
            raise SpecError(f"prune_messages({name}=) must be an integer >= 0; it is {value!r}")
    count = len(messages)
    head = min(keep_first, count)
    while 0 < head < count and isinstance(messages[head], ToolMessage):
        head += 1
    tail = max(count - keep_last, 0)
    while 0 < tail < count and isinstance(messages[tail], ToolMessage):
        tail -= 1
    tail = max(head, tail)
    kept = [*messages[:head], *_prompt_of(messages, head, tail), *messages[tail:]]
    orphans = 0
    while orphans < len(kept) and isinstance(kept[orphans], ToolMessage):
        orphans += 1
    return tuple(kept[orphans:])


def _prompt_of(messages: Sequence[Message], head: int, tail: int) -> Sequence[Message]:
    """The user message that the end from `tail` on works for, if it is needed and not among the first `head`."""
    if tail < len(messages) and isinstance(messages[tail], AssistantMessage):
        for index in range(tail - 1, head - 1, -1):
            if isinstance(messages[index], UserMessage):
                return messages[index : index + 1]
    return ()


def unanswered_calls(messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    """The calls at the end of a conversation that have no result yet, in order; their results make the exchange whole.

    It is read from the end, up to a turn that waits for nothing or a user message: a call before that has been passed
    over, no result can stand directly after its turn any more, and `protocol.history.repair` answers it.
    """
    waiting: list[ToolCall] = []
    answered: list[str] = []
    for message in reversed(messages):
        match message:
            case ToolMessage(results=results):
                answered += [result.call for result in results]
            case UserMessage():
                break
            case AssistantMessage(parts=parts):
                missing: list[ToolCall] = []
                for call in calls_of(parts):
                    if call.id in answered:
                        answered.remove(call.id)
                    else:
                        missing.append(call)
                if not missing:
                    break
                waiting[:0] = missing
    return tuple(waiting)
