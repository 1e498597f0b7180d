"""A run in several lives: the process dies at a moment, and another one goes on from what is on the disk.

What the world saw (bodies entered, requests sent) is kept as it was when the next commit would have come: all that may have
happened outside although the disk does not tell of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs
import trio
import trio.testing

from actors import (
    Agent,
    AgentSpec,
    ApprovalResponse,
    ContinuationResponse,
    Run,
    external_tool,
    open_runtime,
    remote,
    summarise,
    tool,
    trim,
)
from actors import sub_agent as agent_tool
from actors.models.scripted import call, reply
from protocol.codec import decode_event
from protocol.errors import ContextOverflow
from protocol.events import ApprovalRequired, Event, RunEvent
from protocol.grammar import Grammar
from protocol.model import ModelEmit, ModelRequest, Profile, RequestSent, TextDelta
from protocol.result import RunResult
from protocol.turns import TextPart, ToolMessage, Turn, UserMessage, raw_text_of
from tests.support.disk import Batch, FakeDisk, events_of, journal_on


@attrs.define(eq=False)
class World:
    """What really happened."""

    entered: list[str] = attrs.field(factory=list[str])
    """Calls whose body was entered."""
    sent: int = 0
    """Requests that left for the model."""
    asked: list[str] = attrs.field(factory=list[str])
    """Requests that a provider function was asked about."""

    def enter(self, task: str) -> None:
        """A body is entered: what it does has happened."""
        self.entered.append(task)

    def send(self) -> None:
        """A request leaves."""
        self.sent += 1

    def seen(self) -> tuple[tuple[str, ...], int]:
        return tuple(self.entered), self.sent


@attrs.define(eq=False)
class Reader:
    """A model that reads from the conversation where it stands: a new one goes on like the old one."""

    world: World
    rounds: int = 3
    width: int = 2
    tools: tuple[str, ...] = ("work",)
    name: str = "reader"
    profile: Profile = Profile(keeps_tools_when_off=True, reports_sending=True)

    async def turn(self, request: ModelRequest, emit: ModelEmit) -> Turn:
        await trio.lowlevel.checkpoint()
        self.world.send()
        emit(RequestSent())
        await trio.sleep(0.01)
        done = sum(isinstance(message, ToolMessage) for message in request.messages)
        text = f"round {done}{'!' * sum(isinstance(message, UserMessage) for message in request.messages)}"
        for piece in (text[:3], text[3:]):
            emit(TextDelta(piece))
            await trio.sleep(0.01)
        if not request.tools_on or done >= self.rounds:
            return reply(text)
        prompt = request.messages[0]
        assert isinstance(prompt, UserMessage)
        tasks = [f"{prompt.text}.{done}-{number}" for number in range(self.width)]
        calls = [
            call(self.tools[number % len(self.tools)], {"task": task}, id=f"c{task}")
            for number, task in enumerate(tasks)
        ]
        return reply(text, *calls)


def messages_of(request: ModelRequest) -> int:
    """What stands for tokens here: results that were interrupted are longer, and must not change what is compacted when."""
    return len(request.messages)


@attrs.define(eq=False)
class Forgetful(Reader):
    """One whose conversation is compacted: it reads from the newest results where it stands, and sums up when it is asked to."""

    takes: int = 1000
    """Messages that its server takes."""
    profile: Profile = Profile(keeps_tools_when_off=True, reports_sending=True, count_tokens=messages_of)

    async def turn(self, request: ModelRequest, emit: ModelEmit) -> Turn:
        await trio.lowlevel.checkpoint()
        self.world.send()
        emit(RequestSent())
        await trio.sleep(0.01)
        if request.system is not None:
            return reply(f"summary {1 + str(request.messages[0]).count('summary ')}")
        if len(request.messages) > self.takes:
            raise ContextOverflow("too many messages", status=400)
        last = request.messages[-1]
        done = int(last.results[0].call.split(".")[1].split("-")[0]) + 1 if isinstance(last, ToolMessage) else 0
        text = f"round {done}"
        emit(TextDelta(text))
        if done >= self.rounds:
            return reply(text)
        return reply(text, *[call("work", {"task": f"go.{done}-{n}"}, id=f"cgo.{done}-{n}") for n in range(self.width)])


@attrs.frozen
class Scenario:
    """What kind of run it is."""

    name: str
    make: Callable[[World], AgentSpec]
    steer: bool = False
    cancels: bool = False
    """Whoever started it cancels it in the middle."""


@attrs.define(eq=False)
class Life:
    """One process, from its start to the end of the run."""

    world: World
    disk: FakeDisk
    snapshots: list[tuple[tuple[str, ...], int]] = attrs.field(factory=list)
    """What the world had seen when commit number i was to come: the most that i commits may not tell of."""
    open_at_start: tuple[str, ...] = ()
    result: RunResult | None = None
    agent: Agent | None = None
    refused: int = 0
    accounts: list[Any] = attrs.field(factory=list)

    @property
    def events(self) -> list[Event]:
        """All that the disk tells, from the first life on."""
        return [decode_event(data) for data in events_of(self.disk.records())]


def live(scenario: Scenario, batches: Iterable[Batch] = ()) -> Life:
    """Live on from what is on the disk until the run is over; without a run in hand, begin one."""
    world = World()
    life = Life(world, FakeDisk(list(batches)))
    life.snapshots += [((), 0)] * len(life.disk.batches)
    life.disk.before_commit = lambda _number: life.snapshots.append(world.seen())
    trio.run(_main, scenario, life, clock=trio.testing.MockClock(autojump_threshold=0))
    return life


async def _main(scenario: Scenario, life: Life) -> None:
    with trio.fail_after(100_000):
        async with open_runtime(journal=journal_on(life.disk), stop_grace_seconds=0.1) as runtime:
            agent = life.agent = await runtime.spawn(scenario.make(life.world))
            run = agent.brought_back
            if run is None and agent.messages:
                return  # it was over
            if run is None:
                run = await agent.start("go")
            if scenario.steer and not any(b'"message_queued"' in line for line in events_of(life.disk.records())):
                run.steer("left")  # it was never acknowledged: whoever said it says it again
            life.open_at_start = tuple(request.request for request in run.open_requests)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(answer_all, run, 0.05)
                await run.wait_ended()
                nursery.cancel_scope.cancel("the run is over")
            life.result = await run.result()
            life.refused = run.statistics().refused_events
            life.accounts.append(run.statistics().account)


async def answer_all(run: Run, seconds: float) -> None:
    """Answer what the run asks from outside, a moment after it was asked."""
    while True:
        await trio.sleep(seconds)
        for request in run.open_requests:
            response = (
                ApprovalResponse("approve")
                if isinstance(request, ApprovalRequired)
                else ContinuationResponse("approve", message="go on")
            )
            await run.decide(request.request, response)
        if run.pending:
            run.submit({run.pending[0].id: "given"})


# ------------------------------------------------------------ scenarios


def worker(world: World, **options: Any) -> Any:
    """A tool that takes a moment; its effect has happened as soon as it is entered."""

    async def work(task: str) -> str:
        """Do some work."""
        world.enter(task)
        await trio.sleep(0.02 if task.endswith("0") else 0.03)
        return f"did {task}"

    return tool(work, **options)


def _plain(world: World) -> AgentSpec:
    return AgentSpec(model=Reader(world), tools=[worker(world)])


def _in_order(world: World) -> AgentSpec:
    return AgentSpec(model=Reader(world, 1, 4), tools=[worker(world)], max_parallel_tools=2)


def _gate(world: World) -> AgentSpec:
    return AgentSpec(model=Reader(world), tools=[worker(world)], max_tool_iterations=2, continuation=remote())


def _provider(world: World) -> AgentSpec:
    async def decide(request: Any) -> ContinuationResponse:
        world.asked.append(request.request)
        await trio.sleep(5)
        return ContinuationResponse("approve", message="go on")

    return AgentSpec(model=Reader(world), tools=[worker(world)], max_tool_iterations=2, continuation=decide)


def _decline(world: World) -> AgentSpec:
    def decide(_request: Any) -> ContinuationResponse:
        return ContinuationResponse("decline")

    return AgentSpec(model=Reader(world), tools=[worker(world)], max_tool_iterations=2, continuation=decide)


def _approval(world: World) -> AgentSpec:
    return AgentSpec(model=Reader(world, 2), tools=[worker(world, needs_approval=True)], approval=remote())


def _callers(world: World) -> AgentSpec:
    given = external_tool("ask", "Ask the caller.", {"type": "object", "properties": {"task": {"type": "string"}}})
    return AgentSpec(model=Reader(world, 2, 3, ("ask", "work")), tools=[worker(world), given])


def _child(world: World) -> AgentSpec:
    child = AgentSpec(
        name="child", model=Reader(world, 2, 1), tools=[worker(world)], max_tool_iterations=1, continuation=remote()
    )
    return AgentSpec(model=Reader(world, 2, 2, ("ask_child", "work")), tools=[agent_tool(child), worker(world)])


def _hooks(world: World) -> AgentSpec:
    async def check(text: str) -> str | None:
        await trio.sleep(0.01)
        return None if text.endswith("!!") else "once more"

    async def condition(_state: Any) -> None:
        await trio.sleep(0.01)

    return AgentSpec(
        model=Reader(world, 2), tools=[worker(world)], check_answer=check, stop_when=[condition], max_continues=1
    )


def _final(world: World) -> AgentSpec:
    async def check(_text: str) -> None:
        await trio.sleep(0.01)

    async def instruction(_context: Any) -> str:
        await trio.sleep(0.01)
        return "Answer now."

    return AgentSpec(
        model=Reader(world, 9),
        tools=[worker(world)],
        max_tool_iterations=2,
        tool_iteration_limit_finalization=instruction,
        check_answer=check,
    )


def _around(world: World) -> AgentSpec:
    async def around(_call: Any, proceed: Any) -> Any:
        await trio.sleep(0.01)
        value = await proceed()
        await trio.sleep(0.01)
        return value

    return AgentSpec(model=Reader(world, 2), tools=[worker(world)], around_tool=around)


def _summarised(world: World) -> AgentSpec:
    hook = summarise(summary_max_tokens=1)
    return AgentSpec(model=Forgetful(world, 8, 1), tools=[worker(world)], compact=hook, compact_at_tokens=8)


def _trimmed(world: World) -> AgentSpec:
    return AgentSpec(model=Forgetful(world, 5, 2, takes=6), tools=[worker(world)], compact=trim())


@attrs.define(eq=False)
class Piecemeal(Reader):
    """Its last answer comes in pieces, each of which goes on with the text of those before."""

    profile: Profile = Profile(keeps_tools_when_off=True, reports_sending=True, continues_text="exact_prefix")

    async def turn(self, request: ModelRequest, emit: ModelEmit) -> Turn:
        before = "" if request.resume is None else raw_text_of(request.resume.parts)
        done = sum(isinstance(message, ToolMessage) for message in request.messages)
        if done < self.rounds and not before:
            return await super().turn(request, emit)
        await trio.lowlevel.checkpoint()
        self.world.send()
        emit(RequestSent())
        await trio.sleep(0.01)
        piece = f"piece {len(before) // 8} "
        emit(TextDelta(piece))
        await trio.sleep(0.01)
        whole = len(before) >= 24
        return Turn((TextPart(piece),), "stop" if whole else "length")


def _continued(world: World) -> AgentSpec:
    return AgentSpec(model=Piecemeal(world, 1), tools=[worker(world)], automatic_continuation=True)


def _function_approves(world: World) -> AgentSpec:
    async def decide(request: Any) -> ApprovalResponse:
        world.asked.append(request.request)
        await trio.sleep(0.01)
        return ApprovalResponse("approve")

    return AgentSpec(model=Reader(world, 2), tools=[worker(world, needs_approval=True)], approval=decide)


SCENARIOS = [
    Scenario("plain", _plain),
    Scenario("steered", _plain, steer=True),
    Scenario("in order", _in_order),
    Scenario("gate", _gate),
    Scenario("provider", _provider),
    Scenario("decline", _decline),
    Scenario("approval", _approval),
    Scenario("caller's tools", _callers),
    Scenario("sub-agent", _child),
    Scenario("hooks", _hooks),
    Scenario("final call", _final),
    Scenario("around", _around),
    Scenario("summarised", _summarised),
    Scenario("trimmed", _trimmed),
    Scenario("continued", _continued),
    Scenario("approval function", _function_approves),
    Scenario("cancelled", _plain, cancels=True),
]


def faults_of_events(events: Iterable[Event]) -> list[str]:
    """What the grammar would have refused, of any run, over all lives."""
    grammars: dict[str, Grammar] = {}
    faults: list[str] = []
    for event in events:
        if isinstance(event, RunEvent) and not grammars.setdefault(event.run, Grammar()).admit(event):
            faults.append(f"{event.type} of {event.run} came where it may not")
    return faults + [f"{run} has no end" for run, grammar in grammars.items() if grammar.phase != "over"]
