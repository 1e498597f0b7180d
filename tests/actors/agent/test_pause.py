"""Tools of the caller's own: the run pauses at their calls and goes on when `submit` has given all results (T7)."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from actors import Run
from actors.models.scripted import call, reply
from protocol.errors import RunOver, SubmissionRefused
from protocol.events import PendingCall, RunFinished, RunPaused, RunResumed, ToolFinished
from protocol.result import RunResult
from tests.actors.agent._pauses import asker, asks, gives
from tests.support.deciders import results, statuses
from tests.support.ids import shown
from tests.support.play import event_of, play
from tests.support.scripts import Bench
from tests.support.specs import agent


def test_the_run_pauses_at_a_callers_own_tool_and_goes_on_with_its_result() -> None:
    """T7: `run_paused` names the calls, `submit` answers them, `run_resumed` goes on; no tool was started."""
    played = play(agent(asks("a"), asker()), act=gives(a="yes"))
    paused, resumed = played.only(RunPaused), played.only(RunResumed)

    assert ({"a": ("ok", "yes")}, "ok") == (results(played), played.result.text)
    assert (PendingCall("a", "ask", {"q": "a?"}),) == paused.calls
    assert (0, 1, 1) == (resumed.counters.steps, resumed.counters.llm_calls, resumed.counters.tool_iterations)
    assert ["tool_requested", "run_paused", "run_resumed", "tool_finished", "step_finished"] == [
        kind for kind in played.types if kind.startswith(("tool_r", "run_p", "run_r", "tool_f", "step_f"))
    ][:-1]
    assert 0 == played.result.counters.tool_calls
    assert not played.only(ToolFinished).started


def test_the_turns_other_calls_run_before_the_pause() -> None:
    """T7: they have ended when the caller is asked; history stays in call order."""
    bench = Bench()
    turn = reply("", call("ask", {}, id="a"), call("t", {}, id="b"), call("ask", {}, id="c"), call("gone", {}, id="d"))
    spec = agent([turn, "ok"], asker(), bench.tool(value="did", seconds=3))
    played = play(spec, act=gives(a="one", c="two"))
    paused = played.types.index("run_paused")

    assert {"b", "d"} == {event.call for event in played.events[:paused] if isinstance(event, ToolFinished)}
    assert ["a", "b", "c", "d"] == list(results(played))
    assert {"a": ("ok", "one"), "b": ("ok", "did"), "c": ("ok", "two")}.items() <= results(played).items()
    assert ["a", "c"] == [pending.id for pending in played.only(RunPaused).calls]


def test_result_returns_at_the_pause_and_again_at_the_end() -> None:
    """T7, M: at the pause `pending_tools`, with what the run has come to; after `submit`, the end."""
    seen: list[RunResult] = []
    pending: list[tuple[PendingCall, ...]] = []

    async def act(run: Run) -> None:
        seen.append(await run.result())
        seen.append(await run.result())
        pending.append(run.pending)
        run.submit({"a": "yes"})
        pending.append(run.pending)
        seen.append(await run.result())

    played = play(agent(asks("a"), asker()), act=act)

    assert ["pending_tools", "pending_tools", "model"] == [result.stopped_by for result in seen]
    assert [False, False, True] == [result.answered for result in seen]
    assert [("a",), ()] == [tuple(call.id for call in calls) for calls in pending]
    assert 1 == len(seen[0].messages)
    assert 1 == len(played.all(RunFinished))


def test_each_pause_is_one_of_its_own() -> None:
    """T7: a second turn with external calls pauses again, under another request."""
    script = [*asks("a")[:1], *asks("b")]
    seen: list[str] = []

    async def act(run: Run) -> None:
        result = await run.result()
        while result.stopped_by == "pending_tools":
            (pending,) = run.pending
            seen.append(pending.id)
            run.submit({pending.id: f"for {pending.id}"})
            result = await run.result()

    played = play(agent(script, asker()), act=act)
    requests = [paused.request for paused in played.all(RunPaused)]

    assert (["a", "b"], 2) == (seen, len(set(requests)))
    assert {"a": ("ok", "for a"), "b": ("ok", "for b")} == results(played)


def test_a_part_of_the_results_is_kept() -> None:
    """T7: the run goes on with the last one, whatever the order."""

    async def act(run: Run) -> None:
        await event_of(run, RunPaused)
        run.submit({"b": "two"})
        await trio.sleep(5)
        assert run.statistics().paused
        assert ["a", "c"] == [pending.id for pending in run.pending]
        run.submit({})
        run.submit({"c": "three"})
        await trio.sleep(5)
        run.submit({"a": "one"})

    played = play(agent(asks("a", "b", "c"), asker()), act=act)

    assert [("a", "one"), ("b", "two"), ("c", "three")] == [(id, text) for id, (_, text) in results(played).items()]
    assert (1, 10.0) == (len(played.all(RunResumed)), played.seconds)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"z": 1}, "not waited for: z; waited for are a, b"),
        ({"a": 1, "z": 2}, "not waited for: z; waited for are a, b"),
        ({"": 1}, "waited for are a, b"),
        ({7: 1}, "not waited for: 7;"),
        ([("a", 1)], "submit takes a mapping from call ids to results; it is list"),
        ({"a": object}, "Tool 'ask' returned"),
        ({"b": 1, "a": (n for n in [1])}, "Tool 'ask' returned"),
    ],
    ids=shown,
)
def test_what_does_not_answer_the_pause_is_refused_whole(given: Any, told: str) -> None:
    """T7: an id that is not waited for, or a value that is no result: the error says which, and nothing is taken."""

    async def act(run: Run) -> None:
        await event_of(run, RunPaused)
        with pytest.raises(SubmissionRefused) as caught:
            run.submit(given)
        assert told in str(caught.value)
        assert ["a", "b"] == [pending.id for pending in run.pending]
        run.submit({"a": "one", "b": "two"})

    played = play(agent(asks("a", "b"), asker()), act=act)

    assert {"a": ("ok", "one"), "b": ("ok", "two")} == results(played)


def test_a_call_is_answered_once() -> None:
    """T7: an answered id is refused, also together with one that is open, and while the run takes up the last."""

    async def act(run: Run) -> None:
        await event_of(run, RunPaused)
        run.submit({"a": "first"})
        with pytest.raises(SubmissionRefused, match="not waited for: a; waited for are b"):
            run.submit({"a": "second", "b": "two"})
        run.submit({"b": "two"})
        with pytest.raises(SubmissionRefused, match="waited for are none"):
            run.submit({"b": "three"})

    played = play(agent(asks("a", "b"), asker()), act=act)

    assert {"a": ("ok", "first"), "b": ("ok", "two")} == results(played)


def test_results_are_refused_where_nothing_waits_for_them() -> None:
    """T7: before the pause, while the turn's other calls still run, and after the end."""
    bench = Bench()
    turn = reply("", call("ask", {}, id="a"), call("t", {}, id="b"))

    async def act(run: Run) -> None:
        await trio.sleep(1)
        with pytest.raises(SubmissionRefused, match="not waited for: a; waited for are none"):
            run.submit({"a": "early"})
        await event_of(run, RunPaused)
        run.submit({"a": "one"})
        await run.result()
        with pytest.raises(RunOver):
            run.submit({"a": "late"})
        assert () == run.pending

    played = play(agent([turn, "ok"], asker(), bench.tool(seconds=3)), act=act)

    assert ("ok", "one") == results(played)["a"]


@pytest.mark.parametrize(
    ("value", "status", "text"),
    [
        ("text", "ok", "text"),
        (None, "ok", "(no output)"),
        ({"n": [1]}, "ok", '{"n":[1]}'),
        (0, "ok", "0"),
        ("\ud800", "ok", "\ufffd"),
        (ValueError("no such file"), "error", "ValueError: no such file"),
        (ExceptionGroup("two", [ValueError("x"), KeyError("y")]), "error", "2 errors:\nValueError: x\nKeyError: 'y'"),
    ],
    ids=shown,
)
def test_what_is_given_is_rendered_as_a_tools_own(value: Any, status: str, text: str) -> None:
    """T5, T7: values as a tool returns them; an exception is an error result."""
    played = play(agent(asks("a"), asker()), act=gives(a=value))

    assert {"a": (status, text)} == results(played)


def test_a_long_result_is_cut_like_a_tools_own() -> None:
    """T5: the bound on output holds for what the caller gives."""
    played = play(agent(asks("a"), asker(), max_tool_output_chars=100), act=gives(a="x" * 5000))

    assert "5000 characters in full, 100 shown" in results(played)["a"][1]


def test_external_calls_are_checked_like_any_other() -> None:
    """T3: bad arguments are answered without a pause."""
    turn = reply("", call("ask", {"q": 7}, id="a"), call("ask", "[", id="b"))
    played = play(agent([turn, "ok"], asker()))

    assert ([], {"a": "error", "b": "error"}) == (played.all(RunPaused), statuses(played))
