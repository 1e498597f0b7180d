"""The conversation as stored: grown by whole exchanges, with one result for every call; only a compaction replaces it.

Rule R2 is one pure function, `first_fault`. On a send only what was appended since the last check is looked at
(a full check per step makes a run quadratic); on a load everything is, and `repair` mends what it finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from .footprint import footprint_of
from .normalise import normalise
from .text import clean
from .turns import AssistantMessage, Message, ToolCall, ToolMessage, ToolResult, Turn, UserMessage, calls_of
from .views import View

__all__ = ("History", "first_fault", "repair")


@attrs.define(eq=False)
class History:
    """An agent's messages. One writer; readers take a `view()`."""

    _messages: list[Message] = attrs.field(factory=list[Message])
    _ids: set[str] = attrs.field(factory=set[str])
    _checked: int = 0
    rewrites: int = 0
    """How often messages went (`take_partial`, `replace`): who writes the history down begins anew."""
    _weighed: int = 0
    """How many messages are in `_bytes`."""
    _bytes: int = 0

    @classmethod
    def load(cls, messages: Iterable[Message]) -> History:
        """Make a history from stored messages, repaired so that rule R2 holds."""
        history = cls()
        for message in repair(list(messages)):
            history._append(message)
        return history

    def __len__(self) -> int:
        return len(self._messages)

    def view(self) -> View[Message]:
        """The messages up to now; later appends do not show in it."""
        return View(self._messages)

    @property
    def bytes(self) -> int:
        """What it takes of memory, by estimate. Each message is looked at once, and only where somebody asks."""
        messages = self._messages
        for index in range(self._weighed, len(messages)):
            self._bytes += footprint_of(messages[index])
        self._weighed = len(messages)
        return self._bytes

    def knows_call(self, call: str) -> bool:
        """Whether a call with this id is already stored."""
        return call in self._ids

    def append(self, message: UserMessage | AssistantMessage) -> None:
        """Append a message that asks for no tool: a prompt, steering, or an answer."""
        if isinstance(message, AssistantMessage) and calls_of(message.parts):
            raise ValueError("an assistant message with tool calls is appended with its results: append_exchange()")
        self._append(message)

    def append_exchange(
        self, assistant: AssistantMessage, results: Sequence[ToolResult], message: str | None = None
    ) -> None:
        """Append an assistant turn, all its results and the decision's message, or nothing (R3).

        Raises `ValueError` if the results do not answer exactly the calls, in call order.
        """
        calls = [part.id for part in assistant.parts if type(part) is ToolCall]
        if not calls or calls != [result.call for result in results]:
            raise ValueError(f"results {[result.call for result in results]} do not answer the calls {calls}")
        messages = self._messages
        if self._checked == len(messages) and "" not in calls and (len(calls) == 1 or len(set(calls)) == len(calls)):
            self._checked += 2  # that is all there is to check
        messages.append(assistant)
        self._ids.update(calls)
        messages.append(ToolMessage(tuple(results)))
        if message is not None:
            self._messages.append(UserMessage(message))

    @property
    def partial(self) -> AssistantMessage | None:
        """The message at the end, if it is an answer that was cut."""
        last = self._messages[-1] if self._messages else None
        return last if isinstance(last, AssistantMessage) and last.partial else None

    def take_partial(self) -> None:
        """Take the partial answer at the end back in hand: whoever does it appends it again, with more of it or as it was.

        No reader sees it: views made before go on to show it.
        """
        partial = self.partial
        if partial is not None:
            if self._weighed == len(self._messages):
                self._weighed -= 1
                self._bytes -= footprint_of(partial)
            self._messages = self._messages[:-1]
            self.rewrites += 1
            self._checked = min(self._checked, len(self._messages))

    def replace(self, messages: Sequence[Message]) -> None:
        """Go on with these messages in place of all there are: the conversation was compacted. One step, no await.

        Views made before go on to show what was there, and ids of calls that went stay known. Raises `ValueError` for
        messages that break rule R2, and changes nothing then.
        """
        fault = first_fault(messages)
        if fault is not None:
            raise ValueError(f"the history would be broken: {fault}")
        self._messages = []
        self._weighed = self._bytes = 0
        for message in messages:
            self._append(message)
        self.rewrites += 1
        self._checked = len(self._messages)

    def check(self) -> None:
        """Check what was appended since the last check. Raises `ValueError` naming the first fault."""
        fault = first_fault(self._messages, self._checked)
        if fault is not None:
            raise ValueError(f"the history is broken: {fault}")
        self._checked = len(self._messages)

    def _append(self, message: Message) -> None:
        self._messages.append(message)
        if type(message) is AssistantMessage:
            for part in message.parts:
                if type(part) is ToolCall:
                    self._ids.add(part.id)


def first_fault(messages: Sequence[Message], start: int = 0) -> str | None:
    """Name the first place from `start` on where a call lacks its one result directly after it (R2), or `None`."""
    end = len(messages)
    answer_at = -1
    for index in range(start, end):
        message = messages[index]
        if isinstance(message, ToolMessage):
            if index == answer_at:
                continue
            before = messages[index - 1] if index else None
            if not isinstance(before, AssistantMessage) or not calls_of(before.parts):
                return f"message {index} holds results, but no call stands directly before it"
        elif isinstance(message, AssistantMessage):
            calls = [call.id for call in calls_of(message.parts)]
            if not calls:
                continue
            if "" in calls or (len(calls) > 1 and len(set(calls)) != len(calls)):
                return f"message {index} has empty or repeated call ids"
            after = messages[index + 1] if index + 1 < end else None
            answered = [result.call for result in after.results] if isinstance(after, ToolMessage) else []
            if answered != calls:
                return f"message {index} has the calls {calls}, answered are {answered}"
            answer_at = index + 1
    return None


def repair(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with every call answered once, in order, and no result without its call. Idempotent.

    A call without a result is answered `interrupted`; one that stands behind something else, but before the next turn
    of the model, is moved to its call; a result without a call is dropped; ids that are empty or
    used before are made anew; messages with nothing in them are dropped, lone surrogates replaced.
    """
    mended: list[Message] = []
    used: set[str] = set()
    index = 0
    while index < len(messages):
        message = messages[index]
        index += 1
        match message:
            case UserMessage(text=text):
                if text:
                    mended.append(UserMessage(clean(text)))
            case ToolMessage():
                pass  # results are taken with their call below; the rest are orphans
            case AssistantMessage():
                _mend_assistant(message, _results_after(messages, index), used, mended)
    return mended


def _results_after(messages: Sequence[Message], start: int) -> dict[str, list[ToolResult]]:
    """The results that stand before the next turn of the model, by call: what was said in between comes behind them."""
    found: dict[str, list[ToolResult]] = {}
    for place in range(start, len(messages)):
        message = messages[place]
        if isinstance(message, AssistantMessage):
            break
        if isinstance(message, ToolMessage):
            for result in message.results:
                found.setdefault(result.call, []).append(result)
    return found


def _mend_assistant(
    message: AssistantMessage, found: dict[str, list[ToolResult]], used: set[str], mended: list[Message]
) -> None:
    asked = calls_of(message.parts)
    turn, _ = normalise(Turn(message.parts), knows_call=used.__contains__, max_calls=len(asked))
    calls = turn.calls
    used.update([call.id for call in calls])
    answers: list[ToolResult] = []
    for before, call in zip(asked, calls, strict=True):
        results = found.get(before.id)
        if results:
            result = results.pop(0)
            answers.append(ToolResult(call.id, call.name, result.status, clean(result.text), result.entered))
        else:
            answers.append(ToolResult(call.id, call.name, "interrupted", INTERRUPTED_TEXT, True))
    if calls or turn.text:
        mended.append(AssistantMessage(turn.parts, message.partial))
    if answers:
        mended.append(ToolMessage(tuple(answers)))


INTERRUPTED_TEXT = "Interrupted before it ended: it may have had an effect."
"""The result of a call whose body was entered and did not come to its end."""
