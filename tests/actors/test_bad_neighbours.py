"""Isolation: whatever one agent does, the run of another has the same events at the same times."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import msgspec
import pytest
import trio
import trio.testing

from actors import (
    AgentSpec,
    Runtime,
    RuntimeLimits,
    ask_agent,
    is_loop_finished,
    open_runtime,
    start_agent,
    sub_agent,
)
from actors.models import Scripted, call, reply
from protocol.errors import AgentBusy, RunError
from protocol.model import ModelEmit, ModelRequest, Profile, TextDelta
from protocol.turns import Turn
from tests.support.scripts import calls_while_on

Neighbour: TypeAlias = Callable[[Runtime], Awaitable[object]]
Seen: TypeAlias = list[tuple[float, str]]
"""When, and what: the event as JSON, with its ids replaced by where they came first."""


# -------------------------------------------------------------------- the one that is measured


async def wait_a_little() -> str:
    """Take a while."""
    await trio.sleep(0.7)
    return "waited"


def measured() -> AgentSpec:
    """Calls of a model and of tools that take time, a sub-agent, an answer."""
    turns = iter([
        reply("I look.", *[call("wait_a_little", id=f"c{n}") for n in range(3)]),
        reply("I ask.", call("ask_helper", {"task": "help"}, id="c4")),
        reply("Once more.", call("wait_a_little", id="c5")),
        reply("Done."),
    ])

    async def slow(_request: ModelRequest) -> Turn:
        await trio.sleep(0.4)
        return next(turns)

    helper = AgentSpec(model=Scripted(["helped"]), name="helper")
    return AgentSpec(model=Scripted(slow), tools=[wait_a_little, sub_agent(helper)], name="measured")


def named(value: Any, names: dict[str, str]) -> Any:
    """The value with its ids replaced by the order in which they came."""
    match value:
        case dict():
            return {key: named(one, names) for key, one in value.items()}
        case list() | tuple():
            return [named(one, names) for one in value]
        case str() if value.startswith(("run-", "m-", "agent-")):
            return names.setdefault(value, f"id {len(names)}")
        case float():
            return round(value, 6)
        case _:
            return value


async def see(runtime: Runtime) -> Seen:
    """A run of the measured one."""
    await trio.sleep_until(1)
    agent = await runtime.spawn(measured())
    seen: Seen = []
    names: dict[str, str] = {}
    async with agent.run("go") as run:
        async for event in run:
            told = named(msgspec.to_builtins(event), names)
            seen.append((round(trio.current_time(), 6), msgspec.json.encode(told, order="sorted").decode()))
    return in_order(seen)


def in_order(seen: Seen) -> Seen:
    """Tasks that begin at the same moment begin in any order: calls of one turn that do are put in order."""
    return [one for _, group in itertools.groupby(seen, key=what) for one in sorted(group)]


def what(seen: tuple[float, str]) -> tuple[float, str]:
    """When it was, and its type."""
    return seen[0], msgspec.json.decode(seen[1])["type"]


# -------------------------------------------------------------------- those beside it


async def runs(runtime: Runtime, model: Any, **options: Any) -> None:
    """One run, however it ends."""
    agent = await runtime.spawn(AgentSpec(model=model, name="bad", **options))
    async with agent.run("go") as run:
        with contextlib.suppress(RunError):
            await run.result()


def raising(error: BaseException) -> Callable[..., Any]:
    def broken(*_args: object) -> Any:
        raise error

    return broken


async def crash() -> str:
    """Crash."""
    raise ExceptionGroup("several", [ValueError("one"), SystemError("two")])


async def leave() -> str:
    """Leave the program."""
    raise SystemExit(3)


async def crashes_in_a_tool(runtime: Runtime) -> None:
    await runs(runtime, Scripted([reply("", call("crash", id="a"), call("leave", id="b")), "ok"]), tools=[crash, leave])


async def crashes_in_a_hook(runtime: Runtime) -> None:
    for hook in ("prepare_step", "prepare_call", "continue_when", "check_answer", "on_step"):
        await runs(runtime, Scripted(["ok"]), **{hook: raising(ValueError(hook))})
    await runs(runtime, Scripted(["ok"]), on_run_end=raising(ValueError("at the end")))


async def crashes_in_a_provider(runtime: Runtime) -> None:
    options = {"continuation": raising(ValueError("who?")), "max_tool_iterations": 1, "tools": [wait_a_little]}
    await runs(runtime, Scripted(calls_while_on(name="wait_a_little")), **options)


async def crashes_in_a_condition(runtime: Runtime) -> None:
    script = Scripted(calls_while_on(name="wait_a_little"))
    await runs(runtime, script, tools=[wait_a_little], stop_when=[raising(ValueError("when?"))])


async def crashes_in_its_model(runtime: Runtime) -> None:
    await runs(runtime, Scripted(raising(ExceptionGroup("several", [ValueError("one")]))))


class Flood:
    """A model that says a lot."""

    name = "flood"
    profile = Profile()

    async def turn(self, _request: ModelRequest, emit: ModelEmit) -> Turn:
        for number in range(20_000):
            emit(TextDelta(f"word {number} "))
            if number % 500 == 0:
                await trio.sleep(0.1)
        return reply("so much")


async def floods_events(runtime: Runtime) -> None:
    await runs(runtime, Flood())


async def floods_its_inbox(runtime: Runtime) -> None:
    """Messages, and runs that wait: more than may."""
    agent = await runtime.spawn(AgentSpec(model=Scripted(lambda _request: "ok"), name="bad", tools=[wait_a_little]))
    promised = [agent.begin("go", if_busy="queue") for _ in range(200)]
    run = await promised[0].wait()
    with contextlib.suppress(RunError):
        for number in range(500):
            run.steer(f"message {number}")
    for one in promised[1:]:
        with contextlib.suppress(AgentBusy):
            await (await one.wait()).wait_ended()


async def leaks_tasks(runtime: Runtime) -> None:
    """What it has started in the background is waited for by nobody."""

    async def sleep(_request: ModelRequest) -> Turn:
        await trio.sleep(1000)
        return reply("late")

    async def start() -> str:
        """Start many."""
        await trio.lowlevel.checkpoint()
        for _ in range(20):
            start_agent(AgentSpec(model=Scripted(sleep), name="forgotten"), "t")
        return "started"

    await runs(runtime, Scripted([reply("", call("start", id="a")), "done"]), tools=[start])


async def never_ends(runtime: Runtime) -> None:
    async def soon(request: ModelRequest) -> Any:
        await trio.sleep(0.03)
        return follow(request)

    follow: Any = calls_while_on(name="wait_a_little")
    await runs(runtime, Scripted(soon), tools=[wait_a_little], stop_when=[is_loop_finished()])


async def returns_a_lot(runtime: Runtime) -> None:
    async def huge() -> Any:
        """Far too much."""
        await trio.lowlevel.checkpoint()
        return ["x" * 1000] * 5000

    await runs(runtime, Scripted([*[reply("", call("huge", id=f"c{n}")) for n in range(5)], "ok"]), tools=[huge])


async def asks_its_like(runtime: Runtime) -> None:
    """Without end."""

    def endless() -> AgentSpec:
        async def ask() -> str:
            """Ask another one."""
            return await ask_agent(endless(), "again")

        return AgentSpec(model=Scripted([reply("", call("ask", id="c")), "ok"]), tools=[ask], name="bad")

    agent = await runtime.spawn(endless())
    async with agent.run("go") as run:
        await run.result()


async def ignores_its_cancel(runtime: Runtime) -> None:
    async def stay() -> str:
        """Stay."""
        with trio.CancelScope(shield=True):
            await trio.sleep(500)
        return "stayed"

    with trio.move_on_after(1.2):
        await runs(runtime, Scripted([reply("", call("stay", id="c")), "ok"]), tools=[stay])


async def is_never_read(runtime: Runtime) -> None:
    """A reader that stands still, and more events than are kept for it."""
    agent = await runtime.spawn(AgentSpec(model=Flood(), name="bad"))
    reader = agent.events(after=0)
    async with agent.run("go") as run:
        await run.result()
    await anext(reader)


async def holds_the_thread(runtime: Runtime) -> None:
    """What it computes takes real time, which nobody else has meanwhile; no time of trio's passes."""

    async def compute() -> int:
        """Compute."""
        await trio.sleep(0.5)
        return sum(range(300_000))

    turns = [reply("", *[call("compute", id=f"c{n}-{k}") for k in range(3)]) for n in range(4)]
    await runs(runtime, Scripted([*turns, "ok"]), tools=[compute])


async def fills_the_runtime(runtime: Runtime) -> None:
    """With agents that do nothing."""
    for number in range(50):
        await runtime.spawn(AgentSpec(model=Scripted(["ok"]), name=f"bad {number}"))


BAD: list[Neighbour] = [
    crashes_in_a_tool,
    crashes_in_a_hook,
    crashes_in_a_provider,
    crashes_in_a_condition,
    crashes_in_its_model,
    floods_events,
    floods_its_inbox,
    leaks_tasks,
    never_ends,
    returns_a_lot,
    asks_its_like,
    ignores_its_cancel,
    is_never_read,
    holds_the_thread,
    fills_the_runtime,
]


async def again_and_again(neighbour: Neighbour, runtime: Runtime) -> None:
    """From shortly after the measured run begins until it is over."""
    await trio.sleep_until(1.2)
    while True:
        await neighbour(runtime)
        await trio.sleep(1)


def play(*neighbours: Neighbour, limits: RuntimeLimits | None = None) -> Seen:
    """The measured run, beside these."""

    async def main() -> Seen:
        with trio.fail_after(3600):
            async with open_runtime(limits=limits) as runtime, trio.open_nursery() as nursery:
                for neighbour in neighbours:
                    nursery.start_soon(again_and_again, neighbour, runtime)
                seen = await see(runtime)
                nursery.cancel_scope.cancel("that is all")
        return seen

    return trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def test_it_has_something_to_lose() -> None:
    """The measured run is what it should be: steps, tools side by side, a sub-agent, an answer, over some seconds."""
    seen = play()
    types = [msgspec.json.decode(event)["type"] for _, event in seen]

    assert (1.0, 4.0) == (seen[0][0], seen[-1][0])
    assert (2, 5, 2) == (types.count("run_started"), types.count("tool_finished"), types.count("run_finished"))


@pytest.mark.parametrize("neighbour", BAD, ids=lambda neighbour: neighbour.__name__)
def test_beside_a_bad_one(neighbour: Neighbour) -> None:
    """The same events, at the same times, as with nobody beside it."""
    assert play() == play(neighbour)


@pytest.mark.slow
def test_beside_all_of_them() -> None:
    """Together, too; and with limits that none of it comes near."""
    limits = RuntimeLimits(max_agents=1000, max_model_calls=1000, max_history_bytes=1 << 30)

    assert play() == play(*BAD, limits=limits)
