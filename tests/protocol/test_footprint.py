"""What a conversation takes of memory: counted once per message, and never far from the truth."""

from __future__ import annotations

import tracemalloc

from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.footprint import footprint_of
from protocol.history import History
from protocol.turns import (
    AssistantMessage,
    Message,
    OpaquePart,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)

HALF = AssistantMessage((TextPart("half"),), partial=True)
DEEDS = st.sampled_from(["say", "exchange", "half", "take back", "weigh"])


def exchange(number: int, text: str) -> tuple[AssistantMessage, tuple[ToolResult, ...]]:
    call = ToolCall(f"c{number}", "read", '{"path":"a"}')
    return AssistantMessage((ReasoningPart("so"), TextPart(text), call)), (
        ToolResult(call.id, "read", "ok", text, True),
    )


@given(deeds=st.lists(DEEDS, max_size=40))
@settings(deadline=None, derandomize=True, database=None)
def test_it_is_the_sum_of_its_messages(deeds: list[str]) -> None:
    """However it grew, whatever was taken back, and whenever somebody asked."""
    history = History()
    for number, deed in enumerate(deeds):
        match deed:
            case "say":
                history.append(UserMessage("x" * number))
            case "exchange":
                history.append_exchange(*exchange(number, "y" * number))
            case "half":
                history.append(HALF)
            case "take back":
                history.take_partial()
            case _:
                assert history.bytes >= 0

    assert sum(map(footprint_of, history.view())) == history.bytes


def test_every_text_counts() -> None:
    """In bytes: what the model said, thought and asked for, what came of it, and items that only the vendor reads."""
    texts = {"user": 10, "text": 20, "reasoning": 30, "arguments": 40, "data": 50, "result": 60, "signature": 70}

    def of(sizes: dict[str, int]) -> int:
        messages: list[Message] = [
            UserMessage("é" * sizes["user"]),
            AssistantMessage((
                TextPart("x" * sizes["text"]),
                ReasoningPart("x" * sizes["reasoning"], "x" * sizes["signature"]),
                ToolCall("c", "t", "x" * sizes["arguments"]),
                OpaquePart("f", "x" * sizes["data"]),
            )),
            ToolMessage((ToolResult("c", "t", "ok", "x" * sizes["result"]),)),
        ]
        return sum(map(footprint_of, messages))

    assert sum(texts.values()) + texts["user"] == of(texts) - of(dict.fromkeys(texts, 0))


def test_it_is_about_what_they_take() -> None:
    """Within a factor of two of what the interpreter says, for messages that are mostly objects."""
    history = History()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(2000):
            history.append(UserMessage(f"do number {number}"))
            history.append_exchange(*exchange(number, f"the answer is {number}"))
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()

    assert 0.5 < history.bytes / taken < 2
