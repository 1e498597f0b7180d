"""What must hold of the cases about turns that go on by themselves, beyond their checks."""

from __future__ import annotations

from typing import Any

from protocol.events import HopStarted, StepFinished
from protocol.limits import LimitState
from protocol.turns import AssistantMessage, TextPart, UserMessage

from .claims import claim
from .program import Change, input_of
from .runner import run_case

AND_ANOTHER: Change = ("actions", [{"when": "run_ended", "do": "user_message", "text": "and?"}])
"""The user says something when the run has ended."""
TURNS: list[Any] = input_of("TRU-07")["turns"]


def words(messages: Any) -> list[str]:
    """The text of each assistant message."""
    return [
        "".join(part.text for part in message.parts if isinstance(part, TextPart))
        for message in messages
        if isinstance(message, AssistantMessage)
    ]


@claim(
    "TRU-05",
    "continuation is not used when there is no visible text to continue: at most one changed retry (for example less reasoning or a larger cap)",
)
def reasoning_is_not_continued() -> None:
    (came,) = run_case("TRU-05")

    assert ([], 1) == (came.last.all(HopStarted), len(came.asked))


@claim(
    "TRU-05",
    "outcome truncated; the message names reasoning/token cap; no empty assistant message in later requests",
)
def reasoning_that_used_up_the_cap() -> None:
    (came,) = run_case("TRU-05")
    (asked_again,) = run_case("TRU-05", "remote", AND_ANOTHER)

    assert ("truncated", "length") == (came.outcome, came.last.result.finish_reason)
    assert "reasoning used up the cap on output tokens before any visible text" == came.last.result.stop_reason
    assert (UserMessage("go"), UserMessage("and?")) == asked_again.asked[1].messages
    assert () == asked_again.faults


@claim("TRU-07", "nothing is inserted or trimmed at the seams")
def the_seams_are_bare() -> None:
    (came,) = run_case("TRU-07")

    assert "".join(turn["text"] for turn in TURNS) == came.last.result.text
    assert 1 == len(came.last.all(StepFinished))


@claim("TRU-07", "the next user turn's history holds one assistant message with the joined text")
def the_history_holds_one_message() -> None:
    (came,) = run_case("TRU-07", "remote", AND_ANOTHER, ("turns", [*TURNS, {"text": "ok"}]))

    assert ["The answer is forty-two, and that is all."] == words(came.asked[3].messages)
    assert None is came.asked[3].resume


@claim(
    "TRU-09",
    "a turn with an executed tool call resets the consecutive count (variant: length, length, tool call, length, length, stop is allowed)",
)
def each_turn_has_its_own_count() -> None:
    bla = {"text": "bla ", "finish": "length"}
    turns = [bla, bla, {"text": "look", "calls": [["a", "t", {}]]}, bla, bla, {"text": "end"}]
    changes: list[Change] = [("turns", turns), ("tools", {"t": "return 1"}), ("config.auto_continue_max", 2)]
    (came,) = run_case("TRU-09", "remote", *changes)

    assert ("answer", "bla bla end", {"t": 1}, 6) == (
        came.outcome,
        came.last.result.text,
        came.tool_runs,
        len(came.asked),
    )
    assert ["bla bla look", "bla bla end"] == [step.text for step in came.last.result.steps]


@claim(
    "BUD-14",
    "helper calls (summary), the finalization call and automatic continuations all count; the 4th request is refused before sending",
)
def no_path_passes_the_counter() -> None:
    (came,) = run_case("BUD-14")
    (enough,) = run_case("BUD-14", "remote", ("config.max_llm_calls", 4))
    tails = [asked.tail is not None for asked in came.asked]

    assert (["Summarise."], [False, False, True]) == (came.asked[1].texts, tails)
    assert ("half ", "length", False) == (
        came.last.result.text,
        came.last.result.finish_reason,
        came.last.result.answered,
    )
    assert LimitState("tool_iterations", 1, 1) == came.last.result.limit
    assert (4, "half never", True) == (
        len(enough.asked),
        enough.last.result.text,
        enough.last.result.answered,
    )
