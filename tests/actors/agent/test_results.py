"""What a run comes to: the rows of section 7 that exist, and what a result is beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from actors import AgentSpec, Limits, Run, is_step_count, never
from actors.models.scripted import call, reply
from protocol.errors import LimitReachedError, ModelError, RunCancelledError, RunFailedError
from protocol.events import RunFinished, RunStarted, StepStarted
from protocol.limits import LimitState
from protocol.result import StepResult
from protocol.turns import AssistantMessage, Message, ReasoningPart, TextPart, ToolCall, ToolResult, UserMessage
from protocol.usage import UNKNOWN_USAGE, Usage
from tests.support.play import Played, Stage, event_of, perform, play
from tests.support.scripts import Bench, calls_until, calls_while_on
from tests.support.specs import agent

T1 = LimitState("tool_iterations", 1, 1)
T2 = LimitState("tool_iterations", 2, 2)
L1 = LimitState("llm_calls", 1, 1)


@attrs.frozen
class Row:
    """A row of the table: how to come to that end, and the columns."""

    spec: Callable[[], AgentSpec]
    stopped_by: str
    finish_reason: str
    limit: LimitState | None = None
    finalized: str | None = None
    answered: bool = False
    stop_reason: str | None = None
    stop: bool = False


def calling(script: Any = None, **options: Any) -> Callable[[], AgentSpec]:
    return lambda: agent(script or calls_while_on(), Bench().tool(seconds=1), **options)


ROWS = {
    "answer": Row(calling(["yes"]), "model", "stop", answered=True),
    "cut": Row(calling([reply("half", finish="length")]), "model", "length"),
    "blocked": Row(
        calling([reply("half", finish="content_filter")]), "model", "content_filter", stop_reason="content_filter"
    ),
    "empty": Row(
        calling([reply("")], max_reasks=0),
        "model",
        "empty",
        stop_reason="the reply held no text and no tool calls",
    ),
    "condition": Row(
        calling(stop_when=[is_step_count(2)]),
        "stop_condition",
        "tool_calls",
        stop_reason="maximum number of steps (2) reached",
    ),
    "caller": Row(calling(), "caller", "tool_calls", stop_reason="enough", stop=True),
    "limit": Row(calling(max_tool_iterations=1), "tool_iterations", "max_iterations", T1),
    "llm limit": Row(calling(max_llm_calls=1), "llm_calls", "max_llm_calls", L1),
    "proactive": Row(
        calling(max_tool_iterations=1, tool_iteration_limit_finalization=""),
        "tool_iterations",
        "stop",
        T1,
        "model",
        answered=True,
    ),
    "proactive llm": Row(
        calling(max_llm_calls=1, llm_call_limit_finalization=""), "llm_calls", "stop", L1, "model", answered=True
    ),
    "gate declined": Row(
        calling(max_tool_iterations=1, continuation=never()),
        "tool_iterations",
        "max_iterations",
        T1,
        "model",
        answered=True,
    ),
    "no answer came": Row(
        calling(calls_while_on(answer=""), max_tool_iterations=1, tool_iteration_limit_finalization=""),
        "tool_iterations",
        "max_iterations",
        T1,
        "fallback",
    ),
    "no answer came after a decline": Row(
        calling(calls_while_on(answer=""), max_tool_iterations=1, continuation=never()),
        "tool_iterations",
        "max_iterations",
        T1,
        "fallback",
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_section_7(name: str) -> None:
    """Section 7: each end has its `stopped_by`, `finish_reason`, `limit`, `finalized`, and says if it was answered."""
    row = ROWS[name]

    async def act(run: Run) -> None:
        if row.stop:
            await event_of(run, StepStarted, nth=2)
            run.stop("enough")

    played = play(row.spec(), act=act)
    result = played.result

    assert played.error is None
    assert (row.stopped_by, row.finish_reason, row.limit, row.finalized, row.answered, row.stop_reason) == (
        result.stopped_by,
        result.finish_reason,
        result.limit,
        result.finalized,
        result.answered,
        result.stop_reason,
    )
    assert result.summary() == played.only(RunFinished).summary


@pytest.mark.parametrize("name", ROWS)
def test_raise_for_limit(name: str) -> None:
    """Section 7: `raise_for_limit()` raises if `limit` is set and the run not answered, with the result attached."""
    row = ROWS[name]

    async def act(run: Run) -> None:
        if row.stop:
            run.stop("enough")

    result = play(row.spec(), act=act).result

    if row.limit is not None and not row.answered:
        with pytest.raises(LimitReachedError, match=row.limit.name) as caught:
            result.raise_for_limit()
        assert result is caught.value.partial
    else:
        result.raise_for_limit()


def test_the_answer_is_the_models_whole_answer_and_nothing_else() -> None:
    """Section 7: of an answered run, `text` is the answer alone, without what was said on the way."""
    script = [reply("looking", call("t", {}, id="a")), "the answer"]
    result = play(agent(script, Bench().tool())).result

    assert "the answer" == result.text


def test_the_steps_of_a_result() -> None:
    """Section 7: a step has its text, reasoning, calls, results, finish reason, usage and time."""
    usage = Usage(10, 0, 0, 5, 2, complete=True)
    first = reply("looking", call("t", {}, id="a"), usage=usage)
    first = attrs.evolve(first, parts=(ReasoningPart("hm"), *first.parts))
    result = play(agent([first, reply("done", usage=usage)], Bench().tool(seconds=4))).result

    assert (
        StepResult(
            0,
            "looking",
            "hm",
            (ToolCall("a", "t", "{}"),),
            (ToolResult("a", "t", "ok", "1", entered=True),),
            "tool_calls",
            usage,
            4.0,
        ),
        StepResult(1, "done", "", (), (), "stop", usage, 0.0),
    ) == result.steps


def test_usage_is_summed_and_context_is_the_last_requests() -> None:
    """Section 7: usage over all calls, `context_tokens` of the last request; cost is unknown without prices."""
    script = [
        reply("", call("t", {}, id="a"), usage=Usage(100, 20, 3, 7, 1, complete=True)),
        reply("done", usage=Usage(50, 130, 0, 9, 0, complete=True)),
    ]
    result = play(agent(script, Bench().tool())).result

    assert Usage(150, 150, 3, 16, 1, complete=True) == result.usage
    assert (180, None) == (result.context_tokens, result.cost)


def test_usage_that_was_not_reported_is_unknown() -> None:
    """B3: a call without usage makes the sum incomplete; unknown is not zero."""
    script = [reply("", call("t", {}, id="a"), usage=Usage(100, 0, 0, 7, 0, complete=True)), "done"]
    result = play(agent(script, Bench().tool())).result

    assert (107, False, None) == (result.usage.total_tokens, result.usage.complete, result.context_tokens)
    assert UNKNOWN_USAGE == result.steps[1].usage


def test_the_messages_of_a_result_are_the_whole_conversation() -> None:
    """Section 7: `messages` is the agent's conversation, that of earlier runs and of before included."""
    before: list[Message] = [UserMessage("hi"), AssistantMessage((TextPart("hello"),))]

    async def scene(stage: Stage) -> list[Played]:
        one = await stage.spawn(agent(["one", "two"]), messages=before)
        return [await stage.play(one, "first"), await stage.play(one, "second")]

    first, second = perform(scene)

    assert (*before, UserMessage("first"), AssistantMessage((TextPart("one"),))) == first.result.messages
    assert (*first.result.messages, UserMessage("second"), AssistantMessage((TextPart("two"),))) == (
        second.result.messages
    )


def test_result_can_be_asked_for_again_and_by_many() -> None:
    """`run.result()` gives the same result every time."""

    async def scene(stage: Stage) -> list[object]:
        one = await stage.spawn(agent(["yes"]))
        async with stage.run(one) as run:
            return [await run.result(), await run.result()]

    first, second = perform(scene)

    assert first is second


@pytest.mark.parametrize("cancel", [False, True])
def test_a_run_that_raises_does_so_every_time(cancel: bool) -> None:
    """A failed or cancelled run raises at every `result()`, each time a fresh error with the same partial result."""

    async def scene(stage: Stage) -> list[BaseException]:
        one = await stage.spawn(agent([ModelError("down")], Bench().tool()))
        errors: list[BaseException] = []
        async with stage.run(one) as run:
            if cancel:
                run.cancel("no")
            for _ in range(2):
                with pytest.raises((RunFailedError, RunCancelledError)) as caught:
                    await run.result()
                errors.append(caught.value)
        return errors

    first, second = perform(scene)

    assert isinstance(first, RunCancelledError if cancel else RunFailedError)
    assert first is not second
    assert first.partial is second.partial  # type: ignore[attr-defined]


def test_a_second_run_has_a_fresh_window_and_fresh_counts() -> None:
    """B0: every limit counts per run: the second run has its whole allowance."""

    async def scene(stage: Stage) -> list[Played]:
        script = calls_until(6, "done")  # two that ran and one that did not, twice
        one = await stage.spawn(agent(script, Bench().tool(), max_tool_iterations=2))
        return [await stage.play(one), await stage.play(one), await stage.play(one)]

    first, second, third = perform(scene)

    assert [2, 2, 0] == [played.result.counters.tool_iterations for played in (first, second, third)]
    assert [T2, T2, None] == [played.result.limit for played in (first, second, third)]
    assert "done" == third.result.text
    assert 3 == len({played.run for played in (first, second, third)})
    assert [0, 0, 0] == [played.all(StepStarted)[0].step for played in (first, second, third)]


def test_what_a_run_is_given_holds_for_it_alone() -> None:
    """R6: limits, conditions and gate given to `run()` hold for that run in place of the agent's own."""

    async def scene(stage: Stage) -> list[Played]:
        one = await stage.spawn(agent(calls_while_on(), Bench().tool(), max_tool_iterations=2))
        return [
            await stage.play(one, limits=Limits(max_llm_calls=4)),
            await stage.play(one, stop_when=[is_step_count(1)]),
            await stage.play(one, continuation=never()),
            await stage.play(one),
        ]

    limited, conditioned, gated, plain = perform(scene)

    assert LimitState("llm_calls", 4, 4) == limited.result.limit
    assert ("stop_condition", 1) == (conditioned.result.stopped_by, conditioned.result.counters.steps)
    assert ("final", "model", T2) == (gated.result.text, gated.result.finalized, gated.result.limit)
    assert (T2, None, 3) == (plain.result.limit, plain.result.finalized, plain.result.counters.steps)


def test_the_first_event_says_who_and_what() -> None:
    """`run_started` names the agent, the model and the prompt."""
    played = play(agent(["yes"], name="ann"), "go on")
    first = played.events[0]

    assert isinstance(first, RunStarted)
    assert ("ann", "strict", "go on", ()) == (first.agent, first.model, first.prompt, first.agent_path)
