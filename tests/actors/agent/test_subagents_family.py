"""Sub-agents and those above them: fan-out, accounts, gates, time and cancel go up and down the tree (N1-N3, B0, B2)."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from actors import (
    Agent,
    Budget,
    ContinuationResponse,
    Run,
    StepOverrides,
    approve,
    ask_agent,
    remote,
    sub_agent,
    tool,
)
from actors.models.scripted import call, reply
from protocol.errors import RunCancelledError
from protocol.events import (
    ApprovalRequired,
    ContinuationRequired,
    ContinuationResolved,
    RunCancelled,
    RunEvent,
    RunFinished,
    RunStarted,
)
from protocol.limits import LimitState
from protocol.model import ModelRequest
from protocol.usage import Usage

from ...support.play import Played, Stage, perform
from ...support.scripts import Bench, calls_while_on
from ._team import Team, ask, finished, told

TASKS = ("a", "b", "c", "d", "e")


async def slowly(request: ModelRequest) -> Any:
    """An answer that takes a second, and reports its usage."""
    await trio.sleep(1)
    return reply(f"found {request.messages[0].text}", usage=Usage(10, 0, 0, 5, 0, True))  # type: ignore[union-attr]


async def family(
    stage: Stage, team: Team, *tools: Any, act: Any = None, **options: Any
) -> tuple[Played, list[RunEvent]]:
    root = await stage.spawn(team.spec("root", *tools, **options))
    return await stage.play(root, act=act), await told(stage)


@pytest.mark.parametrize("order", range(3))
def test_five_side_by_side(order: int) -> None:
    """The calls of one turn run at the same time, each in an agent of its own, under one budget."""
    team = Team(root=[ask("child", *TASKS), "seen"], child=slowly)
    budget = Budget(max_llm_calls=7)

    async def scene(stage: Stage) -> Any:
        return await family(stage, team, sub_agent(team.spec("child")), budget=budget)

    played, events = perform(scene, order=order)

    assert [("ok", f"found {task}") for task in TASKS] == [finished(events, f"child-{task}") for task in TASKS]
    assert (1.0, "seen", 7, 75) == (
        played.seconds,
        played.result.text,
        played.result.counters.llm_calls,
        played.result.usage.total_tokens,
    )
    assert (7, 75) == (budget.statistics().llm_calls, budget.usage.total_tokens)
    assert 5 == len({event.run for event in events if event.agent_path})


@pytest.mark.parametrize("order", range(3))
@pytest.mark.parametrize(("hold", "admitted", "text"), [(None, 3, ""), ("", 2, "seen")])
def test_a_budget_admits_as_many_as_it_holds(hold: str | None, admitted: int, text: str, order: int) -> None:
    """Of five at once as many begin as there are calls, one less where the last is held; the others say why not."""
    team = Team(root=[ask("child", *TASKS), "seen"], child=slowly)

    async def scene(stage: Stage) -> Any:
        child = sub_agent(team.spec("child"))
        return await family(stage, team, child, max_llm_calls=4, llm_call_limit_finalization=hold)

    played, events = perform(scene, order=order)
    ends = [finished(events, f"child-{task}") for task in TASKS]
    refused = [text for status, text in ends if status == "error"]

    assert (admitted, admitted) == ([status for status, _ in ends].count("ok"), len(team.asked("child")))
    assert all("its limit of 4 model calls was reached" in text for text in refused)
    assert (text, "llm_calls") == (played.result.text, played.result.stopped_by)
    assert LimitState("llm_calls", 4, 4) == played.result.limit


def test_an_agent_takes_one_task_after_the_other() -> None:
    """An `Agent` goes on with its own conversation: calls of one turn wait for each other."""
    team = Team(root=[ask("child", "a", "b"), "seen"], child=slowly)

    async def scene(stage: Stage) -> Any:
        child = await stage.spawn(team.spec("child"))
        played = await stage.play(await stage.spawn(team.spec("root", sub_agent(child))))
        return played, child.statistics().state

    played, state = perform(scene)

    assert (2.0, "idle") == (played.seconds, state)
    assert ["a", "b"] == sorted(team.asked("child")[1].texts)


@pytest.mark.parametrize("through", ["itself", "another"])
def test_an_agent_that_would_wait_for_itself(through: str) -> None:
    """A task that could never begin is refused at once."""
    team = Team(
        root=[ask("root", "x") if through == "itself" else ask("child", "x"), "seen"], child=[ask("root", "y"), "ok"]
    )
    agents: dict[str, Agent] = {}

    async def ask_root(task: str) -> Any:
        """Ask the root."""
        return await sub_agent(agents["root"]).call({"task": task})

    async def ask_child(task: str) -> Any:
        """Ask the child."""
        return await sub_agent(agents["child"]).call({"task": task})

    async def scene(stage: Stage) -> Any:
        agents["root"] = await stage.spawn(team.spec("root", ask_root, ask_child))
        agents["child"] = await stage.spawn(team.spec("child", ask_root))
        await stage.play(agents["root"])
        return await told(stage)

    events = perform(scene)
    asked = "root-x" if through == "itself" else "root-y"

    assert ("error", "the agent root waits for this task itself, and could never begin it") == finished(events, asked)


def test_its_own_budget_counts_too() -> None:
    """A child draws on its caller's account and on its spec's budget, whichever ends first."""
    team = Team(root=[ask("child", "a", "b", "c"), "seen"], child=slowly)
    budget = Budget(max_llm_calls=2)

    async def scene(stage: Stage) -> Any:
        return await family(stage, team, sub_agent(team.spec("child", budget=budget)), max_llm_calls=9)

    played, events = perform(scene)

    assert ["error", "ok", "ok"] == sorted(finished(events, f"child-{task}")[0] for task in "abc")
    assert (2, 4, "seen") == (
        budget.statistics().llm_calls,
        played.result.counters.llm_calls,
        played.result.text,
    )


def test_three_levels() -> None:
    """Paths grow downwards, all accounts know of each call, and the root's limit holds at the bottom."""
    team = Team(root=[ask("child", "x"), "seen"], child=[ask("leaf", "y"), "told"], leaf=calls_while_on())

    async def scene(stage: Stage) -> Any:
        leaf = sub_agent(team.spec("leaf", Bench().tool(), max_tool_iterations=9))
        return await family(stage, team, sub_agent(team.spec("child", leaf)), max_llm_calls=5)

    played, events = perform(scene)
    starts = [event.agent_path for event in events if isinstance(event, RunStarted)]
    ends = {event.agent_path: event.summary for event in events if isinstance(event, RunFinished)}

    assert [(), ("child",), ("child", "leaf")] == starts
    assert (3, 4, 5) == (
        ends["child", "leaf"].counters.llm_calls,
        ends["child",].counters.llm_calls,
        ends[()].counters.llm_calls,
    )
    assert ["llm_calls"] * 3 == [ends[path].stopped_by for path in starts]
    assert played.result.limit == ends["child", "leaf"].limit == LimitState("llm_calls", 5, 5)


ROUNDS = [reply("", call("t", {}, id=f"t{n}")) for n in range(2)]


@pytest.mark.parametrize("decision", ["approve", "decline"])
def test_its_gate_is_decided_through_the_root(decision: Any) -> None:
    """The question stands in the root's stream with the path; `run.decide` of the root answers it (N1, G9)."""
    team = Team(root=[ask("child", "x"), "seen"], child=[*ROUNDS, "found"])
    replies: list[str] = []
    open_ones: list[bool] = []

    async def act(run: Run) -> None:
        async for event in run:
            if isinstance(event, ContinuationRequired):
                open_ones.append([request.request for request in run.open_requests] == [event.request])
                replies.append((await run.decide(event.request, ContinuationResponse(decision))).status)
                replies.append((await run.decide(event.request, ContinuationResponse(decision))).status)

    async def scene(stage: Stage) -> Any:
        child = team.spec("child", Bench().tool(), max_tool_iterations=1, continuation=remote())
        return await family(stage, team, sub_agent(child), act=act)

    played, events = perform(scene)
    (asked,) = [event for event in events if isinstance(event, ContinuationRequired)]
    (resolved,) = [event for event in events if isinstance(event, ContinuationResolved)]
    status, text = finished(events, "child-x")

    assert [True] == open_ones
    assert (("child",), ("child",)) == (asked.agent_path, resolved.agent_path)
    assert ["accepted", "already_resolved"] == replies
    assert ("ok", decision == "decline") == (status, "reached its limit of 1 rounds of tool calls" in text)
    assert text.startswith("found")
    assert "seen" == played.result.text


def test_its_approvals_are_decided_through_the_root() -> None:
    """A child's question about a call is answered like its gate."""
    bench = Bench()
    team = Team(root=[ask("child", "x"), "seen"], child=[ROUNDS[0], "found"])

    async def careful() -> str:
        """Needs approval."""
        return "done"

    async def act(run: Run) -> None:
        async for event in run:
            if isinstance(event, ApprovalRequired):
                await run.decide(event.request, approve())

    async def scene(stage: Stage) -> Any:
        child = team.spec("child", tool(careful, name="t", needs_approval=True), approval=remote())
        return await family(stage, team, sub_agent(child), act=act)

    _, events = perform(scene)

    assert ("ok", "done") == finished(events, "t0")
    assert {} == bench.runs


def test_a_cancel_at_its_gate() -> None:
    """The root's cancel closes the child's question `cancelled`, then ends the child, then the root."""
    team = Team(root=[ask("child", "x")], child=ROUNDS)

    async def act(run: Run) -> None:
        await trio.sleep(5)
        run.cancel("enough")

    async def scene(stage: Stage) -> Any:
        child = team.spec("child", Bench().tool(), max_tool_iterations=1, continuation=remote())
        played, events = await family(stage, team, sub_agent(child), act=act)
        await trio.testing.wait_all_tasks_blocked()
        return played, events, len(stage.runtime.agents)

    played, events, agents = perform(scene)
    ends = [event for event in events if isinstance(event, (ContinuationResolved, RunCancelled))]

    assert isinstance(played.error, RunCancelledError)
    assert [("continuation_resolved", ("child",)), ("run_cancelled", ("child",)), ("run_cancelled", ())] == [
        (event.type, event.agent_path) for event in ends
    ]
    assert ("cancelled", "not_run", "interrupted", 1) == (
        ends[0].outcome,  # type: ignore[union-attr]
        finished(events, "t1")[0],
        finished(events, "child-x")[0],
        agents,
    )


def test_a_stop_lets_it_come_to_its_end() -> None:
    """The root's stop takes effect at the root's boundary: the child that runs is part of the step in hand (M2)."""
    team = Team(root=[ask("child", "x")], child=slowly)

    async def act(run: Run) -> None:
        await trio.sleep(0.5)
        run.stop("enough")

    async def scene(stage: Stage) -> Any:
        return await family(stage, team, sub_agent(team.spec("child")), act=act)

    played, events = perform(scene)

    assert ("ok", "found x") == finished(events, "child-x")
    assert ("caller", 1.0) == (played.result.stopped_by, played.seconds)


def test_waits_for_a_decision_are_nobodys_time() -> None:
    """While all that a child does is wait for a decision, neither its caller's tool timeout nor any wall clock runs."""
    team = Team(root=[ask("child", "x"), "seen"], child=[*ROUNDS, "found"])

    async def act(run: Run) -> None:
        asked = await event_of_any(run, ContinuationRequired)
        await trio.sleep(300)
        await run.decide(asked.request, ContinuationResponse("approve"))

    async def scene(stage: Stage) -> Any:
        child = team.spec("child", Bench().tool(seconds=1), max_tool_iterations=1, continuation=remote())
        tools = sub_agent(child, timeout_seconds=4)
        return await family(stage, team, tools, act=act, wall_clock_seconds=5)

    played, events = perform(scene)

    assert ("ok", "found") == finished(events, "child-x")
    assert ("seen", 302.0) == (played.result.text, played.seconds)


async def event_of_any(run: Run, kind: Any) -> Any:
    """The first event of a class in a run's stream, whoever's it is."""
    async for event in run:
        if isinstance(event, kind):
            return event
    raise AssertionError("the run ended before it")


def test_the_callers_time_ends_it() -> None:
    """The root's wall clock cuts the child: `timed_out` for the call, and each run says so."""
    team = Team(root=[ask("child", "x")], child=calls_while_on())

    async def scene(stage: Stage) -> Any:
        child = team.spec("child", Bench().tool(seconds=4))
        return await family(stage, team, sub_agent(child), wall_clock_seconds=10)

    played, events = perform(scene)

    assert ("wall_clock", 10.0) == (played.result.stopped_by, played.seconds)
    assert "timed_out" == finished(events, "child-x")[0]


def test_limits_and_gates_are_not_inherited() -> None:
    """The root's window and gate are its own: the child's rounds are not counted in it, and nobody is asked (N1)."""
    team = Team(root=[ask("child", "x"), "seen"], child=[*ROUNDS, "found"])
    asked: list[Any] = []

    def decide(request: Any) -> ContinuationResponse:
        asked.append(request)
        return ContinuationResponse("decline")

    async def scene(stage: Stage) -> Any:
        child = sub_agent(team.spec("child", Bench().tool()))
        return await family(stage, team, child, max_tool_iterations=1, continuation=decide)

    played, events = perform(scene)

    assert ([], "seen", 1) == (asked, played.result.text, played.result.counters.tool_iterations)
    assert ("ok", "found") == finished(events, "child-x")


def test_a_child_of_a_hook() -> None:
    """A hook may give a task too: on the run's account, under its path."""
    team = Team(root=["done"], child=["brief"])

    async def prepare(_state: Any) -> StepOverrides:
        return StepOverrides(custom_data=await ask_agent(team.spec("child"), "sum up"))

    async def scene(stage: Stage) -> Any:
        return await family(stage, team, prepare_step=prepare)

    played, events = perform(scene)

    assert (2, "done") == (played.result.counters.llm_calls, played.result.text)
    assert [(), ("child",)] == [event.agent_path for event in events if isinstance(event, RunStarted)]
