"""What must hold of the cases about dangling calls and the order of messages, beyond their checks."""

from __future__ import annotations

from protocol.errors import RunFailedError
from protocol.events import MessageDelivered, ToolCallDelta, ToolFinished, ToolStarted
from protocol.turns import AssistantMessage, ToolMessage, UserMessage

from .claims import answered, called, claim, said
from .program import CASES
from .runner import run_case


@claim("DNG-01", "the second run answers 'hello again'")
def the_session_lives() -> None:
    (came,) = run_case("DNG-01")
    first, second = came.played

    assert ("run_cancelled", "run_finished") == (first.types[-1], second.types[-1])
    assert ("hello again", True) == (second.result.text, second.result.answered)
    assert [("c1", "interrupted")] == answered(second.asked[-1].messages)
    assert ["go", "hi"] == said(second.messages)


@claim("DNG-04", "no follow-up request is sent for the half-received call")
def nothing_follows() -> None:
    (came,) = run_case("DNG-04")

    assert 1 == len(came.asked)
    assert isinstance(came.last.error, RunFailedError)
    assert 1 == len(came.last.all(ToolCallDelta))


@claim("DNG-04", "c1 is absent from stored history or has a not-run result")
def the_half_call_is_gone() -> None:
    (came,) = run_case("DNG-04")
    last = came.last.messages[-1]

    assert [] == called(came.last.messages)
    assert isinstance(last, AssistantMessage)
    assert last.partial
    assert {} == came.tool_runs


@claim("ORD-01", "order in request 2: assistant(c1), result(c1), then the steering text")
def steering_comes_after_the_result() -> None:
    (came,) = run_case("ORD-01")
    second = came.asked[1].messages

    assert [UserMessage, AssistantMessage, ToolMessage, UserMessage] == [type(message) for message in second]
    assert (["c1"], [("c1", "ok")]) == (called(second), answered(second))
    assert UserMessage("in docx please") == second[-1]


@claim("ORD-01", "the steering text occurs once")
def steering_occurs_once() -> None:
    (came,) = run_case("ORD-01")

    assert 1 == said(came.last.messages).count("in docx please")
    assert 1 == repr(came.asked[-1].conversation).count("in docx please")
    assert 1 == len(came.last.all(MessageDelivered))


@claim("ORD-06", "a, already started, is not cancelled by a plain steer")
def steering_cancels_nothing() -> None:
    (came,) = run_case("ORD-06")
    (end,) = came.results["a"]

    assert ("ok", "written") == (end.status, end.text)


@claim("ORD-06", "b is either run or answered not-run, as documented, and the policy is the same every time")
def what_was_asked_for_runs() -> None:
    ends = []
    for order in range(3):
        (came,) = run_case("ORD-06", order=order)
        (end,) = came.results["b"]
        ends.append((end.status, end.text))

    assert [("ok", "written")] * 3 == ends


@claim("ORD-06", "the steer is delivered after both results")
def steering_waits_for_both() -> None:
    (came,) = run_case("ORD-06")
    kinds = [type(e) for e in came.last.events if isinstance(e, (ToolStarted, ToolFinished, MessageDelivered))]
    second = came.asked[1].messages

    assert [ToolStarted, ToolFinished, ToolStarted, ToolFinished, MessageDelivered] == kinds
    assert isinstance(second[-2], ToolMessage)
    assert UserMessage("also say hi") == second[-1]


@claim(
    "DNG-07",
    "the cut moves to a pair-safe boundary: A and B are both kept with both results or both removed",
)
def a_cut_parts_no_call_from_its_result() -> None:
    """Wherever the cut falls: 2 messages is between the calls and their results, which stand in one message."""
    compact = CASES["DNG-07"]["input"]["actions"][0]["do"]
    begun: dict[int, tuple[list[str], list[tuple[str, str]]]] = {}
    for keep in range(5):
        told = compact.replace("keeping the last 2 messages", f"keeping the last {keep} messages")
        (came,) = run_case("DNG-07", "remote", ("actions.0.do", told))
        second = came.asked[2].messages
        begun[keep] = (called(second), answered(second))

        assert () == came.faults
        assert ("s2", True) == (came.last.result.text, came.last.result.answered)
        assert "go" == said(second)[-1]
    both = (["A", "B"], [("A", "ok"), ("B", "ok")])

    assert {0: ([], []), 1: ([], []), 2: both, 3: both, 4: both} == begun
