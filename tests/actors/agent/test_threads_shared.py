"""Tool threads are shared: agents take turns, and one whose threads never come back shuts nobody out."""

from __future__ import annotations

import threading

import trio

from actors import AgentSpec, sub_agent, tool
from actors.models import Scripted, call, reply
from actors.tools import Tool
from protocol.events import ToolStarted
from tests.support.deciders import results
from tests.support.play import Stage, perform
from tests.support.specs import agent


def calls(name: str, number: int) -> list[object]:
    """One turn with so many calls, and an answer."""
    return [reply("", *[call(name, {}, id=f"c{n}") for n in range(number)]), "done"]


def blocking(leave: threading.Event, *, seconds: float | None = None) -> Tool:
    """A tool that holds its thread until it may leave."""

    def block() -> str:
        """Block."""
        leave.wait(20)
        return "left"

    return tool(block, timeout_seconds=seconds)


@tool
def quick() -> str:
    """Return at once."""
    return "quick"


async def begun(stage: Stage, spec: AgentSpec, nursery: trio.Nursery, number: int) -> None:
    """Play it beside; return when so many of its bodies have been entered."""
    host = await stage.spawn(spec)
    nursery.start_soon(stage.play, host)
    entered = 0
    async for event in host.events(after=0):
        entered += isinstance(event, ToolStarted)
        if entered == number:
            break


def test_one_thread_is_left_for_the_others() -> None:
    """However many calls of one agent block, another's run as ever; a sub-agent counts with its root."""
    leave = threading.Event()

    async def scene(stage: Stage) -> tuple[list[str], int, int]:
        stage.faults_expected = True
        child = AgentSpec(model=Scripted(calls("block", 2)), name="child", tools=[blocking(leave)])  # type: ignore[arg-type]
        first = reply("", call("ask_child", {"task": "t"}, id="a"), *[call("block", {}, id=f"c{n}") for n in range(4)])
        hog = AgentSpec(model=Scripted([first, "done"]), tools=[sub_agent(child), blocking(leave)], name="hog")
        async with trio.open_nursery() as nursery:
            await begun(stage, hog, nursery, 3)  # one of them is that of the sub-agent
            seen = stage.runtime.statistics().tool_threads
            played = [await stage.play(await stage.spawn(agent(calls("quick", 3), quick))) for _ in range(2)]
            leave.set()
        return [status for one in played for status, _ in results(one).values()], seen.running, seen.total

    try:
        found = perform(scene, real_time=True, tool_threads=3)
    finally:
        leave.set()

    assert (["ok"] * 6, 2, 3) == found


def test_threads_left_behind_are_the_agents_own_trouble() -> None:
    """Whoever has left too many behind is refused new ones, and told; the others are not."""
    leave = threading.Event()

    async def scene(stage: Stage) -> tuple[dict[str, int], list[str], list[str], int]:
        leaver = await stage.spawn(agent([*calls("block", 70)[:1], *calls("block", 1)], blocking(leave, seconds=0.01)))
        first = await stage.play(leaver)
        other = await stage.play(await stage.spawn(agent(calls("quick", 2), quick)))
        left = stage.runtime.statistics().tool_threads.abandoned
        leave.set()
        found = results(first)
        refused = [text for status, text in found.values() if status == "error"]
        return (
            {status: [one for one, _ in found.values()].count(status) for status in ("timed_out", "error")},
            sorted(set(refused)),
            [status for status, _ in results(other).values()],
            left,
        )

    try:
        counts, refused, others, left = perform(scene, real_time=True, tool_threads=5)
    finally:
        leave.set()

    assert 64 <= counts["timed_out"] == left < 68  # those that ran side by side with the last one
    assert 71 - left == counts["error"]
    assert "of this agent's tool threads that timed out or were cancelled still run; try later" in refused[0]
    assert ["ok", "ok"] == others


def test_agents_take_turns_for_threads() -> None:
    """One call of another does not wait behind all of the first one's."""
    order: list[str] = []
    leave = threading.Event()

    def noting(name: str) -> Tool:
        def note() -> str:
            """Note who has the thread."""
            leave.wait(20)
            order.append(name)
            return name

        return tool(note)

    async def scene(stage: Stage) -> None:
        async with trio.open_nursery() as nursery:
            await begun(stage, agent(calls("note", 6), noting("many")), nursery, 1)
            one = await stage.spawn(agent(calls("note", 1), noting("one")))
            nursery.start_soon(stage.play, one)
            while stage.runtime.statistics().tool_threads.waiting < 6:  # noqa: ASYNC110
                await trio.sleep(0.001)
            leave.set()

    try:
        perform(scene, real_time=True, tool_threads=1)
    finally:
        leave.set()

    assert ["many", "many", "one", "many", "many", "many", "many"] == order
