"""Runs that are brought back only to end: nothing of them goes on, and the conversation says what the events say."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from actors import Agent, AgentSpec, open_runtime, tool
from actors.models.scripted import Scripted, call, reply
from protocol.codec import decode_event
from protocol.events import Event, RunCancelled, RunFinished, StepStarted, ToolFinished
from protocol.history import first_fault
from protocol.model import ModelRequest
from protocol.turns import AssistantMessage, TextPart, ToolMessage, Turn, UserMessage
from tests.support.disk import FakeDisk, events_of, facts_of, journal_on


def events_on(disk: FakeDisk) -> list[Event]:
    return [decode_event(line) for line in events_of(disk.records())]


def until(disk: FakeDisk, holds: Any) -> FakeDisk:
    """The disk as it was when that held of a record first."""
    for number, batch in enumerate(disk.batches, 1):
        if any(holds(record) for record in batch):
            return FakeDisk(disk.batches[:number])
    raise AssertionError("it never did")


async def slow(_seen: object) -> None:
    await trio.sleep(1)


async def cut(_request: ModelRequest) -> Turn:
    return Turn((TextPart("half"),), "length", "length")


async def test_a_run_that_had_come_to_its_end_sends_nothing_more(autojump_clock: trio.testing.MockClock) -> None:
    """Its process died between its last step and its end: the end is told, and that is all."""
    told: list[str] = []

    def spec(model: Scripted) -> AgentSpec:
        return AgentSpec(
            name="agent", model=model, on_step=slow, on_run_end=lambda result: told.append(result.finish_reason)
        )

    disk = FakeDisk()
    async with open_runtime(journal=journal_on(disk)) as runtime:
        agent = await runtime.spawn(spec(Scripted(cut)))
        await (await agent.start("go")).result()
    disk = until(disk, lambda record: (run := facts_of(record).run) is not None and run.end is not None)
    model = Scripted(["never", "second"])
    told.clear()
    async with open_runtime(journal=journal_on(disk)) as runtime:
        agent = await runtime.spawn(spec(model))
        run = agent.brought_back
        assert run is not None
        result = await run.result()
        await trio.sleep(10)
        asked = len(model.requests)
        messages = list(agent.messages)
        async with agent.run("more") as next_run:
            await next_run.result()

    assert ("half", "length", 0) == (result.text, result.finish_reason, asked)
    assert [UserMessage("go"), AssistantMessage((TextPart("half"),), partial=True)] == messages
    assert [0, 0] == [event.step for event in events_on(disk) if isinstance(event, StepStarted)], "one for each run"
    assert 2 == len([event for event in events_on(disk) if isinstance(event, RunFinished)])
    assert ["length", "stop"] == told
    assert 0 == run.statistics().refused_events


async def test_a_run_that_had_been_cancelled_sends_nothing_more(autojump_clock: trio.testing.MockClock) -> None:
    """Its process died before the end of it was told: it is told now, and no model is asked."""

    async def long() -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(1)
        return "late"

    def spec(model: Scripted) -> AgentSpec:
        return AgentSpec(name="agent", model=model, tools=[tool(long, description="Long.")])

    disk = FakeDisk()
    async with open_runtime(journal=journal_on(disk)) as runtime:
        agent = await runtime.spawn(spec(Scripted([reply("", call("long", {}, id="c1"))])))
        run = await agent.start("go")
        await trio.sleep(0.5)
        run.cancel("no more")
        await run.wait_ended()
    disk = until(disk, lambda record: (run := facts_of(record).run) is not None and run.cancel is not None)
    model = Scripted(["never"])
    async with open_runtime(journal=journal_on(disk)) as runtime:
        agent = await runtime.spawn(spec(model))
        await trio.sleep(10)

    assert [] == model.requests
    assert ["no more"] == [event.reason for event in events_on(disk) if isinstance(event, RunCancelled)]
    assert ["interrupted"] == [event.status for event in events_on(disk) if isinstance(event, ToolFinished)]


@pytest.mark.parametrize("is_there", [True, False])
async def test_an_agent_below_keeps_what_it_had_come_to(
    autojump_clock: trio.testing.MockClock, *, is_there: bool
) -> None:
    """An agent of its own that ran for another one: what the events tell of its calls stands in its conversation."""

    async def work() -> str:
        await trio.sleep(60)
        return "done"

    def child_spec(*script: Any) -> AgentSpec:
        return AgentSpec(name="child", model=Scripted(script), tools=[tool(work, description="Work.")])

    def parent_spec(child: Agent | None, *script: Any) -> AgentSpec:
        async def ask() -> str:
            assert child is not None
            async with child.run("do it") as run:
                return (await run.result()).text

        return AgentSpec(name="parent", model=Scripted(script), tools=[tool(ask, description="Ask.")])

    disk = FakeDisk()
    async with open_runtime(journal=journal_on(disk), stop_grace_seconds=0) as runtime:
        child: Agent | None = await runtime.spawn(child_spec(reply("", call("work", {}, id="w1"))))
        parent = await runtime.spawn(parent_spec(child, reply("", call("ask", {}, id="p1"))))
        await parent.start("go")
        await trio.sleep(30)
        batches = list(disk.batches)
    async with open_runtime(journal=journal_on(disk := FakeDisk(batches))) as runtime:
        child = await runtime.spawn(child_spec("answer")) if is_there else None
        parent = await runtime.spawn(parent_spec(child, "all done"))
        assert parent.brought_back is not None
        await parent.brought_back.wait_ended()
        if child is None:  # it comes too late for it
            child = await runtime.spawn(child_spec("answer"))
        messages = list(child.messages)
        async with child.run("again") as run:
            result = await run.result()
    results = [entry for message in messages if isinstance(message, ToolMessage) for entry in message.results]

    assert UserMessage("do it") == messages[0]
    assert ([("w1", "interrupted")] if is_there else []) == [(one.call, one.status) for one in results]
    assert None is first_fault(child.messages)
    assert "answer" == result.text
