"""The clock of `wall_clock_seconds` stands still while all that a run does is wait for somebody (B5)."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import trio

from actors import (
    Agent,
    AgentSpec,
    ApprovalRequest,
    ApprovalResponse,
    ContinuationResponse,
    Run,
    RunResult,
    approve,
    external_tool,
    remote,
)
from actors.models.scripted import call, reply
from actors.tools import Tool, tool
from protocol.errors import ToolError
from protocol.events import ApprovalRequired, ContinuationRequired, ContinuationResolved, RunEvent, RunFinished
from protocol.limits import LimitState
from tests.support.families import asks
from tests.support.play import Played, Stage, event_of, numbered_events, perform, play
from tests.support.scripts import Bench, Trickle
from tests.support.specs import APPROVE, agent


def used(run: Run) -> float:
    """Seconds of work, as the run's account counts them."""
    seconds = run.statistics().account.work_seconds
    assert seconds is not None
    return seconds


def asks_first(bench: Bench, *, seconds: float = 0.0) -> Tool:
    """A tool that needs approval."""

    async def pay() -> int:
        """Pay."""
        bench.runs["pay"] = bench.runs.get("pay", 0) + 1
        await trio.sleep(seconds)
        return 1

    return tool(pay, needs_approval=True)


def test_bud_13() -> None:
    """BUD-13: an approval that comes at 500 seconds costs the run of 100 nothing: it answers, with 0 seconds used."""
    bench = Bench()
    seen: list[float] = []

    async def act(run: Run) -> None:
        request = await event_of(run, ApprovalRequired)
        await trio.sleep(500)
        seen.append(used(run))
        await run.decide(request.request, approve())
        await run.result()
        seen.append(used(run))

    script = [reply("", call("pay", {}, id="c1")), "ok"]
    options: dict[str, Any] = {"wall_clock_seconds": 100, "approval_timeout_seconds": 1000, "approval": remote()}
    played = play(agent(script, asks_first(bench), **options), act=act)

    assert ("ok", None, 500.0) == (played.result.text, played.result.limit, played.seconds)
    assert [0.0, 0.0] == seen
    assert {"pay": 1} == bench.runs


def test_an_approval_that_expires_costs_nothing_either() -> None:
    """BUD-13, T8: the rule is the same for an expiry."""
    script = [reply("", call("pay", {}, id="c1")), "ok"]
    options: dict[str, Any] = {"wall_clock_seconds": 100, "approval_timeout_seconds": 1000, "approval": remote()}
    played = play(agent(script, asks_first(Bench()), **options))

    assert ("ok", None, 1000.0) == (played.result.text, played.result.limit, played.seconds)


def test_what_comes_after_the_wait_counts_from_where_it_stood() -> None:
    """B5: 60 seconds of work, a wait, and 40 more are 100: cut at the very second."""

    async def late(_request: ApprovalRequest) -> ApprovalResponse:
        await trio.sleep(500)
        return approve()

    script = [reply("", call("t", {}, id="a")), reply("", call("pay", {}, id="b")), "never"]
    tools = [Bench().tool(seconds=60), asks_first(Bench(), seconds=50)]
    played = play(agent(script, *tools, wall_clock_seconds=100, approval=late))

    assert (LimitState("wall_clock", 100, 100.0), 600.0) == (played.result.limit, played.seconds)
    assert ["timed_out"] == [result.status for result in played.result.steps[1].results]


def test_the_wait_at_the_gate_does_not_count() -> None:
    """B5: while the run waits at its gate, for a day, no second passes for it."""

    async def late(_request: Any) -> ContinuationResponse:
        await trio.sleep(500)
        return APPROVE

    script = [*[reply("", call("t", {}, id=id)) for id in "abc"], "done"]
    options: dict[str, Any] = {"max_tool_iterations": 1, "continuation": late, "wall_clock_seconds": 100}
    played = play(agent(script, Bench().tool(seconds=30), **options))

    assert ("done", None, 2 * 500 + 3 * 30.0) == (played.result.text, played.result.limit, played.seconds)


def test_a_pause_does_not_count() -> None:
    """B5, T7: while the caller works on its own tools, the run's time stands still."""
    yours = external_tool("yours", "The caller's own.", {"type": "object", "properties": {}})
    script = [reply("", call("yours", {}, id="a"), call("t", {}, id="b")), "done"]

    async def scene(stage: Stage) -> tuple[float, str, float]:
        hosted = await stage.spawn(agent(script, yours, Bench().tool(seconds=7), wall_clock_seconds=100))
        async with stage.run(hosted) as run:
            await run.result()
            await trio.sleep(500)
            before = used(run)
            run.submit({"a": ToolError("it cannot be had")})
            return before, (await run.result()).text, used(run)

    assert (7.0, "done", 7.0) == perform(scene)


def test_a_run_that_is_held_does_not_count() -> None:
    """B5, M1: while a reader of `run.steps()` looks at a step, the run waits for its caller."""

    async def scene(stage: Stage) -> tuple[list[float], str]:
        script = [*[reply("", call("t", {}, id=id)) for id in "abc"], "done"]
        hosted = await stage.spawn(agent(script, Bench().tool(seconds=20), wall_clock_seconds=100))
        seen: list[float] = []
        async with stage.run(hosted) as run:
            async for _ in run.steps():
                await trio.sleep(500)
                seen.append(used(run))
            return seen, (await run.result()).text

    assert ([20.0, 40.0, 60.0, 60.0], "done") == perform(scene)


def test_a_slow_reader_of_events_does_not_stop_the_clock() -> None:
    """M1: a reader of events never holds the loop, so the run works on and its time passes."""

    async def scene(stage: Stage) -> tuple[str | None, float]:
        hosted = await stage.spawn(
            agent([reply("", call("t", {}, id="a"))], Bench().tool(seconds=50), wall_clock_seconds=10)
        )
        async with stage.run(hosted) as run:
            async for _ in run:
                await trio.sleep(3)
            result = await run.result()
            return result.stopped_by, used(run)

    assert ("wall_clock", 10.0) == perform(scene)


# ------------------------------------------------------------ children


def thinks_after(stage: Stage, child: Agent, seconds: float) -> Tool:
    """A tool that asks the child, and works on for a while inside the block of its run, which is over."""

    async def ask_long() -> str:
        """Ask the child, and think about it for long."""
        async with stage.run(child, "look") as run:
            text = (await run.result()).text
            await trio.sleep(seconds)
            return text

    return tool(ask_long)


@attrs.define
class Family:
    """A root whose tools ask children, one after the name of the other."""

    played: Played
    ends: dict[tuple[str, ...], RunFinished]
    resolved: list[ContinuationResolved]


def family(children: list[AgentSpec], *tools: Tool, act: Any = None, **root: Any) -> Family:
    """One run of a root that calls all its tools in one turn, and then answers."""

    async def scene(stage: Stage) -> Family:
        everything = [*[asks(stage, await stage.spawn(child)) for child in children], *tools]
        turn = reply("", *[call(each.name, {}, id=each.name) for each in everything])
        host = await stage.spawn(agent([turn, "done"], *everything, **root))
        played = await stage.play(host, act=act)
        events = [event for _, event in await numbered_events(host) if isinstance(event, RunEvent)]
        return Family(
            played,
            {event.agent_path: event for event in events if isinstance(event, RunFinished)},
            [event for event in events if isinstance(event, ContinuationResolved)],
        )

    return perform(scene)


def at_the_gate(name: str, *, seconds: float = 500, work: float = 10) -> AgentSpec:
    """A child that works, waits at its gate, and works once more."""

    async def late(_request: Any) -> ContinuationResponse:
        await trio.sleep(seconds)
        return APPROVE

    script = [reply("", call("t", {}, id=f"{name}1")), reply("", call("t", {}, id=f"{name}2")), f"{name} is done"]
    return agent(script, Bench().tool(seconds=work), name=name, max_tool_iterations=1, continuation=late)


def test_a_tool_that_waits_for_a_child_that_waits_does_not_count() -> None:
    """B5: all that the root does is wait for its child's decision: of 520 seconds, 20 are work."""
    kin = family([at_the_gate("a")], wall_clock_seconds=30)

    assert ("done", None, 520.0) == (kin.played.result.text, kin.played.result.limit, kin.played.seconds)


def test_two_children_that_both_wait_do_not_count() -> None:
    """B5: all tools of the turn wait in children that wait."""
    kin = family([at_the_gate("a"), at_the_gate("b")], wall_clock_seconds=30)

    assert ("done", None, 520.0) == (kin.played.result.text, kin.played.result.limit, kin.played.seconds)


def test_a_sibling_that_works_counts() -> None:
    """B5: while one tool waits in its child, another works for 40 seconds: the limit of 30 is met after 30."""
    kin = family([at_the_gate("a")], Bench().tool(seconds=40), wall_clock_seconds=30)

    assert (LimitState("wall_clock", 30, 30.0), 30.0) == (kin.played.result.limit, kin.played.seconds)
    assert {"ask_a": "timed_out", "t": "timed_out"} == {
        result.call: result.status for result in kin.played.result.steps[0].results
    }
    assert ["cancelled"] == [event.outcome for event in kin.resolved]
    assert "wall_clock" == kin.ends[("a",)].summary.stopped_by


def test_a_sibling_child_that_works_counts() -> None:
    """B5: one child waits from second 10 on, the other works until second 60: 60 seconds count, and the last 10."""
    busy = agent([reply("", call("t", {}, id="x")), "busy is done"], Bench().tool(seconds=60), name="busy")
    seen: list[float] = []

    async def act(run: Run) -> None:
        await event_of(run, RunFinished)
        seen.append(used(run))

    kin = family([at_the_gate("a"), busy], act=act, wall_clock_seconds=100)

    assert ("done", 520.0) == (kin.played.result.text, kin.played.seconds)
    assert [70.0] == seen


def test_a_grandchild_that_waits_stops_the_clock_up_to_the_root() -> None:
    """B5: a decision that is waited for two levels down stops the clocks of all three."""

    async def scene(stage: Stage) -> tuple[RunResult, float, list[float]]:
        grandchild = await stage.spawn(at_the_gate("grandchild"))
        further = [reply("", call("ask_grandchild", {}, id="f")), "c"]
        child = await stage.spawn(agent(further, asks(stage, grandchild), name="child", wall_clock_seconds=25))
        script = [reply("", call("ask_child", {}, id="a")), "done"]
        root = await stage.spawn(agent(script, asks(stage, child), wall_clock_seconds=30))
        async with stage.run(root) as run:
            result = await run.result()
        return result, trio.current_time(), [used(each) for each in stage.runs[:2]]

    result, seconds, (root_used, child_used) = perform(scene)

    assert ("done", None) == (result.text, result.limit)
    assert (20.0, 20.0, 520.0) == (child_used, root_used, seconds)


def test_an_approval_in_a_child_stops_the_clock() -> None:
    """B5, BUD-13: the rule is the same for a child's approval."""

    async def late(_request: ApprovalRequest) -> ApprovalResponse:
        await trio.sleep(500)
        return approve()

    script = [reply("", call("pay", {}, id="p")), "paid"]
    child = agent(script, asks_first(Bench(), seconds=10), name="a", approval=late)
    kin = family([child], wall_clock_seconds=30)

    assert ("done", None, 510.0) == (kin.played.result.text, kin.played.result.limit, kin.played.seconds)


def test_a_tool_that_works_on_after_its_child_counts() -> None:
    """B5: a child that is over no longer stands for the tool that asked it: what the tool does then is work."""

    async def scene(stage: Stage) -> Played:
        child = await stage.spawn(agent(["short"], name="child"))

        script = [reply("", call("ask_long", {}, id="a")), "done"]
        root = await stage.spawn(agent(script, thinks_after(stage, child, 500), wall_clock_seconds=30))
        return await stage.play(root)

    played = perform(scene)

    assert (LimitState("wall_clock", 30, 30.0), 30.0) == (played.result.limit, played.seconds)


def test_a_tools_own_time_goes_on_after_its_child_too() -> None:
    """N3: the same for the tool's timeout: 20 seconds of the child's work and 10 of its own are 30."""

    async def scene(stage: Stage) -> Played:
        child = await stage.spawn(at_the_gate("child"))

        script = [reply("", call("ask_long", {}, id="a")), "done"]
        root = await stage.spawn(agent(script, thinks_after(stage, child, 500), tool_timeout_seconds=30))
        return await stage.play(root)

    played = perform(scene)

    assert ["timed_out"] == [result.status for result in played.result.steps[0].results]
    assert ("done", 530.0) == (played.result.text, played.seconds)


def test_a_child_cut_at_its_gate_by_its_callers_time_closes_the_question() -> None:
    """B5, G9: the caller's time runs out because of a sibling: the child's question is closed, and told as cancelled."""
    asked: list[str] = []

    async def act(run: Run) -> None:
        async for event in run:
            if isinstance(event, ContinuationRequired):
                asked.append(event.request)

    kin = family([at_the_gate("a", seconds=3000)], Bench().tool(seconds=40), act=act, wall_clock_seconds=30)

    assert [(asked[0], "cancelled")] == [(event.request, event.outcome) for event in kin.resolved]
    assert {(): "wall_clock", ("a",): "wall_clock"} == {path: end.summary.stopped_by for path, end in kin.ends.items()}


@pytest.mark.parametrize("seconds", [29, 31])
def test_a_wait_for_a_busy_agent_counts(seconds: float) -> None:
    """B5: a child that is queued behind somebody else's run waits for no decision: the caller's time passes."""

    async def scene(stage: Stage) -> Played:
        child = await stage.spawn(agent(Trickle([["one", float(seconds)], ["two"]]), name="child"))

        script = [reply("", call("ask_child", {}, id="a")), "done"]
        root = await stage.spawn(agent(script, asks(stage, child), wall_clock_seconds=30))
        async with stage.run(child, "before"):
            return await stage.play(root)

    played = perform(scene)

    assert (("done" if seconds < 30 else "wall_clock"),) == (
        (played.result.text if played.result.answered else played.result.stopped_by),
    )
