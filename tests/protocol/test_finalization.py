"""The final call: when it is due, and what is said around it."""

from __future__ import annotations

import itertools

import pytest

from protocol.finalization import (
    built_in_instruction,
    decline_texts,
    fallback_text,
    final_call_due,
    flatten_tools,
)
from protocol.ledger import Grant
from protocol.limits import LimitName, Limits, LimitState
from protocol.result import StepResult
from protocol.run import RunState
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
from protocol.usage import NO_USAGE

TOOLS = LimitState("tool_iterations", 2, 2)
CALLS = LimitState("llm_calls", 5, 5)
BOOLS = (False, True)


def state_of(*, full: bool, unfinalized: frozenset[LimitName] = frozenset()) -> RunState:
    return RunState("r", "go", Limits(), window_max=2, window=2 if full else 1, unfinalized=set(unfinalized))


@pytest.mark.parametrize(
    ("full", "last", "tool_finalization", "llm_finalization", "gate"),
    list(itertools.product(BOOLS, BOOLS, BOOLS, BOOLS, BOOLS)),
)
def test_when_a_final_call_is_due(
    full: bool, last: bool, tool_finalization: bool, llm_finalization: bool, gate: bool
) -> None:
    """F3 and G1: the last call wins; a full window ends at once unless a gate can still be asked and go on."""
    grant = Grant(1, None, CALLS if last else None)
    due = final_call_due(
        state_of(full=full), grant, tool_finalization=tool_finalization, llm_finalization=llm_finalization, gate=gate
    )
    expected = {
        (True, True): CALLS if llm_finalization else (TOOLS if tool_finalization else None),
        (True, False): TOOLS if tool_finalization and not gate else None,
        (False, True): CALLS if llm_finalization else None,
        (False, False): None,
    }

    assert expected[full, last] == due


@pytest.mark.parametrize(
    ("failed", "expected"),
    [({"llm_calls"}, TOOLS), ({"tool_iterations"}, CALLS), ({"llm_calls", "tool_iterations"}, None)],
)
def test_a_finalization_that_failed_is_off(failed: set[LimitName], expected: LimitState | None) -> None:
    """Where its function failed, the run goes on as if that one had never been asked for (F2)."""
    state = state_of(full=True, unfinalized=frozenset(failed))
    due = final_call_due(state, Grant(1, None, CALLS), tool_finalization=True, llm_finalization=True, gate=False)

    assert expected == due


def test_without_a_window_nothing_is_full() -> None:
    """A run without a limit of tool rounds has no final call for it."""
    state = RunState("r", "go", Limits(), window_max=None, window=99)

    assert None is final_call_due(state, Grant(1), tool_finalization=True, llm_finalization=True, gate=False)


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        (TOOLS, "the limit of 2 rounds of tool calls"),
        (CALLS, "the limit of 5 model calls"),
        (LimitState("tool_calls", 3, 3), "the limit of 3 tool calls"),
        (LimitState("total_tokens", 1000, 1200), "the limit of 1,000 tokens"),
        (LimitState("cost", 0.25, 0.3), "the limit of 0.25 US dollars"),
        (LimitState("wall_clock", 1.5, 1.6), "the limit of 1.5 seconds"),
    ],
)
def test_the_built_in_text_names_the_limit(limit: LimitState, told: str) -> None:
    """The model is told which limit, how much, and that it must answer now without tools."""
    text = built_in_instruction(limit)

    assert told in text
    assert "Answer now" in text
    assert "no tool can be called" in text


@pytest.mark.parametrize(
    ("timed_out", "message", "expected"),
    [
        (
            False,
            None,
            (
                "Tool call not run: iteration limit reached, continuation declined.",
                "System notification: Maximum iteration limit reached. Continuation declined.",
            ),
        ),
        (
            True,
            None,
            (
                "Tool call not run: iteration limit reached, continuation request timed out.",
                "System notification: Continuation request timed out.",
            ),
        ),
        (
            False,
            "That is enough.",
            (
                "Tool call not run: iteration limit reached, continuation declined.",
                "System notification: That is enough.",
            ),
        ),
    ],
)
def test_what_the_model_reads_after_no(timed_out: bool, message: str | None, expected: tuple[str, str]) -> None:
    """The texts of G5, word for word; the decision's message stands in the notification alone."""
    assert expected == decline_texts(TOOLS, timed_out=timed_out, message=message)


def test_another_limit_puts_its_name() -> None:
    """The same words, with the other limit's name for `iteration`."""
    assert (
        "Tool call not run: llm call limit reached, continuation declined.",
        "System notification: Maximum llm call limit reached. Continuation declined.",
    ) == decline_texts(CALLS, timed_out=False, message=None)


def step(*results: ToolResult) -> StepResult:
    return StepResult(0, "", "", (), results, "tool_calls", NO_USAGE, 0.0)


def result(text: str, status: str = "ok") -> ToolResult:
    return ToolResult("c", "look", status, text, True)  # type: ignore[arg-type]


def test_the_fallback_is_made_of_results() -> None:
    """Deterministic: the limit, and what the tools had found, each in one line; failures are no findings."""
    text = fallback_text(TOOLS, [step(result("a\nb"), result("broken", "error")), step(result("c"))])

    assert (
        "The limit of 2 rounds of tool calls was reached before an answer was found.\n"
        "The last tool results:\n- look: a b\n- look: c"
    ) == text


def test_a_fallback_without_results_says_so() -> None:
    """Nothing is made up."""
    text = fallback_text(CALLS, [step(result("broken", "error"))])

    assert ("The limit of 5 model calls was reached before an answer was found.\nNo tool had given a result.") == text


def test_a_fallback_is_bounded() -> None:
    """The last ten results, two hundred characters of each."""
    text = fallback_text(TOOLS, [step(result(f"{number} " + "x" * 500)) for number in range(30)])
    lines = text.splitlines()[2:]

    assert [f"- look: {number} " for number in range(20, 30)] == [line[: len("- look: 00 ")] for line in lines]
    assert {len("- look: ") + 200 + len("...")} == {len(line) for line in lines}


def test_flattening_keeps_what_was_said() -> None:
    """For a provider that takes no tool blocks: texts as they were, results as text, and no call left."""
    call = ToolCall("a", "look", "{}")
    messages: list[Message] = [
        UserMessage("go"),
        AssistantMessage((TextPart("hm"), ReasoningPart("think"), call, OpaquePart("x", "{}", "a"))),
        ToolMessage((ToolResult("a", "look", "ok", "1", True), ToolResult("b", "read", "error", "2"))),
        AssistantMessage((call,)),
        AssistantMessage((TextPart("half"),), partial=True),
    ]

    assert [
        UserMessage("go"),
        AssistantMessage((TextPart("hm"),)),
        UserMessage("[Result of look]\n1\n\n[Result of read]\n2"),
        AssistantMessage((TextPart("half"),), partial=True),
    ] == flatten_tools(messages)
