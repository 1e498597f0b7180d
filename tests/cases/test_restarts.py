"""The cases whose host dies or is stopped, and begins again: two processes on one journal, and one model that sees both."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import attrs
import trio
import trio.testing

from actors import Agent, AgentSpec, Run, approve, open_runtime, remote
from protocol.codec import decode_event
from protocol.events import Event, RunResumed, ToolFinished
from protocol.requests import DecisionReply
from protocol.result import RunResult
from tests.support.disk import FakeDisk, events_of, journal_on
from tests.support.specs import agent
from tests.support.strict import StrictModel

from .model import CaseModel, rule_of
from .program import CALL_SECONDS
from .tools import Workshop

CASES: dict[str, Any] = {
    case["id"]: case for case in json.loads((Path(__file__).parent / "restarts.json").read_text(encoding="utf-8"))
}


@attrs.define(eq=False)
class Played:
    """What came of a case over both processes."""

    told: dict[str, Any]
    disk: FakeDisk = attrs.field(factory=FakeDisk)
    model: StrictModel = attrs.field(init=False)
    tools: Workshop = attrs.field(init=False)
    result: RunResult | None = None
    replies: list[DecisionReply] = attrs.field(factory=list[DecisionReply])
    seen_again: list[Event] = attrs.field(factory=list[Event])
    """What a client that attaches to the second process with its old cursor sees."""

    def __attrs_post_init__(self) -> None:
        told = self.told["input"]
        self.model = StrictModel(CaseModel(rule_of(told.get("turns") or told["model"]), seconds=CALL_SECONDS))
        self.tools = Workshop(_nobody)

    @property
    def check(self) -> dict[str, Any]:
        return dict(self.told["expected"]["check"])

    @property
    def events(self) -> list[Event]:
        return [decode_event(line) for line in events_of(self.disk.records())]

    def spec(self) -> AgentSpec:
        told = self.told["input"]
        tools = self.tools.make(told["tools"], {})
        limit = told.get("config", {}).get("max_tool_iterations")
        asks = {"approval": remote()} if any(tool.needs_approval for tool in tools) else {}
        return agent(self.model, *tools, name="agent", max_tool_iterations=limit, **asks)


async def _nobody(_name: str) -> str:
    raise AssertionError("no agent is run by a tool here")


async def first_process(came: Played) -> None:
    """Up to the moment of the case: its end is clean where it is stopped, and nothing is written after it where it is killed."""
    (action, *_) = came.told["input"]["actions"]
    kind, _, what = action["when"].partition(":")
    alive = 0
    async with open_runtime(journal=journal_on(came.disk)) as runtime:
        one = await runtime.spawn(came.spec())
        run = await one.start("go")
        while not has_come(one, run, kind, what):  # noqa: ASYNC110  in virtual time
            await trio.sleep(0.01)
        await runtime.flushed()
        alive = len(came.disk.batches)
    if action["do"].startswith("kill"):
        del came.disk.batches[alive:]


def has_come(one: Agent, run: Run, kind: str, what: str) -> bool:
    if kind == "tool_results":
        return sum(isinstance(event, ToolFinished) for event, _ in one.stream.read(0)[1]) >= int(what)
    assert kind == "approval_prompt"
    return bool(run.open_requests)


async def second_process(came: Played) -> None:
    """Start again; where the case has a client, it comes back with its old cursor and approves."""
    cursor = len(events_of(came.disk.records()))
    came.disk = FakeDisk(list(came.disk.batches))
    async with open_runtime(journal=journal_on(came.disk)) as runtime:
        one = await runtime.spawn(came.spec())
        run = one.brought_back
        assert run is not None
        for request in run.open_requests:
            came.replies += [await runtime.decide(request.request, approve()) for _ in range(2)]
        came.result = await run.result()
        assert cursor <= one.stream.visible
        came.seen_again = [event for event, _ in one.stream.read(cursor)[1]]


@functools.cache
def play(id: str) -> Played:
    came = Played(CASES[id])

    async def main() -> None:
        with trio.fail_after(3600):
            await first_process(came)
            await second_process(came)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    return came


def test_lim_17_a_restart_grants_no_fresh_allowance() -> None:
    """LIM-17: after the restart only one more iteration is allowed, and `run_resumed` tells 2 used, not 0."""
    came = play("LIM-17")
    (resumed,) = [event for event in came.events if isinstance(event, RunResumed)]

    assert came.check == {"tool_runs": came.tools.runs}
    assert 2 == resumed.counters.tool_iterations == resumed.counters.window
    assert came.result is not None
    assert (3, "max_iterations") == (came.result.counters.tool_iterations, came.result.finish_reason)
    assert [] == came.model.faults


def test_apr_20_an_approval_outlives_the_process() -> None:
    """APR-20: the request is restored under its id and the approval works, once; the client reads on without a gap."""
    came = play("APR-20")

    assert came.tools.runs["pay"] <= came.check["tool_runs_max"]["pay"] == 1
    assert (came.model.faults == []) is came.check["strict_ok"]
    assert ["accepted", "already_resolved"] == [reply.status for reply in came.replies]
    assert came.result is not None
    assert ("ok", ["ok"]) == (came.result.text, [one.status for one in came.result.steps[0].results])
    assert ["agent_spawned", "run_resumed", "approval_resolved", "tool_started"] == [
        event.type for event in came.seen_again[:4]
    ]
    assert "run_finished" == came.seen_again[-1].type


def test_each_case_is_played() -> None:
    """Nothing stands in the data that no test looks at."""
    assert {"LIM-17", "APR-20"} == set(CASES)
