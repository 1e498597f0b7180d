"""What an answer of the gate does to the pending calls, the history and the next request (G3-G6)."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from actors import ContinuationResponse, StopState
from actors.models.scripted import call, reply
from protocol.errors import ContinuationProviderError, InvalidDecision
from protocol.events import ContinuationRequired, ContinuationResolved, StepStarted, ToolFinished
from protocol.limits import LimitState
from protocol.turns import AssistantMessage, Message, TextPart, ToolMessage, ToolResult, UserMessage
from tests.support.play import Played, play
from tests.support.scripts import Bench, calls_while_on
from tests.support.specs import APPROVE, DECLINE, Answers, agent

DISCARDED = "Tool execution canceled by user during continuation."


def three_calls(*answers: ContinuationResponse, bench: Bench | None = None, **options: object) -> Played:
    """One round, then a turn with the calls `x`, `y` and `z` at a full window of 1, then an answer."""
    script = [
        reply("", call("t", {}, id="a")),
        reply("three", call("t", {}, id="x"), call("t", {}, id="y"), call("t", {}, id="z")),
        "done",
    ]
    tool = (bench or Bench()).tool()
    return play(agent(script, tool, max_tool_iterations=1, continuation=Answers(*answers), **options))


def results(messages: Collection[Message]) -> dict[str, tuple[str, str]]:
    return {
        result.call: (result.status, result.text)
        for message in messages
        if isinstance(message, ToolMessage)
        for result in message.results
    }


def test_approve_runs_the_pending_calls_as_round_one_of_a_new_window() -> None:
    """G4: the pending calls run, the window restarts and only the window does."""
    bench = Bench()
    played = three_calls(APPROVE, bench=bench)
    result = played.result

    assert {"t": 4} == bench.runs
    assert {"a": ("ok", "1"), "x": ("ok", "1"), "y": ("ok", "1"), "z": ("ok", "1")} == results(played.messages)
    assert (2, 1, 3) == (result.counters.tool_iterations, result.counters.window, result.counters.llm_calls)
    assert ("done", True, "stop", None) == (result.text, result.answered, result.finish_reason, result.limit)
    resolved = played.only(ContinuationResolved)
    assert ("approved", "provider", 1, None, ()) == (
        resolved.outcome,
        resolved.by,
        resolved.granted,
        resolved.effect,
        resolved.discarded,
    )


def test_approve_without_a_message_adds_no_word() -> None:
    """G6: nothing is said in a person's name unless there is a message."""
    played = three_calls(APPROVE)

    assert [["go"]] * 3 == [asked.texts for asked in played.asked]


def test_the_message_of_an_approval_stands_after_the_results() -> None:
    """G6: on approve the message is appended after the results, in the same exchange, once."""
    played = three_calls(ContinuationResponse("approve", message="be brief"))
    last = played.asked[-1].messages

    assert isinstance(last[-2], ToolMessage)
    assert UserMessage("be brief") == last[-1]
    assert ["go", "be brief"] == played.asked[-1].texts


@pytest.mark.parametrize("tool_message", [None, "not today"])
def test_all_discarded_is_no_round_and_the_model_is_called_again(tool_message: str | None) -> None:
    """G4: every pending call gets an error result with the default text or the `tool_message`; no body is entered."""
    bench = Bench()
    response = ContinuationResponse(
        "approve", discard_tool_calls=True, tool_message=tool_message, message="try without"
    )
    played = three_calls(response, bench=bench)
    text = tool_message or DISCARDED

    assert {"t": 1} == bench.runs
    assert {"x": ("discarded", text), "y": ("discarded", text), "z": ("discarded", text)}.items() <= results(
        played.messages
    ).items()
    assert (1, 0) == (played.result.counters.tool_iterations, played.result.counters.window)
    assert ("x", "y", "z") == played.only(ContinuationResolved).discarded
    assert UserMessage("try without") == played.asked[-1].messages[-1]
    assert ("done", True) == (played.result.text, played.result.answered)


@pytest.mark.parametrize("discard", [["y"], ("y",), {"y"}, frozenset({"y"})])
def test_some_discarded_the_rest_run_and_are_a_round(discard: Collection[str]) -> None:
    """G3: ids in any collection are discarded, the others run; results stay in call order."""
    bench = Bench()
    played = three_calls(ContinuationResponse("approve", discard_tool_calls=discard), bench=bench)
    exchange = played.messages[-2]

    assert {"t": 3} == bench.runs
    assert isinstance(exchange, ToolMessage)
    assert [("x", "ok"), ("y", "discarded"), ("z", "ok")] == [(r.call, r.status) for r in exchange.results]
    assert (2, 1) == (played.result.counters.tool_iterations, played.result.counters.window)
    assert ("y",) == played.only(ContinuationResolved).discarded


def test_all_ids_named_are_the_same_as_true() -> None:
    """G3: all ids = True: no round."""
    bench = Bench()
    played = three_calls(ContinuationResponse("approve", discard_tool_calls=["z", "x", "y"]), bench=bench)

    assert {"t": 1} == bench.runs
    assert (1, ("x", "y", "z")) == (
        played.result.counters.tool_iterations,
        played.only(ContinuationResolved).discarded,
    )


@pytest.mark.parametrize("discard", [False, [], ()])
def test_none_discarded(discard: bool | Collection[str]) -> None:
    """G3: False and an empty collection discard nothing."""
    bench = Bench()
    three_calls(ContinuationResponse("approve", discard_tool_calls=discard), bench=bench)

    assert {"t": 4} == bench.runs


def test_an_id_that_is_not_pending_is_a_providers_error() -> None:
    """G3, G7: a provider that discards an id which is not pending ends the run; the error names it and those that are."""
    played = three_calls(ContinuationResponse("approve", discard_tool_calls=["y", "nope"]))

    assert isinstance(played.error, ContinuationProviderError)
    assert isinstance(played.error.__cause__, InvalidDecision)
    assert "not pending: nope; pending are x, y, z" == str(played.error.__cause__)


@pytest.mark.parametrize("decision", ["decline", "timeout"])
def test_discards_and_grants_are_ignored_unless_approved(decision: str) -> None:
    """G3: `discard_tool_calls` and `grant` mean nothing in a decline or a timeout."""
    response = ContinuationResponse(decision, discard_tool_calls=["nope"], grant=3)  # type: ignore[arg-type]
    played = three_calls(response)
    resolved = played.only(ContinuationResolved)

    assert ((), None) == (resolved.discarded, resolved.granted)
    assert "done" == played.result.text


@pytest.mark.parametrize(
    ("response", "result_text", "notice", "outcome"),
    [
        (
            DECLINE,
            "Tool call not run: iteration limit reached, continuation declined.",
            "System notification: Maximum iteration limit reached. Continuation declined.",
            "declined",
        ),
        (
            ContinuationResponse("decline", message="use the cache", tool_message="stop it"),
            "stop it",
            "System notification: use the cache",
            "declined",
        ),
        (
            ContinuationResponse("timeout"),
            "Tool call not run: iteration limit reached, continuation request timed out.",
            "System notification: Continuation request timed out.",
            "timed_out",
        ),
        (
            ContinuationResponse("timeout", message="nobody is there", tool_message="late"),
            "late",
            "System notification: nobody is there",
            "timed_out",
        ),
    ],
)
def test_decline_and_timeout(response: ContinuationResponse, result_text: str, notice: str, outcome: str) -> None:
    """G5: one exchange of error results and one notification, then the final call; the run ends successfully."""
    bench = Bench()
    played = three_calls(response, bench=bench)
    result = played.result
    final = played.asked[-1]

    assert {"t": 1} == bench.runs
    assert isinstance(final.messages[-2], ToolMessage)
    assert [ToolResult(id, "t", "discarded", result_text) for id in "xyz"] == list(final.messages[-2].results)
    assert UserMessage(notice) == final.messages[-1]
    assert "none" == final.tool_choice
    assert final.tail is not None
    assert final.tail.startswith("You have reached the limit of 1 rounds of tool calls")
    assert (*final.messages, AssistantMessage((TextPart("done"),))) == played.messages
    assert outcome == played.only(ContinuationResolved).outcome
    assert ("done", True, "max_iterations", "tool_iterations", "model") == (
        result.text,
        result.answered,
        result.finish_reason,
        result.stopped_by,
        result.finalized,
    )
    assert LimitState("tool_iterations", 1, 1) == result.limit
    assert [False, False, True] == [event.final for event in played.all(StepStarted)]


def test_after_a_decline_the_final_call_has_the_tool_finalizations_text() -> None:
    """G1, G5: FT does not pre-empt a gate that can be asked; its text is the final call's tail after a decline."""
    played = three_calls(DECLINE, tool_iteration_limit_finalization="Sum it up.")

    assert [None, None, "Sum it up."] == [asked.tail for asked in played.asked]
    assert "max_iterations" == played.result.finish_reason


def test_after_a_decline_the_built_in_text_stands_in_for_a_function_that_fails() -> None:
    """G5, F2: with FT's function failing, the final call after a decline still has the built-in text."""

    def broken(_context: object) -> str:
        raise RuntimeError("no text")

    played = three_calls(DECLINE, tool_iteration_limit_finalization=broken)

    assert played.asked[-1].tail is not None
    assert played.asked[-1].tail.startswith("You have reached the limit of 1 rounds")
    assert ("done", "model") == (played.result.text, played.result.finalized)


def test_no_condition_is_asked_between_a_decline_and_its_final_call() -> None:
    """G5: a condition that would stop the run is not asked there; it was asked after the round before."""
    steps: list[int] = []

    def condition(state: StopState) -> bool:
        steps.append(state.step_number)
        return state.step_number == 1

    played = three_calls(DECLINE, stop_when=[condition])

    assert [0] == steps
    assert ("done", "model") == (played.result.text, played.result.finalized)


@pytest.mark.parametrize(("grant", "window"), [(None, 2), (1, 1), (5, 5)])
def test_a_grant_sizes_the_next_window_only(grant: int | None, window: int) -> None:
    """G3: `grant` is the size of the next window; the window after it has the limit's own again."""
    gate = Answers(ContinuationResponse("approve", grant=grant), APPROVE, DECLINE)
    played = play(agent(calls_while_on(), Bench().tool(), max_tool_iterations=2, continuation=gate))

    assert [2, window, 2] == [event.max_iterations for event in played.all(ContinuationRequired)]
    assert [window, 2, None] == [event.granted for event in played.all(ContinuationResolved)]
    assert 2 + window + 2 == played.result.counters.tool_iterations


def test_each_pending_call_ends_once_after_the_answer() -> None:
    """R4, G5: one `tool_finished` for each pending call, in call order, after the answer."""
    played = three_calls(DECLINE)
    after = played.events[played.types.index("continuation_resolved") :]

    assert [("x", "discarded", False), ("y", "discarded", False), ("z", "discarded", False)] == [
        (event.call, event.status, event.started) for event in after if isinstance(event, ToolFinished)
    ]
