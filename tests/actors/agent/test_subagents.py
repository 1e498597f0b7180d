"""A sub-agent is a tool: what it is named, what its result says, and that a child without an answer is no success (N2)."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import trio

from actors import AgentSpec, StopRun, ask_agent, deny, external_tool, max_steps, sub_agent, tool
from actors.agent import current_run
from actors.models.scripted import call, reply
from protocol.errors import ModelError, SpecError, ToolError
from protocol.events import RunCancelled, RunEvent, RunFinished, RunStarted

from ...support.play import Played, Stage, perform
from ...support.scripts import Bench, calls_while_on
from ._team import Team, finished, told


@attrs.frozen
class Seen:
    """A root that gave one task, and what became of it."""

    root: Played
    events: list[RunEvent]
    agents: int
    """Those that were left when the run had ended."""

    @property
    def result(self) -> tuple[str, str]:
        """Of the call that gave the task."""
        return finished(self.events, "child-x")

    @property
    def read(self) -> str:
        """What the root's model read of it."""
        return self.root.asked[-1].messages[-1].results[0].text  # type: ignore[union-attr]


def give(team: Team, child: AgentSpec, *, task: str = "x", act: Any = None, **options: Any) -> Seen:
    """A root gives `child` a task and says `seen`."""

    async def scene(stage: Stage) -> Seen:
        root = await stage.spawn(team.spec("root", sub_agent(child), **options))
        played = await stage.play(root, act=act)
        await trio.testing.wait_all_tasks_blocked()
        return Seen(played, await told(stage), len(stage.runtime.agents))

    return perform(scene)


def team_of(script: Any, task: str = "x") -> Team:
    asks = reply("", call("ask_child", {"task": task}, id="child-x"))
    return Team(root=[asks, "seen"], child=script)


def test_its_answer_is_the_result() -> None:
    """The root's model reads the child's answer, and no more than that."""
    team = team_of([reply("hm", call("t", {}, id="a")), "found"])
    seen = give(team, team.spec("child", Bench().tool()))

    assert ("ok", "found") == seen.result
    assert ("found", "seen") == (seen.read, seen.root.result.text)
    assert ["x"] == team.asked("child")[0].texts


def test_it_is_a_run_within_the_call() -> None:
    """Its events stand between the start and the end of the call, under its path, and it is gone after it."""
    team = team_of(["found"])
    seen = give(team, team.spec("child"))
    places = [place for place, event in enumerate(seen.events) if event.agent_path == ("child",)]
    inside = seen.events[places[0] : places[-1] + 1]

    assert {("child",)} == {event.agent_path for event in inside}
    assert (RunStarted, RunFinished) == (type(inside[0]), type(inside[-1]))
    assert ["tool_started", "tool_finished"] == [
        seen.events[places[0] - 1].type,
        seen.events[places[-1] + 1].type,
    ]
    assert 1 == seen.agents


async def refuse(_state: Any) -> Any:
    """A hook that fails."""
    raise ValueError("s3cret")


async def give_up() -> str:
    """Give up."""
    raise StopRun("I gave up")


async def cancel_it() -> None:
    """Cancel the run."""
    assert (context := current_run.get()) is not None
    context.core.cancel("of no use")
    await trio.sleep_forever()


LOOK_UP = external_tool("look_up", "Look it up.", {"type": "object"})


@pytest.mark.parametrize(
    ("script", "options", "told"),
    [
        (
            calls_while_on(text="hm"),
            {"max_tool_iterations": 2},
            "came to no answer: its limit of 2 rounds of tool calls was reached. Its text so far: hm\n\nhm\n\nhm",
        ),
        (calls_while_on(), {"max_llm_calls": 1}, "came to no answer: its limit of 1 model calls was reached."),
        (calls_while_on(), {"max_tool_calls": 1}, "came to no answer: its limit of 1 tool calls was reached."),
        (
            calls_while_on(),
            {"stop_when": [max_steps(2)]},
            "came to no answer: it was stopped, maximum number of steps (2) reached. Its text so far: (none)",
        ),
        (
            [reply("half", finish="length")],
            {},
            "came to no answer: its model's last turn ended with 'length'. Its text so far: half",
        ),
        (
            [reply("no", finish="content_filter")],
            {},
            "came to no answer: its model's last turn ended with 'content_filter'.",
        ),
        ([reply(""), reply("")], {}, "came to no answer: its model's last turn ended with 'empty'."),
        (
            [reply("hm", call("give_up", {}))],
            {"tools": [give_up]},
            "came to no answer: one of its tools ended it. Its text so far: hm\n\nI gave up",
        ),
        (
            [reply("hm", call("t", {})), ModelError("down")],
            {},
            "failed: down. Its text so far: hm",
        ),
        (
            ["never"],
            {"prepare_call": refuse},
            "failed: the hook prepare_call raised ValueError. Its text so far: (none)",
        ),
        (["bad"], {"check_answer": lambda _text: "no", "max_continues": 0}, "failed: the answer was rejected: no."),
        (
            [reply("hm", call("cancel_it", {}))],
            {"tools": [cancel_it]},
            "was cancelled: of no use. Its text so far: hm",
        ),
        (
            [reply("hm", call("look_up", {}))],
            {"tools": [LOOK_UP]},
            "came to no answer: it waits for results that nobody here can give it, those of look_up. Its text so far: hm",
        ),
    ],
)
def test_no_answer_is_no_success(script: Any, options: dict[str, Any], told: str) -> None:
    """A child that comes to none is an error result, in the event and for the model: how it ended, and its text."""
    team = team_of(script)
    spec = attrs.evolve(team.spec("child", Bench().tool()), **options)
    seen = give(team, spec)

    assert "error" == seen.result[0]
    assert seen.result[1].startswith(f"The agent child {told}")
    assert seen.result[1] == seen.read
    assert (1, "seen") == (seen.agents, seen.root.result.text)


def test_an_answer_at_a_limit_says_so() -> None:
    """It is a success, and the limit is noted (N2)."""
    team = team_of(calls_while_on("what I have"))
    child = team.spec("child", Bench().tool(), max_tool_iterations=1, tool_iteration_limit_finalization="")
    seen = give(team, child)

    assert (
        "ok",
        "what I have\n\n(child reached its limit of 1 rounds of tool calls: this is what it could say.)",
    ) == seen.result


def test_an_empty_task() -> None:
    """The model is told what a task is; no child is made for nothing."""
    team = team_of(["never"], task=" ")
    seen = give(team, team.spec("child"))

    assert "error" == seen.result[0]
    assert "the prompt is empty: say what the agent should do" in seen.result[1]
    assert 1 == seen.agents


def test_a_tool_timeout_ends_it() -> None:
    """The call is `timed_out`, and the child cancelled."""

    async def slow(_request: Any) -> str:
        await trio.sleep(50)
        return "late"

    team = team_of(slow)
    child = team.spec("child")

    async def scene(stage: Stage) -> Any:
        root = await stage.spawn(team.spec("root", sub_agent(child, timeout_seconds=5)))
        played = await stage.play(root)
        return played, await told(stage)

    played, events = perform(scene)

    assert "timed_out" == finished(events, "child-x")[0]
    assert [("child",)] == [event.agent_path for event in events if isinstance(event, RunCancelled)]
    assert 5 == played.seconds


def test_its_caller_is_cancelled_while_it_is_made() -> None:
    """An agent that is made when the cancel comes is stopped all the same."""
    team = team_of(["never"])

    async def scene(stage: Stage) -> tuple[int, list[str]]:
        child = sub_agent(team.spec("child"))

        async def begin(task: str) -> Any:
            """Begin, and be cancelled at once."""
            assert (context := current_run.get()) is not None
            context.core.cancel("enough")
            return await child.call({"task": task})

        root = await stage.spawn(team.spec("root", tool(begin, name="ask_child")))
        await stage.play(root)
        await trio.testing.wait_all_tasks_blocked()
        return len(stage.runtime.agents), [event.type for event in await told(stage) if event.agent_path]

    agents, below = perform(scene)

    assert 1 == agents
    assert below in ([], ["run_started", "run_cancelled"])


def test_names() -> None:
    """The tool is named after the agent unless told otherwise, and says whom it asks."""
    team = Team(root=[], child=[])
    plain, named = sub_agent(team.spec("child")), sub_agent(team.spec("child"), name="delegate", description="Help.")

    assert ("ask_child", "delegate") == (plain.name, named.name)
    assert "Give the agent child a task and wait for its answer. It knows only what the task says." == plain.description
    assert "Help." == named.description
    assert ["task"] == list(plain.parameters["properties"])


def test_bad_names_and_targets() -> None:
    """A name that no provider takes, two tools of one name, and what is no agent, are refused when they are made."""
    team = Team(root=[], child=[])
    with pytest.raises(SpecError, match=r"it is 'ask_the reader': give another with name="):
        sub_agent(team.spec("the reader"))
    with pytest.raises(SpecError, match="ask_child is there more than once"):
        team.spec("root", sub_agent(team.spec("child")), sub_agent(team.spec("child")))
    with pytest.raises(SpecError, match="a sub-agent is an AgentSpec or an Agent; this is 'child'"):
        sub_agent("child")  # type: ignore[arg-type]


def test_two_agents_of_one_name() -> None:
    """Their tools have names of their own; their runs share a path and are told apart by their ids."""
    team = Team(
        root=[reply("", call("first", {"task": "a"}, id="a"), call("second", {"task": "b"}, id="b")), "seen"],
        child=lambda request: f"to {request.messages[0].text}",
    )

    async def scene(stage: Stage) -> list[RunEvent]:
        tools = [sub_agent(team.spec("child"), name=name) for name in ("first", "second")]
        await stage.play(await stage.spawn(team.spec("root", *tools)))
        return await told(stage)

    events = perform(scene)

    assert [("ok", "to a"), ("ok", "to b")] == [finished(events, "a"), finished(events, "b")]
    assert 2 == len({event.run for event in events if event.agent_path == ("child",)})


def test_outside_of_a_run() -> None:
    """There is nobody to draw on: the error says so."""

    async def scene(_stage: Stage) -> None:
        with pytest.raises(SpecError, match="inside a tool or a hook of another: start a run of your own"):
            await ask_agent(Team(child=[]).spec("child"), "x")

    perform(scene)


def test_after_the_end_of_the_run() -> None:
    """What observes the end of a run starts nothing below it any more."""
    team = Team(root=["done"], child=["never"])
    said: list[str] = []

    async def at_the_end(_result: Any) -> None:
        try:
            await ask_agent(team.spec("child"), "x")
        except Exception as error:  # noqa: BLE001
            said.append(f"{type(error).__name__}: {error}")

    async def scene(stage: Stage) -> None:
        await stage.play(await stage.spawn(team.spec("root", on_run_end=at_the_end)))

    perform(scene)

    assert 1 == len(said)
    assert said[0].startswith("RunOver: run run-")


def test_an_approval_comes_before_it() -> None:
    """`needs_approval` holds for a sub-agent as for any tool."""
    team = team_of(["never"])

    async def scene(stage: Stage) -> list[RunEvent]:
        root = team.spec(
            "root", sub_agent(team.spec("child"), needs_approval=True), approval=lambda _request: deny("not now")
        )
        await stage.play(await stage.spawn(root))
        return await told(stage)

    events = perform(scene)

    assert ("denied", "Not run: declined. not now") == finished(events, "child-x")
    assert not any(event.agent_path for event in events)


def test_ask_agent_raises() -> None:
    """In a tool of one's own the error is there to be caught."""
    team = Team(root=[reply("", call("try_it", {}, id="a")), "seen"], child=calls_while_on())
    child = team.spec("child", Bench().tool(), max_tool_iterations=1)

    async def try_it() -> str:
        """Try."""
        try:
            return await ask_agent(child, "x")
        except ToolError as error:
            return f"instead of {error}"

    async def scene(stage: Stage) -> list[RunEvent]:
        await stage.play(await stage.spawn(team.spec("root", try_it)))
        return await told(stage)

    status, text = finished(perform(scene), "a")

    assert "ok" == status
    assert text.startswith("instead of The agent child came to no answer")
