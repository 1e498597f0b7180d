"""How a run ends whose loop is the user's own: it returns, raises, blocks, is cut or cuts itself."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import trio

from actors import Loop, Run, append_exchange, ask_model, execute_tools, generate_step, open_runtime, should_continue
from actors.journal import MemoryJournal
from actors.models.scripted import call, reply
from protocol.errors import RunCancelledError, RunFailedError
from protocol.events import RunFailed, StepFinished, Warned
from protocol.limits import LimitState
from protocol.turns import AssistantMessage, TextPart, ToolMessage

from ...support.play import Played, Stage, perform, play
from ...support.scripts import Bench, Trickle, calls_while_on
from ...support.specs import agent


def statuses(played: Played) -> list[str]:
    return [
        result.status for message in played.messages if isinstance(message, ToolMessage) for result in message.results
    ]


def partial_texts(played: Played) -> list[str]:
    return [
        part.text
        for message in played.messages
        if isinstance(message, AssistantMessage) and message.partial
        for part in message.parts
        if isinstance(part, TextPart)
    ]


async def whole(loop: Loop) -> None:
    while should_continue(loop):
        await generate_step(loop)
        await execute_tools(loop)
        await append_exchange(loop)


def test_it_returns_at_once() -> None:
    """The run ends as one that its caller stopped, without a step."""

    async def loop(_loop: Loop) -> None:
        return

    played = play(agent(["done"]), loop=loop)

    assert ("caller", "the loop returned", "stop", 0) == (
        played.result.stopped_by,
        played.result.stop_reason,
        played.result.finish_reason,
        played.result.counters.llm_calls,
    )


def test_it_returns_between_steps() -> None:
    """What was done is stored; the finish reason is that of the last step."""

    async def loop(loop: Loop) -> None:
        await generate_step(loop)
        await execute_tools(loop)
        await append_exchange(loop)

    played = play(agent(calls_while_on(text="so far"), Bench().tool()), loop=loop)

    assert ("caller", "tool_calls", "so far", ["ok"]) == (
        played.result.stopped_by,
        played.result.finish_reason,
        played.result.text,
        statuses(played),
    )


def test_it_returns_before_the_tools() -> None:
    """Calls that nobody has run are answered `not_run`, and the step is closed."""
    bench = Bench()
    played = play(agent(calls_while_on(), bench.tool()), loop=generate_step)

    assert (["not_run"], {}, 1) == (statuses(played), bench.runs, len(played.all(StepFinished)))
    assert "caller" == played.result.stopped_by


def test_it_returns_before_the_results_are_stored() -> None:
    """They are stored all the same."""

    async def loop(loop: Loop) -> None:
        await generate_step(loop)
        await execute_tools(loop)

    played = play(agent(calls_while_on(), Bench().tool()), loop=loop)

    assert (["ok"], "caller") == (statuses(played), played.result.stopped_by)


def test_it_returns_with_an_answer_in_hand() -> None:
    """It is the answer."""
    played = play(agent(["done"]), loop=generate_step)

    assert (True, "done", "model") == (played.result.answered, played.result.text, played.result.stopped_by)


def test_it_raises() -> None:
    """The run fails with the loop's error as its cause, whose text stays out of the events."""

    async def loop(loop: Loop) -> None:
        await generate_step(loop)
        raise ValueError("s3cret")

    played = play(agent([reply("so far", call("t", {}, id="a"))], Bench().tool()), loop=loop)

    assert isinstance(played.error, RunFailedError)
    assert repr(ValueError("s3cret")) == repr(played.error.__cause__)
    assert "the loop raised ValueError" == str(played.error)
    assert "loop_error" == played.only(RunFailed).error.code
    assert ("so far", ["not_run"]) == (played.result.text, statuses(played))


def test_it_raises_with_an_answer_in_hand() -> None:
    """The text is kept, as that of any turn that was not taken for an answer."""

    async def loop(loop: Loop) -> None:
        await generate_step(loop)
        raise ValueError("no")

    played = play(agent(["so far"]), loop=loop)

    assert isinstance(played.error, RunFailedError)
    assert ("so far", False, ["so far"]) == (played.result.text, played.result.answered, partial_texts(played))


def test_it_raises_with_the_final_call_in_hand() -> None:
    """Calls beside the final text are not stored, whatever the loop does."""

    async def loop(loop: Loop) -> None:
        await generate_step(loop)
        raise ValueError("no")

    final = reply("so far", call("t", {}, id="x"))
    played = play(agent([final], Bench().tool(), max_llm_calls=1, llm_call_limit_finalization=""), loop=loop)

    assert (["so far"], []) == (partial_texts(played), statuses(played))


def test_its_tasks_raise() -> None:
    """A group with one error in it is that error."""

    async def loop(_loop: Loop) -> None:
        async with trio.open_nursery():
            raise KeyError("k")

    played = play(agent(["done"]), loop=loop)

    assert "the loop raised KeyError" == str(played.error)


def test_it_raises_after_the_end(caplog: pytest.LogCaptureFixture) -> None:
    """The run is what it came to; the error is logged, and a warning tells of it."""

    async def loop(loop: Loop) -> None:
        await whole(loop)
        turn = await generate_step(loop)
        print(turn.text)  # type: ignore[union-attr]

    with caplog.at_level(logging.CRITICAL, "onward"):
        played = play(agent(calls_while_on(), Bench().tool(), max_tool_iterations=1), loop=loop)

    assert LimitState("tool_iterations", 1, 1) == played.result.limit
    assert None is played.error
    assert "the loop raised AttributeError after the run had come to its end" == played.only(Warned).text


def test_a_limit_that_leaves_the_loop() -> None:
    """A helper call that a limit refuses is the limit where it leaves the loop, as where it leaves a hook (B2)."""

    async def loop(loop: Loop) -> None:
        await generate_step(loop)
        await ask_model("one too many")

    played = play(agent([reply("hm", call("t", {}, id="a"))], Bench().tool(), max_llm_calls=1), loop=loop)

    assert LimitState("llm_calls", 1, 1) == played.result.limit
    assert ("llm_calls", ["not_run"]) == (played.result.stopped_by, statuses(played))


def test_helper_calls_of_a_loop() -> None:
    """They draw on the run's account."""

    async def loop(loop: Loop) -> None:
        await ask_model("first, a thought")
        await whole(loop)

    played = play(agent(["thought", "done"], max_llm_calls=2), loop=loop)

    assert ("done", 2) == (played.result.text, played.result.counters.llm_calls)


async def block(loop: Loop) -> None:
    await generate_step(loop)
    await trio.sleep_forever()


@pytest.mark.parametrize("clean_up", [False, True])
def test_it_blocks_until_the_time_is_over(clean_up: bool) -> None:
    """The wall clock cuts it; the text in hand is kept. What its clean-up raises then changes nothing."""

    async def loop(loop: Loop) -> None:
        try:
            await block(loop)
        finally:
            if clean_up:
                raise ValueError("in the clean-up")

    played = play(agent(["so far"], wall_clock_seconds=5), loop=loop)

    assert LimitState("wall_clock", 5, 5) == played.result.limit
    assert ("so far", ["so far"], 5) == (played.result.text, partial_texts(played), played.seconds)


@pytest.mark.parametrize("clean_up", [False, True])
def test_it_is_cancelled(clean_up: bool) -> None:
    """Cancelled is cancelled, whatever its clean-up raises."""

    async def loop(loop: Loop) -> None:
        try:
            await block(loop)
        finally:
            if clean_up:
                raise ValueError("in the clean-up")

    async def act(run: Run) -> None:
        await trio.sleep(3)
        run.cancel("enough")

    played = play(agent(["so far"]), loop=loop, act=act)

    assert isinstance(played.error, RunCancelledError)
    assert (["so far"], 3) == (partial_texts(played), played.seconds)


def test_its_end_stands() -> None:
    """A loop that lingers after the answer is cut by the wall clock, and the answer is the run's."""

    async def loop(loop: Loop) -> None:
        await whole(loop)
        await trio.sleep_forever()

    played = play(agent(["done"], wall_clock_seconds=5), loop=loop)

    assert ("done", True, None, 5) == (
        played.result.text,
        played.result.answered,
        played.result.limit,
        played.seconds,
    )


def test_a_stop_is_seen_at_the_next_step() -> None:
    """`run.stop` ends it at its boundary."""

    async def act(run: Run) -> None:
        await trio.sleep(0.5)
        run.stop("enough")

    played = play(agent(calls_while_on(), Bench().tool(seconds=1)), loop=whole, act=act)

    assert ("caller", "enough", ["ok"]) == (played.result.stopped_by, played.result.stop_reason, statuses(played))


def test_it_cuts_off_a_model_call() -> None:
    """A scope of the loop's own around a step ends the run: the call counts, and the text that came is kept."""
    goes_on: list[bool] = []

    async def loop(loop: Loop) -> None:
        with trio.move_on_after(1):
            await generate_step(loop)
        goes_on.append(should_continue(loop))
        await whole(loop)

    played = play(agent(Trickle([["half ", 5.0, "whole"], ["again"]])), loop=loop)

    assert [False] == goes_on
    assert ("caller", "the loop cut off a step of its own") == (played.result.stopped_by, played.result.stop_reason)
    assert (1, ["half "], 1) == (played.result.counters.llm_calls, partial_texts(played), played.seconds)


def test_it_cuts_off_its_tools() -> None:
    """Those that ran are `interrupted`, and the exchange is stored."""

    async def loop(loop: Loop) -> None:
        await generate_step(loop)
        with trio.move_on_after(1):
            await execute_tools(loop)
        await whole(loop)

    played = play(agent(calls_while_on(), Bench().tool(seconds=5)), loop=loop)

    assert (["interrupted"], "caller") == (statuses(played), played.result.stopped_by)


def test_a_deadline_of_its_own_that_raises() -> None:
    """`fail_after` around a step fails the run."""

    async def loop(loop: Loop) -> None:
        with trio.fail_after(1):
            await generate_step(loop)

    played = play(agent(Trickle([[5.0, "whole"]])), loop=loop)

    assert "the loop raised TooSlowError" == str(played.error)


class BrokenJournal(MemoryJournal):
    """It says that it is durable, and does not write the second time."""

    durable = True
    writes = 0

    async def flushed(self, position: int | None = None) -> None:
        self.writes += 1
        if self.writes == 2:
            raise OSError("disk full")


@pytest.mark.parametrize("swallow", [False, True])
async def test_a_fault_that_is_not_the_loops(autojump_clock: Any, swallow: bool) -> None:
    """Where the engine itself fails, the loop is not blamed, and cannot hide it."""

    async def loop(loop: Loop) -> None:
        await generate_step(loop)
        try:
            await execute_tools(loop)
        except OSError:
            if not swallow:
                raise

    async with open_runtime(journal=BrokenJournal()) as runtime:
        agent_ = await runtime.spawn(agent(calls_while_on(), Bench().tool()))
        async with agent_.run("go", loop=loop) as run:
            with pytest.raises(RunFailedError, match="crashed: OSError: disk full"):
                await run.result()


def test_the_next_run_is_the_engines() -> None:
    """A loop is one run's: the conversation goes on without it."""

    async def scene(stage: Stage) -> list[str]:
        agent_ = await stage.spawn(agent(["one", "two"]))
        return [(await stage.play(agent_, loop=whole)).result.text, (await stage.play(agent_)).result.text]

    assert ["one", "two"] == perform(scene)
