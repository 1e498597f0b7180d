"""What must hold of the cases about limits, beyond their checks."""

from __future__ import annotations

from protocol.events import LimitReached, RunStarted, StepFinished, ToolStarted
from protocol.limits import LimitState
from protocol.turns import AssistantMessage, text_of

from .claims import answered, called, claim, results_in, said
from .program import Gate
from .runner import run_case


@claim("LIM-01", "no request is sent after the one that produced FINAL")
def final_is_the_last_request() -> None:
    (came,) = run_case("LIM-01")
    last = came.last.messages[-1]

    assert isinstance(last, AssistantMessage)
    assert "FINAL" == text_of(last.parts)
    assert came.asked[-1].messages == came.last.messages[:-1]
    assert not came.asked[-1].tools_on


@claim("LIM-01", "exactly one terminal event")
def one_end() -> None:
    (came,) = run_case("LIM-01")
    ends = [name for name in came.last.types if name in {"run_finished", "run_failed", "run_cancelled"}]

    assert ["run_finished"] == ends


@claim(
    "LIM-03",
    "run 1: outcome answer 'done', 3 model calls, no limit event (using exactly the allowance is not an overrun)",
)
def the_allowance_is_no_overrun() -> None:
    first, _ = run_case("LIM-03")

    assert ("answer", "done", 3) == (first.outcome, first.last.result.text, len(first.asked))
    assert [] == first.last.all(LimitReached)
    assert first.last.result.limit is None


@claim(
    "LIM-03",
    "run 2: tool t runs exactly 2 times, call c is not executed, outcome limit, one limit event carrying used=2 and max=2",
)
def one_more_is_an_overrun() -> None:
    _, second = run_case("LIM-03")

    assert {"t": 2} == second.tool_runs
    assert ["a", "b"] == [event.call for event in second.last.all(ToolStarted)]
    assert ("c", "not_run") == answered(second.last.messages)[-1]
    assert "limit" == second.outcome
    assert LimitState("tool_iterations", 2, 2) == second.last.only(LimitReached).limit


@claim("LIM-04", "child makes its 3 iterations and answers 'child done' with no limit event")
def the_child_has_its_own_window() -> None:
    (came,) = run_case("LIM-04")
    (child,) = [event.run for event in came.stream if isinstance(event, RunStarted) and event.agent == "child"]
    inner = [event for event in came.stream if event.run == child]
    (result,) = came.results["p3"]

    assert ["k1", "k2", "k3"] == [event.call for event in inner if isinstance(event, ToolStarted)]
    assert [] == [event for event in inner if isinstance(event, LimitReached)]
    assert {("child",)} == {event.agent_path for event in inner}
    assert ("ok", "child done") == (result.status, result.text)


@claim("LIM-04", "parent counts the child call as one iteration, so parent also has no limit event")
def the_parent_counts_one() -> None:
    (came,) = run_case("LIM-04")

    assert 3 == came.last.result.counters.tool_iterations
    assert [] == [event for event in came.stream if isinstance(event, LimitReached)]
    assert came.last.result.limit is None


@claim("LIM-06", "no limit prompt in either run")
def nobody_is_asked(gate: Gate) -> None:
    (came,) = run_case("LIM-06", gate)

    assert [] == came.prompts
    assert [] == [event for event in came.stream if isinstance(event, LimitReached)]


@claim("LIM-06", "answers are 'one' then 'two'")
def both_answer(gate: Gate) -> None:
    (came,) = run_case("LIM-06", gate)

    assert ["one", "two"] == [played.result.text for played in came.played]
    assert ["first", "second"] == said(came.last.messages)


@claim("LIM-12", "the first request offers tool t")
def tools_are_offered_first() -> None:
    (came,) = run_case("LIM-12")

    assert (("t",), True) == (came.asked[0].tools, came.asked[0].tools_on)


@claim("LIM-12", "the finalization request offers no tools or forces tool choice to none")
def tools_are_off_last() -> None:
    (came,) = run_case("LIM-12")
    final = came.asked[-1]

    assert not final.tools or final.tool_choice == "none"
    assert final.tail


@claim("LIM-15", "the first request offers t")
def a_limit_of_one_offers_tools() -> None:
    (came,) = run_case("LIM-15")

    assert came.asked[0].tools_on
    assert "t" in came.asked[0].tools


@claim("LIM-18", "if the second request was made, the result text also contains 'and more'")
def all_prose_is_kept() -> None:
    (came,) = run_case("LIM-18")

    assert 2 == len(came.asked)
    assert "Half the answer\n\nand more" == came.last.result.text


@claim("LIM-18", "outcome is limit with a result object, not a raised exception that hides the text")
def the_limit_is_a_result() -> None:
    (came,) = run_case("LIM-18")

    assert came.last.error is None
    assert came.last.outcome is not None
    assert ("limit", LimitState("tool_iterations", 1, 1)) == (came.outcome, came.last.result.limit)


@claim("LIM-18", "c2, if seen, is not executed and does not stay unanswered")
def the_last_call_is_answered() -> None:
    (came,) = run_case("LIM-18")

    assert [("c1", "ok"), ("c2", "not_run")] == answered(came.last.messages)
    assert ["c1", "c2"] == called(came.last.messages)
    assert ["c1"] == [event.call for event in came.last.all(ToolStarted)]
    assert 2 == len(came.last.all(StepFinished))


@claim(
    "LIM-10",
    "the result of p1 is marked incomplete/limit (not success) in both the event and the text the parent model sees",
)
def a_child_at_its_limit_is_no_success() -> None:
    (came,) = run_case("LIM-10")
    (end,) = came.results["p1"]
    (told,) = results_in(came.asked[1].messages)

    assert ("p1", "error", "error") == (told.call, told.status, end.status)
    assert end.text == told.text
    assert "came to no answer: its limit of 1 rounds of tool calls was reached" in told.text
    assert ["k2"] == [id for id, ends in came.results.items() if "not_run" in {result.status for result in ends}]


@claim("LIM-07", "at most 8 executions of t")
def one_turn_cannot_fan_out() -> None:
    (came,) = run_case("LIM-07")

    assert {"t": 8} == came.tool_runs
    assert [("t", {"n": number}) for number in range(8)] == sorted(came.tools.received, key=repr)
    assert LimitState("tool_calls", 8, 8) == came.last.only(LimitReached).limit


@claim(
    "LIM-07",
    "every one of the 40 ids has exactly one result before the next model request (unexecuted ones say they were not run), or the whole turn is discarded as a unit",
)
def all_calls_of_the_turn_are_answered() -> None:
    """The run ends at the limit; with a final call there is a next request."""
    (came,) = run_case("LIM-07")
    (final,) = run_case("LIM-07", "remote", ("config.on_limit", "finalize"))
    expected = [(f"c{number}", "ok" if number < 8 else "not_run") for number in range(40)]

    assert (1, 2) == (len(came.asked), len(final.asked))
    assert expected == answered(came.messages) == answered(final.asked[1].messages)
    assert all("not run" in result.text.lower() for result in results_in(came.messages)[8:])
    assert () == final.faults
    assert ("end", {"t": 8}) == (final.last.result.text, final.tool_runs)


@claim("LIM-14", "the run ends by itself with a terminal event; it does not depend on the model giving up")
def refused_calls_do_not_keep_a_run_going() -> None:
    """The model would give up after 50 turns."""
    (came,) = run_case("LIM-14")
    (stops,) = run_case("LIM-14", "remote", ("config.on_limit", "stop"))

    assert (["run_finished"], 3) == ([end.type for end in came.ends], len(came.asked))
    assert [True, True, False] == [asked.tools_on for asked in came.asked]
    assert ["run_finished"] == [end.type for end in stops.ends]
    assert (False, False) == (came.last.result.answered, stops.last.result.answered)
    assert LimitState("tool_calls", 2, 2) == came.last.result.limit == stops.last.result.limit
    assert {"t": 2} == stops.tool_runs
    assert "gave up" not in came.last.result.text
