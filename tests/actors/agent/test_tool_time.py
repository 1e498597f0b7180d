"""Tool timeouts: what counts as a tool's time, and what does not (T4)."""

from __future__ import annotations

import threading

import pytest
import trio

from actors import AgentSpec, Run, approve, open_runtime, remote, tool
from actors.models.scripted import call, reply
from protocol.events import ApprovalRequired, ToolStarted
from tests.support.deciders import payer, results
from tests.support.kin import SECONDS, decide_later
from tests.support.play import Stage, event_of, perform, play
from tests.support.scripts import Bench
from tests.support.specs import agent


@pytest.mark.parametrize("seconds", [SECONDS, 100])
def test_a_tool_is_cut_at_its_timeout(seconds: float) -> None:
    """T4: the body that takes longer is cancelled and `timed_out`; its siblings are not."""
    bench = Bench()
    turn = reply("", call("t", {}, id="a"), call("u", {}, id="b"))
    spec = agent([turn, "ok"], bench.tool(seconds=seconds + 1), bench.tool("u", seconds=seconds - 1))
    played = play(AgentSpec(model=spec.model, tools=spec.tools, tool_timeout_seconds=seconds))

    assert ["timed_out", "ok"] == [status for status, _ in results(played).values()]
    assert float(seconds) == played.seconds


@pytest.mark.parametrize(("own", "agents", "cut"), [(3, None, 3.0), (3, 9, 3.0), (9, 3, 9.0), (None, 3, 3.0)])
def test_a_tools_own_timeout_comes_before_the_agents(own: float | None, agents: float | None, cut: float) -> None:
    """T4: `tool_timeout_seconds` is for tools that set none."""

    async def slow() -> None:
        await trio.sleep_forever()

    spec = agent(
        [reply("", call("slow", {}, id="a")), "ok"],
        tool(slow, description="Slow.", timeout_seconds=own),
        tool_timeout_seconds=agents,
    )
    played = play(spec)

    assert (cut, f"The tool slow timed out after {cut:g} seconds; it may have had an effect.") == (
        played.seconds,
        results(played)["a"][1],
    )


def test_waiting_for_its_turn_is_not_a_tools_time() -> None:
    """T4: a call that waits for `max_parallel_tools` has not begun."""
    bench = Bench()
    turn = reply("", *[call("t", {}, id=f"c{n}") for n in range(4)])
    played = play(agent([turn, "ok"], bench.tool(seconds=3), tool_timeout_seconds=4, max_parallel_tools=1))

    assert (["ok"] * 4, 12.0) == ([status for status, _ in results(played).values()], played.seconds)


def test_waiting_for_approval_is_not_a_tools_time() -> None:
    """T4, T8: the time of a call begins with its body."""
    pay, paid = payer()

    async def act(run: Run) -> None:
        await decide_later(run, ApprovalRequired, approve(), 100)

    played = play(
        agent([reply("", call("pay", {"n": 1}, id="a")), "ok"], pay, approval=remote(), tool_timeout_seconds=1), act=act
    )

    assert ([1], 100.0) == (paid, played.seconds)


def test_waiting_for_a_thread_counts_on_the_wall_clock() -> None:
    """B5: a call that waits for one of the runtime's threads waits for no decision; its own timeout has not begun."""
    leave = threading.Event()

    def block() -> None:
        """Block."""
        leave.wait(10)

    async def scene(_stage: Stage) -> tuple[str, float, list[str]]:
        turn = reply("", call("block", {}, id="a"))
        blocking = tool(block)
        async with open_runtime(tool_threads=1) as runtime:
            holder = await runtime.spawn(agent([turn], blocking))
            waiter = await runtime.spawn(agent([turn, "never"], blocking, wall_clock_seconds=5, tool_timeout_seconds=1))
            async with holder.run("go") as first:
                await event_of(first, ToolStarted)
                began = trio.current_time()
                async with waiter.run("go") as second:
                    result = await second.result()
                seconds = trio.current_time() - began
                leave.set()
            return result.stopped_by, seconds, [found.status for found in result.steps[0].results]

    try:
        ended = perform(scene)
    finally:
        leave.set()

    assert ("wall_clock", 5.0, ["not_run"]) == ended
