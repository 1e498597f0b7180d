"""The tree of tasks: who has started whom, and where each waits."""

from __future__ import annotations

import inspect
import re
import sys

import pytest
import trio
import trio.testing

from actors import AgentSpec, format_task_tree, open_runtime, tool
from actors.models.scripted import Scripted, call, reply

SECRET = "the-secret-word"


async def waits(secret: str) -> None:
    del secret
    await trio.sleep_forever()


async def test_a_task_stands_below_the_one_that_started_it() -> None:
    """By its name, with its own innermost line and what of trio it waits in; no value of any variable."""
    async with trio.open_nursery() as outer:

        async def parent() -> None:
            async with trio.open_nursery() as inner:
                inner.start_soon(waits, SECRET, name="child")
                inner.start_soon(waits, SECRET, name="sister")

        outer.start_soon(parent, name="parent")
        await trio.testing.wait_all_tasks_blocked()
        lines = format_task_tree().splitlines()
        outer.cancel_scope.cancel()
    at = next(number for number, line in enumerate(lines) if line.lstrip().startswith("parent "))
    line = inspect.getsourcelines(waits)[1] + 2

    assert re.fullmatch(r"\d+ tasks", lines[0])
    assert f"child  actors/kit/test_tree.py:{line} waits in sleep_forever" == lines[at + 1].lstrip()
    assert indent(lines[at]) + 2 == indent(lines[at + 1])
    assert SECRET not in "".join(lines)


def indent(line: str) -> int:
    return len(line) - len(line.lstrip())


async def test_it_is_bounded() -> None:
    """Of many tasks of one nursery the rest are counted, and so are lines beyond the bound."""
    async with trio.open_nursery() as nursery:
        for number in range(500):
            nursery.start_soon(waits, "", name=f"task {number:03}")
        await trio.testing.wait_all_tasks_blocked()
        few = format_task_tree(max_siblings=10)
        short = format_task_tree(max_lines=20, max_siblings=1000)
        nursery.cancel_scope.cancel()

    assert 10 == few.count("task ")
    assert "task 009" in few
    assert "... and 490 more" in few
    assert 22 == len(short.splitlines())
    assert "... and more" == short.splitlines()[-1]


async def test_a_name_cannot_forge_lines() -> None:
    """What is no printable character is replaced, and a long name is cut."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(waits, "", name="evil\n\x1b[31m" + "x" * 1000)
        await trio.testing.wait_all_tasks_blocked()
        tree = format_task_tree()
        nursery.cancel_scope.cancel()

    assert "evil??[31mx" in tree
    assert max(map(len, tree.splitlines())) < 300


async def test_it_names_agents_runs_and_tools() -> None:
    """As the runtime calls its tasks."""

    async def look() -> None:
        await trio.sleep_forever()

    async with open_runtime() as runtime:
        spec = AgentSpec(name="ann", model=Scripted([reply("", call("look"))]), tools=[tool(look)])
        agent = await runtime.spawn(spec)
        async with agent.run("go") as run:
            await trio.testing.wait_all_tasks_blocked()
            tree = format_task_tree()
            run.cancel()
    names = [line.strip().partition("  ")[0] for line in tree.splitlines()]

    assert {"ann/host", f"ann/{run.id}", f"ann/{run.id}/toolbox", f"ann/{run.id}/session", "look"} <= set(names)
    assert "look in sleep_forever" in tree


async def test_what_runs_now_stands_on_top() -> None:
    """A frame that was interrupted, as a signal handler is given it."""
    tree = format_task_tree(running=sys._getframe())
    await trio.lowlevel.checkpoint()

    assert "test_what_runs_now_stands_on_top" in tree.splitlines()[1]
    assert tree.splitlines()[1].startswith("running now: ")


def test_outside_of_trio_it_says_so() -> None:
    """There is nothing to show."""
    with pytest.raises(RuntimeError, match="async context"):
        format_task_tree()
