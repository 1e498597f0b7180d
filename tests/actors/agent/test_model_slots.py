"""Model calls at a time: how many there are for each provider, who waits, and for how long."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import trio
import trio.testing

from actors import AgentSpec, RuntimeLimits, ask_model, open_runtime, sub_agent, tool
from actors.kit import SlotStatistics
from actors.models import Scripted, call, reply
from actors.models.anthropic import Anthropic
from actors.models.gemini import GeminiInteractions
from actors.models.openai import OpenAIChat
from actors.models.scripted import ScriptFunction
from protocol.errors import SpecError
from protocol.model import ModelRequest
from protocol.turns import Turn
from tests.support.disk import FakeDisk, journal_on
from tests.support.play import Played, Stage, perform
from tests.support.specs import agent
from tests.support.strict import StrictModel

ONE = RuntimeLimits(max_model_calls=1)


@attrs.define(eq=False)
class Asked:
    """Models whose calls take a second, and what was asked of them when."""

    seconds: float = 1.0
    at_once: int = 0
    most: int = 0
    calls: list[tuple[str, float]] = attrs.field(factory=list)

    def script(self, who: str, *turns: Turn) -> ScriptFunction:
        """These turns, and then answers."""
        coming = iter(turns)

        async def turn(_request: ModelRequest) -> Turn | str:
            self.calls.append((who, trio.current_time()))
            self.at_once += 1
            self.most = max(self.most, self.at_once)
            try:
                await trio.sleep(self.seconds)
            finally:
                self.at_once -= 1
            return next(coming, "fine")

        return turn

    def model(self, who: str, *turns: Turn, name: str = "strict") -> StrictModel:
        return StrictModel(self.script(who, *turns), name=name)

    def family(self) -> AgentSpec:
        """An agent with five sub-agents that all ask at once."""
        child = AgentSpec(model=Scripted(self.script("child"), name="strict"), name="child")
        tasks = reply("", *[call("ask_child", {"task": "t"}, id=f"c{n}") for n in range(5)])
        # Not judged: the sub-agents' calls are no calls of its model.
        return AgentSpec(
            model=Scripted(self.script("many", tasks), name="strict"), name="many", tools=[sub_agent(child)]
        )


def spec_of(model: StrictModel, **options: Any) -> AgentSpec:
    return AgentSpec(model=model, **options)


async def side_by_side(stage: Stage, *specs: AgentSpec) -> list[Played]:
    """A run of each, begun in this order."""
    found: dict[int, Played] = {}

    async def one(number: int) -> None:
        found[number] = await stage.play(agents[number])

    agents = [await stage.spawn(spec) for spec in specs]
    async with trio.open_nursery() as nursery:
        for number in range(len(specs)):
            nursery.start_soon(one, number)
            await trio.testing.wait_all_tasks_blocked()
    return [found[number] for number in range(len(specs))]


@pytest.mark.parametrize(
    ("most", "names", "expected"),
    [
        (2, ["x:a", "x:b", "x:c", "x:d"], (2, 2.0)),
        (2, ["x:a", "x:b", "y:c", "y:d"], (4, 1.0)),
        ({"x": 1}, ["x:a", "x:b", "y:c", "y:d"], (3, 2.0)),
        ({"x": 1, "*": 2}, ["x:a", "y:b", "y:c", "z:d"], (4, 1.0)),
        ({"*": 1}, ["x:a", "x:b", "y:c", "z:d"], (3, 2.0)),
        (None, ["x:a", "x:b", "x:c", "x:d"], (4, 1.0)),
    ],
)
def test_each_provider_takes_so_many_at_a_time(most: Any, names: list[str], expected: tuple[int, float]) -> None:
    """The others wait; `*` holds for those that are not named, each by itself, and without it they have no limit."""
    asked = Asked()

    async def scene(stage: Stage) -> float:
        await side_by_side(stage, *(spec_of(asked.model(name, name=name)) for name in names))
        return trio.current_time()

    seconds = perform(scene, limits=RuntimeLimits(max_model_calls=most))

    assert expected == (asked.most, seconds)


def test_agents_take_turns() -> None:
    """One with five sub-agents that all ask at once does not keep another waiting for more than the call in hand."""
    asked = Asked()

    async def scene(stage: Stage) -> None:
        await side_by_side(stage, asked.family(), spec_of(asked.model("one"), name="one"))

    perform(scene, limits=ONE)

    expected = ["many", "one", "child", "child", "child", "child", "child", "many"]
    assert expected == [who for who, _ in asked.calls]


def test_within_an_agent_it_is_first_come_first_served() -> None:
    """And a newcomer has the next turn but one, however long the line of the others is."""
    asked = Asked()

    async def scene(stage: Stage) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(side_by_side, stage, asked.family())
            await trio.sleep(2.5)
            await side_by_side(stage, spec_of(asked.model("late"), name="late"))

    perform(scene, limits=ONE)

    expected = ["many", "child", "child", "child", "late", "child", "child", "many"]
    assert expected == [who for who, _ in asked.calls]


@pytest.mark.parametrize("how", ["cancel", "leave", "wall_clock"])
def test_a_call_that_waits_is_cut_at_once(how: str) -> None:
    """It was not made, so it counts nowhere; its slot goes to the next one. The wall clock runs while it waits (B5)."""
    asked = Asked(seconds=10)

    async def scene(stage: Stage) -> tuple[Any, ...]:
        options: dict[str, Any] = {"wall_clock_seconds": 3} if how == "wall_clock" else {}
        first, cut, last = [
            await stage.spawn(spec_of(asked.model(who), name=who, **more))
            for who, more in (("first", {}), ("cut", options), ("last", {}))
        ]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stage.play, first)
            await trio.sleep(1)
            async with stage.run(cut) as run:
                nursery.start_soon(stage.play, last)
                await trio.sleep(2)
                if how == "cancel":
                    run.cancel("enough")
                if how != "leave":
                    await run.wait_ended()
            ended = trio.current_time()
            waiting = stage.runtime.statistics().model_slots["strict"].waiting
        return ended, waiting, run._core.account.llm_calls, trio.current_time()

    assert (4.0 if how == "wall_clock" else 3.0, 1, 0, 20.0) == perform(scene, limits=ONE)
    assert [("first", 0.0), ("last", 10.0)] == asked.calls


def test_the_wait_is_not_the_calls_time() -> None:
    """A model is entered when it may be asked: whatever it does about its own time begins there."""
    asked = Asked(seconds=10)
    patient = asked.model("patient")

    class Impatient(StrictModel):
        async def turn(self, request: ModelRequest, emit: Any) -> Turn:
            with trio.fail_after(11):
                return await super().turn(request, emit)

    async def scene(stage: Stage) -> list[str]:
        played = await side_by_side(stage, spec_of(patient), spec_of(Impatient(asked.model("impatient"))))
        return [one.result.text for one in played]

    assert ["fine", "fine"] == perform(scene, limits=ONE)


def test_a_model_that_fails_gives_its_slot_back() -> None:
    """Whatever it raises."""
    asked = Asked()

    async def scene(stage: Stage) -> list[bool]:
        stage.faults_expected = True
        bad = agent([RuntimeError("broken"), ValueError("again")], name="bad")
        failed = [(await side_by_side(stage, bad))[0].error is not None for _ in range(2)]
        return [*failed, (await side_by_side(stage, spec_of(asked.model("good"))))[0].result.answered]

    assert [True, True, True] == perform(scene, limits=ONE)


def test_a_helper_call_waits_like_any_other() -> None:
    """Of a tool's own; one that is cut while it waits was not made."""
    asked = Asked(seconds=10)

    async def scene(stage: Stage) -> list[Any]:
        async def judge() -> str:
            """Ask."""
            return (await ask_model("which?", model=asked.model("helper"))).text

        begin = reply("", call("judge", {}, id="c1"))
        quick = StrictModel([begin, "done"], name="quick")
        asking = AgentSpec(model=quick, name="asking", tools=[tool(judge, timeout_seconds=3)])
        played = await side_by_side(stage, spec_of(asked.model("busy")), asking)
        return [result.status for step in played[1].result.steps for result in step.results]

    assert ["timed_out"] == perform(scene, limits=ONE)
    assert [("busy", 0.0)] == asked.calls


async def test_a_call_that_waits_is_not_lost_with_the_process(autojump_clock: trio.testing.MockClock) -> None:
    """T9, B1: a runtime that closes suspends its run where it stands in line; it has not used its one call, and makes it then."""
    disk, asked = FakeDisk(), Asked(seconds=100)

    def specs(seconds: float) -> list[AgentSpec]:
        asked.seconds = seconds
        return [spec_of(asked.model(who), name=who, max_llm_calls=1) for who in ("first", "second")]

    async with open_runtime(journal=journal_on(disk), limits=ONE, stop_grace_seconds=1) as runtime:
        for agent in [await runtime.spawn(spec) for spec in specs(100)]:
            await agent.start("go")
            await trio.sleep(1)
    disk = FakeDisk(list(disk.batches))
    async with open_runtime(journal=journal_on(disk), limits=ONE) as runtime:
        runs = [(await runtime.spawn(spec)).brought_back for spec in specs(1)]
        results = [await run.result() for run in runs if run is not None]

    assert [("llm_calls", ""), ("model", "fine")] == [(result.stopped_by, result.text) for result in results]
    assert ["first", "second"] == [who for who, _ in asked.calls]


def test_the_runtime_tells_who_waits() -> None:
    """By provider: how many calls go on and wait, how many may go on, and what all have waited."""
    asked = Asked()

    async def scene(stage: Stage) -> tuple[Any, ...]:
        before = stage.runtime.statistics().model_slots
        async with trio.open_nursery() as nursery:
            nursery.start_soon(side_by_side, stage, *[spec_of(asked.model(f"{n}")) for n in range(3)])
            await trio.sleep(0.5)
            during = stage.runtime.statistics().model_slots
        return before, during, stage.runtime.statistics().model_slots

    assert (
        {},
        {"strict": SlotStatistics(1, 1, 2, 1.0)},
        {"strict": SlotStatistics(0, 1, 0, 3.0)},
    ) == perform(scene, limits=ONE)


@pytest.mark.parametrize(
    ("model", "provider"),
    [
        (OpenAIChat("m", base_url="http://127.0.0.1:8080/v1"), "127.0.0.1:8080"),
        (OpenAIChat("m", base_url="https://me:secret@example.org/v1?a=b", api_key="k"), "example.org"),
        (Anthropic("m", api_key="k"), "api.anthropic.com"),
        (GeminiInteractions("m", api_key="k"), "generativelanguage.googleapis.com"),
    ],
)
def test_a_provider_is_a_host(model: Any, provider: str) -> None:
    """With its port where the address names one, and nothing else of the address."""
    assert provider == model.provider


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "2", {"x": 0}, {"x": True}, {"": 1}, {1: 1}, {"x": None}])
def test_a_number_of_calls_is_a_number(wrong: Any) -> None:
    """The error names the option and the value."""
    with pytest.raises(SpecError, match="max_model_calls"):
        RuntimeLimits(max_model_calls=wrong)
