"""`around_tool` in a turn: all hooks first, then decisions, limits and bodies (H7, T2, T8, B4)."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import trio

from actors import PendingTool, Run, ToolError, deny, external_tool, open_runtime, tool
from actors.models.scripted import call, reply
from actors.tools import Tool
from protocol.events import ApprovalRequired, RunPaused, ToolStarted
from tests.support.deciders import Approver, payer, pays, results, statuses
from tests.support.play import event_of, play
from tests.support.scripts import Bench
from tests.support.specs import agent


def calls(*ids: str, name: str = "t", then: str = "ok") -> list[Any]:
    """A script: one turn with these calls of one tool, then an answer."""
    return [reply("", *[call(name, {}, id=id) for id in ids]), then]


async def through(_call: PendingTool, proceed: Any) -> Any:
    return await proceed()


def test_hooks_are_entered_together_before_anybody_is_asked() -> None:
    """H7: every hook comes to its `proceed` first, then approvals are asked for those that wait in it."""
    order: list[str] = []
    provider = Approver(seconds=1)
    pay, paid = payer()

    async def around(call: PendingTool, proceed: Any) -> Any:
        order.append(f"in {call.id}")
        await trio.sleep(2)
        if call.id == "c2":
            return None
        value = await proceed()
        order.append(f"out {call.id}")
        return value

    played = play(agent(pays(1, 2, 3), pay, approval=provider, around_tool=around))

    assert ["in c1", "in c2", "in c3"] == sorted(order[:3])
    assert ["c1", "c3"] == sorted(request.call for request in provider.asked)
    assert ({"c1": "ok", "c2": "denied", "c3": "ok"}, 3.0) == (statuses(played), played.seconds)
    assert played.events[played.types.index("approval_required") - 1].type == "tool_finished"


def test_a_denied_call_stays_denied_whatever_its_hook_makes_of_it() -> None:
    """T8, H7: `proceed` raises where nobody allowed the call; what the hook returns then is no result."""
    pay, paid = payer()
    raised: list[str] = []

    async def around(_call: PendingTool, proceed: Any) -> Any:
        try:
            return await proceed()
        except ToolError as error:
            raised.append(type(error).__name__)
            return "as if it had been paid"

    played = play(agent(pays(7), pay, approval=lambda _r: deny("no"), around_tool=around))

    assert (["CallNotRun"], []) == (raised, paid)
    assert {"c1": ("denied", "Not run: declined. no")} == results(played)


def test_a_hook_that_leaves_before_the_decision_has_its_call_denied() -> None:
    """H7: a hook need not wait for a person for ever; an approval that comes later runs nothing."""
    pay, paid = payer()

    async def around(call: PendingTool, proceed: Any) -> Any:
        if call.id == "c2":
            return await proceed()
        with trio.move_on_after(3):
            return await proceed()
        return "nobody came"

    spec = agent(pays(1, 2), pay, approval=Approver(seconds=10), around_tool=around, max_parallel_tools=1)
    played = play(spec)

    assert ("denied", "Not run: declined. nobody came") == results(played)["c1"]
    assert ([2], {"c1": "denied", "c2": "ok"}, 10.0) == (paid, statuses(played), played.seconds)


@pytest.mark.parametrize(("width", "seconds"), [(1, 12.0), (2, 8.0), (3, 4.0), (None, 4.0)])
def test_as_many_bodies_at_a_time_as_may(width: int | None, seconds: float) -> None:
    """T2, H7: `max_parallel_tools` holds for the calls behind their hooks, in call order."""
    bench = Bench()
    spec = agent(calls("a", "b", "c"), bench.tool(seconds=4), around_tool=through, max_parallel_tools=width)
    played = play(spec)

    assert seconds == played.seconds
    assert ["ok"] * 3 == list(statuses(played).values())
    if width == 1:
        assert ["a", "b", "c"] == [event.call for event in played.all(ToolStarted)]


@pytest.mark.parametrize("deny_first", [False, True])
def test_only_the_bodies_that_would_run_count_against_the_limit(deny_first: bool) -> None:  # noqa: FBT001
    """B4, H7: the first k in call order of those that hook and person let through; the rest are `not_run`."""
    bench = Bench()

    async def around(call: PendingTool, proceed: Any) -> Any:
        if deny_first and call.id == "a":
            return None
        return await proceed()

    played = play(agent(calls("a", "b", "c", "d"), bench.tool(), around_tool=around, max_tool_calls=2))
    wanted = ["denied", "ok", "ok", "not_run"] if deny_first else ["ok", "ok", "not_run", "not_run"]

    assert wanted == list(statuses(played).values())
    assert ("tool_calls", {"t": 2}, 2) == (
        played.result.stopped_by,
        bench.runs,
        played.result.counters.tool_calls,
    )


def test_a_body_that_was_allowed_and_not_entered_is_not_counted() -> None:
    """B4: a hook that leaves its `proceed` too early gives the count back to the rest of the run."""
    bench = Bench()

    async def around(call: PendingTool, proceed: Any) -> Any:
        if call.id == "b":
            with trio.move_on_after(1):
                return await proceed()
            return None
        return await proceed()

    script = [*calls("a", "b")[:1], *calls("c")]
    spec = agent(script, bench.tool(seconds=5), around_tool=around, max_tool_calls=2, max_parallel_tools=1, max_steps=9)
    played = play(spec)

    assert {"a": "ok", "b": "denied", "c": "ok"} == statuses(played)
    assert ("ok", 2) == (played.result.text, played.result.counters.tool_calls)


def test_a_callers_own_tools_are_left_alone() -> None:
    """H7, T7: there is no body to stand around."""
    bench = Bench()
    seen: list[str] = []
    ask = external_tool("ask", "Ask.", {"type": "object", "properties": {}})

    async def around(call: PendingTool, proceed: Any) -> Any:
        seen.append(call.id)
        return await proceed()

    async def act(run: Run) -> None:
        await event_of(run, RunPaused)
        run.submit({"a": "yes"})

    turn = reply("", call("ask", {}, id="a"), call("t", {}, id="b"))
    played = play(agent([turn, "ok"], bench.tool(), ask, around_tool=around), act=act)
    alone = play(agent(calls("a", name="ask"), ask, around_tool=around), act=act)

    assert (["b"], {"a": "ok", "b": "ok"}) == (seen, statuses(played))
    assert {"a": ("ok", "yes")} == results(alone)


def test_calls_that_cannot_run_meet_no_hook() -> None:
    """H7: entered for every resolved call, and for no other."""
    seen: list[str] = []

    async def around(call: PendingTool, proceed: Any) -> Any:
        seen.append(call.id)
        return await proceed()

    turn = reply(
        "", call("gone", {}, id="a"), call("t", "[", id="b"), call("t", {"x": 1}, id="c"), call("t", {}, id="d")
    )
    played = play(agent([turn, "ok"], Bench().tool(), around_tool=around))

    assert (["d"], ["error", "error", "error", "ok"]) == (seen, list(statuses(played).values()))


async def test_a_hook_stands_around_a_tool_in_a_thread() -> None:
    """H7, T1: a blocking tool runs in its thread behind the hook."""
    names: list[bool] = []

    def block(n: int) -> int:
        """Block."""
        names.append(threading.current_thread() is threading.main_thread())
        return n

    async def around(call: PendingTool, proceed: Any) -> Any:
        return {"doubled": 2 * await proceed({"n": call.arguments["n"] + 1})}

    blocking: Tool = tool(block)
    spec = agent(
        [reply("", call("block", {"n": n}, id=f"c{n}")) for n in (1, 2)] + ["ok"], blocking, around_tool=around
    )
    async with open_runtime(tool_threads=1) as runtime:
        one = await runtime.spawn(spec)
        async with one.run("go") as run:
            result = await run.result()
    texts = [result.text for step in result.steps for result in step.results]

    assert ([False, False], ['{"doubled":4}', '{"doubled":6}']) == (names, texts)


def test_an_approved_call_is_shown_once_per_call() -> None:
    """T8: the hook does not multiply requests."""
    pay, _ = payer()
    played = play(agent(pays(1, 2), pay, approval=Approver(), around_tool=through))

    assert ["c1", "c2"] == sorted(event.call for event in played.all(ApprovalRequired))
