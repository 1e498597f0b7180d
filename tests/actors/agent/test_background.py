"""Background children: begun by one call, waited for by another, and never left behind (N5)."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from actors import (
    Background,
    Budget,
    ContinuationResponse,
    Run,
    StepOverrides,
    background_agent,
    external_tool,
    remote,
    start_agent,
    tool,
)
from actors.models.scripted import call, reply
from protocol.errors import ModelError, SpecError, ToolError
from protocol.events import ContinuationRequired, RunCancelled, RunEvent, RunFinished, RunStarted
from protocol.limits import LimitState
from protocol.turns import Turn

from ...support.play import Played, Stage, perform
from ...support.scripts import Bench, calls_while_on
from ._team import Team, finished, told

WORK = reply("", call("work", {}, id="w"))


def start(*tasks: str) -> Turn:
    return reply("", *[call("start_child", {"task": task}, id=f"start-{task}") for task in tasks])


def wait(*handles: str) -> Turn:
    return reply("", *[call("wait_for_child", {"handle": handle}, id=f"wait-{handle}") for handle in handles])


async def slowly(request: Any) -> str:
    await trio.sleep(5)
    return f"found {request.messages[0].text}"


async def family(
    stage: Stage, team: Team, *tools: Any, act: Any = None, **options: Any
) -> tuple[Played, list[RunEvent]]:
    """One run of the root; when it has ended, nothing of what it began may be left."""
    tasks = trio.lowlevel.current_statistics().tasks_living
    root = await stage.spawn(team.spec("root", *tools, **options))
    played = await stage.play(root, act=act)
    await trio.testing.wait_all_tasks_blocked()
    assert (1, tasks + 1) == (len(stage.runtime.agents), trio.lowlevel.current_statistics().tasks_living)
    return played, await told(stage)


def test_begun_and_waited_for() -> None:
    """The root goes on while the child works: its own tool's time is not added to the child's."""
    team = Team(root=[start("x"), reply("", call("t", {}, id="t")), wait("child-1"), "seen"], child=slowly)

    async def scene(stage: Stage) -> Any:
        return await family(stage, team, *background_agent(team.spec("child")), Bench().tool(seconds=4))

    played, events = perform(scene)

    assert ("ok", '{"handle":"child-1"}') == finished(events, "start-x")
    assert ("ok", "found x") == finished(events, "wait-child-1")
    assert ("seen", 5.0, 5) == (played.result.text, played.seconds, played.result.counters.llm_calls)


def test_several_side_by_side() -> None:
    """Each start has a handle of its own, and handles may be waited for in any order, and twice."""
    team = Team(
        root=[start("x", "y", "z"), wait("child-3", "child-1"), wait("child-2", "child-2"), "seen"],
        child=slowly,
    )

    async def scene(stage: Stage) -> Any:
        return await family(stage, team, *background_agent(team.spec("child")))

    played, events = perform(scene)
    handles = {finished(events, f"start-{task}")[1] for task in "xyz"}
    answers = {finished(events, f"wait-child-{n}")[1] for n in (1, 3)}

    assert {f'{{"handle":"child-{n}"}}' for n in (1, 2, 3)} == handles
    assert 2 == len(answers)
    assert 5.0 == played.seconds
    assert 3 == len({event.run for event in events if event.agent_path})


def test_an_unknown_handle() -> None:
    """The model is told which there are."""
    team = Team(root=[wait("x"), start("x"), wait("y"), wait("child-1"), "seen"], child=["found"])

    async def scene(stage: Stage) -> Any:
        return await family(stage, team, *background_agent(team.spec("child")))

    _, events = perform(scene)

    assert ("error", "there is no handle 'x'; there are: none") == finished(events, "wait-x")
    assert ("error", "there is no handle 'y'; there are: child-1") == finished(events, "wait-y")


def test_not_waited_for() -> None:
    """It ends with the run, before it, and leaves no task and no agent behind."""
    team = Team(root=[start("x"), "seen"], child=slowly)

    async def scene(stage: Stage) -> Any:
        return await family(stage, team, *background_agent(team.spec("child")))

    played, events = perform(scene)
    ends = [event for event in events if isinstance(event, (RunCancelled, RunFinished))]

    assert [("run_cancelled", ("child",)), ("run_finished", ())] == [(event.type, event.agent_path) for event in ends]
    assert ("seen", True, 0.0) == (played.result.text, played.result.answered, played.seconds)


@pytest.mark.parametrize("how", ["cancel", "stop", "failure"])
def test_it_ends_with_the_run_however_that_ends(how: str) -> None:
    """Cancelled, stopped or failed: what it began is ended before it."""
    team = Team(root=[start("x"), reply("", call("t", {}, id="t")), ModelError("down")], child=slowly)

    async def act(run: Run) -> None:
        await trio.sleep(1)
        if how == "cancel":
            run.cancel("enough")
        elif how == "stop":
            run.stop("enough")

    async def scene(stage: Stage) -> Any:
        return await family(stage, team, *background_agent(team.spec("child")), Bench().tool(seconds=2), act=act)

    _, events = perform(scene)
    ended = [event.agent_path for event in events if event.type in {"run_cancelled", "run_failed", "run_finished"}]

    assert [("child",), ()] == ended


def test_waited_for_after_it_ended() -> None:
    """Its answer is kept."""
    team = Team(root=[start("x"), reply("", call("t", {}, id="t")), wait("child-1"), "seen"], child=["found"])

    async def scene(stage: Stage) -> Any:
        return await family(stage, team, *background_agent(team.spec("child")), Bench().tool(seconds=9))

    _, events = perform(scene)
    order = [(event.type, event.agent_path) for event in events]

    assert ("ok", "found") == finished(events, "wait-child-1")
    assert order.index(("run_finished", ("child",))) < order.index(("tool_finished", ()), 9)


LOOK_UP = external_tool("look_up", "Look it up.", {"type": "object"})


@pytest.mark.parametrize(
    ("task", "script", "told"),
    [
        ("x", [ModelError("down")], "The agent child failed: down."),
        ("x", [reply("hm", call("look_up", {}))], "The agent child came to no answer: it waits for results"),
        (" ", ["never"], "child-1 could not be done: SpecError: the prompt is empty"),
    ],
)
def test_its_failure_is_not_the_runs(task: str, script: Any, told: str) -> None:
    """The run goes on; who waits is told."""
    begin = reply("", call("start_child", {"task": task}, id="begin"))
    team = Team(root=[begin, reply("", call("t", {}, id="t")), wait("child-1"), "seen"], child=script)

    async def scene(stage: Stage) -> Any:
        return await family(stage, team, *background_agent(team.spec("child", LOOK_UP)), Bench().tool(seconds=1))

    played, events = perform(scene)
    status, text = finished(events, "wait-child-1")

    assert ("error", "seen") == (status, played.result.text)
    assert text.startswith(told)


def test_a_handle_is_of_its_run() -> None:
    """The next run of the agent knows nothing of it."""
    team = Team(root=[start("x"), "one", wait("child-1"), "two"], child=slowly)

    async def scene(stage: Stage) -> list[RunEvent]:
        root = await stage.spawn(team.spec("root", *background_agent(team.spec("child"))))
        await stage.play(root)
        await stage.play(root)
        return await told(stage)

    assert ("error", "there is no handle 'child-1'; there are: none") == finished(perform(scene), "wait-child-1")


def test_it_draws_on_the_run() -> None:
    """Its calls count on every account above it, and a limit of the run bounds it."""
    team = Team(root=[start("x"), wait("child-1"), "seen"], child=calls_while_on())
    budget = Budget(max_llm_calls=100)

    async def scene(stage: Stage) -> Any:
        child = background_agent(team.spec("child", Bench().tool(seconds=1), max_tool_iterations=2))
        return await family(stage, team, *child, budget=budget, max_llm_calls=6)

    played, events = perform(scene)

    assert (6, 6, "seen") == (
        played.result.counters.llm_calls,
        budget.statistics().llm_calls,
        played.result.text,
    )
    assert "error" == finished(events, "wait-child-1")[0]


def test_the_runs_time_is_its_time() -> None:
    """The run's wall clock counts what it does, and cuts it."""
    team = Team(root=[start("x"), wait("child-1")], child=slowly)

    async def scene(stage: Stage) -> Any:
        return await family(stage, team, *background_agent(team.spec("child")), wall_clock_seconds=3)

    played, events = perform(scene)

    assert LimitState("wall_clock", 3, 3) == played.result.limit
    assert "timed_out" == finished(events, "wait-child-1")[0]
    assert [(("child",), "wall_clock"), ((), "wall_clock")] == [
        (event.agent_path, event.summary.stopped_by) for event in events if isinstance(event, RunFinished)
    ]


def test_waits_for_a_decision_are_nobodys_time() -> None:
    """While all that is done is to wait for a decision about it, no time runs: the wall clock's, nor the waiting tool's."""
    rounds = [reply("", call("t", {}, id=f"t{n}")) for n in range(2)]
    team = Team(root=[start("x"), wait("child-1"), "seen"], child=[*rounds, "found"])

    async def act(run: Run) -> None:
        async for event in run:
            if isinstance(event, ContinuationRequired):
                await trio.sleep(300)
                await run.decide(event.request, ContinuationResponse("approve"))

    async def scene(stage: Stage) -> Any:
        child = team.spec("child", Bench().tool(seconds=1), max_tool_iterations=1, continuation=remote())
        tools = background_agent(child)
        return await family(stage, team, *tools, act=act, wall_clock_seconds=5, tool_timeout_seconds=3)

    played, events = perform(scene)

    assert ("ok", "found") == finished(events, "wait-child-1")
    assert ("seen", 302.0) == (played.result.text, played.seconds)


def test_a_wait_that_is_given_up_works_again() -> None:
    """Whoever stops waiting is back at work: its own time runs."""
    rounds = [reply("", call("t", {}, id=f"t{n}")) for n in range(2)]
    team = Team(root=[WORK, "seen"], child=rounds)

    async def work() -> None:
        child = team.spec("child", Bench().tool(), max_tool_iterations=1, continuation=remote())
        background = start_agent(child, "x")
        with trio.move_on_after(50):
            await background.answer()
        await trio.sleep(9)

    async def scene(stage: Stage) -> Any:
        return await family(stage, team, tool(work, name="work", description="Work."), tool_timeout_seconds=3)

    played, events = perform(scene)

    assert ("timed_out", 53.0) == (finished(events, "w")[0], played.seconds)


def test_a_wait_for_its_turn_is_time() -> None:
    """An agent that is busy with another run does its task later; that wait is work to whoever waits."""
    team = Team(root=[WORK, "seen"], child=slowly)

    async def scene(stage: Stage) -> Any:
        child = await stage.spawn(team.spec("child"))

        async def work() -> str:
            return await start_agent(child, "x").answer()

        async with stage.run(child, "first"):
            root = await stage.spawn(
                team.spec("root", tool(work, name="work", description="Work."), wall_clock_seconds=3)
            )
            return await stage.play(root)

    played = perform(scene)

    assert (LimitState("wall_clock", 3, 3), 3.0) == (played.result.limit, played.seconds)


def test_a_wait_that_times_out() -> None:
    """The tool that waits is timed out by what the child works; the child goes on, and can be waited for again."""
    team = Team(
        root=[start("x"), wait("child-1"), reply("", call("wait_for_child", {"handle": "child-1"}, id="again"))],
        child=slowly,
    )

    async def scene(stage: Stage) -> Any:
        tools = background_agent(team.spec("child"))
        return await family(
            stage, team, *tools, tool_timeout_seconds=3, stop_when=[lambda state: len(state.steps) == 3]
        )

    _, events = perform(scene)

    assert "timed_out" == finished(events, "wait-child-1")[0]
    assert ("ok", "found x") == finished(events, "again")


def by_tool(team: Team, body: Any, **options: Any) -> tuple[Played, list[RunEvent]]:
    """A run with one call of a tool of the user's own."""

    async def scene(stage: Stage) -> tuple[Played, list[RunEvent]]:
        return await family(stage, team, tool(body, name="work", description="Work."), **options)

    return perform(scene)


def test_start_agent_in_a_tool() -> None:
    """The handle says whether it is done, and gives the answer."""
    team = Team(root=[WORK, "seen"], child=slowly)

    async def work() -> list[Any]:
        background = start_agent(team.spec("child"), "x")
        before = background.done
        return [background.id, before, await background.answer(), background.done, await background.answer()]

    _, events = by_tool(team, work)

    assert ("ok", '["child-1",false,"found x",true,"found x"]') == finished(events, "w")


@pytest.mark.parametrize("when", ["before it begins", "while it works", "when it is done"])
def test_cancel(when: str) -> None:
    """Cancelled, it has no answer and says why; once it has one, a cancel changes nothing."""
    team = Team(root=[WORK, "seen"], child=slowly)

    async def work() -> str:
        background = start_agent(team.spec("child"), "x")
        if when != "before it begins":
            await trio.sleep(1 if when == "while it works" else 9)
        background.cancel("changed my mind")
        background.cancel("again")
        return await background.answer()

    played, events = by_tool(team, work)

    if when == "when it is done":
        assert ("ok", "found x") == finished(events, "w")
    else:
        assert "error" == finished(events, "w")[0]
        assert "child-1 came to no answer: " in finished(events, "w")[1]
    assert "seen" == played.result.text


def test_a_cancel_has_a_reason() -> None:
    """The one that it was given first, at whoever waits."""
    team = Team(root=[WORK, "seen"], child=slowly)
    caught: list[str] = []

    async def work() -> None:
        background = start_agent(team.spec("child"), "x")

        async def wait() -> None:
            with pytest.raises(ToolError) as error:
                await background.answer()
            caught.append(str(error.value))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            nursery.start_soon(wait)
            await trio.sleep(1)
            background.cancel("changed my mind")
            background.cancel("again")

    by_tool(team, work)

    assert ["child-1 came to no answer: changed my mind"] * 2 == caught


def test_begun_in_a_hook() -> None:
    """A hook may begin it, and a later one take its answer."""
    team = Team(root=[reply("", call("t", {}, id="t")), "seen"], child=slowly)
    begun: list[Background] = []

    async def prepare(state: Any) -> StepOverrides | None:
        if state.step_number == 0:
            begun.append(start_agent(team.spec("child"), "x"))
            return None
        return StepOverrides(system="root", custom_data=await begun[0].answer())

    async def scene(stage: Stage) -> Any:
        return await family(stage, team, Bench().tool(seconds=1), prepare_step=prepare)

    played, events = perform(scene)

    assert ("seen", 5.0) == (played.result.text, played.seconds)
    assert [(), ("child",)] == [event.agent_path for event in events if isinstance(event, RunStarted)]


def test_outside_of_a_run() -> None:
    """There is no run that it could end with."""

    async def scene(_stage: Stage) -> None:
        with pytest.raises(SpecError, match="inside a tool or a hook of another"):
            start_agent(Team(child=[]).spec("child"), "x")

    perform(scene)


def test_names() -> None:
    """The two tools are named after the agent unless told otherwise, and each says how to use the other."""
    team = Team(child=[])
    begin, wait_for = background_agent(team.spec("child"))
    named = background_agent(team.spec("child"), name="reader")

    assert ["start_child", "wait_for_child"] == [begin.name, wait_for.name]
    assert ["start_reader", "wait_for_reader"] == [one.name for one in named]
    assert "wait_for_child with the handle" in begin.description
    assert "start_child began" in wait_for.description
