"""A tool that runs an agent stands still while all its agent does is wait (N2, N3)."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from actors import Agent, AgentSpec, ContinuationRequest, Run, approve, external_tool, remote, tool
from actors.models.scripted import call, reply
from protocol.events import ContinuationRequired, RunCancelled, RunFinished, ToolFinished
from protocol.model import ModelRequest
from protocol.result import RunResult
from protocol.turns import Turn
from protocol.usage import Usage
from tests.support.deciders import payer, results
from tests.support.kin import SECONDS, TIMED_OUT, Family, child, decide_later, thinks
from tests.support.play import Played, Stage, perform
from tests.support.scripts import Bench, calls_while_on
from tests.support.specs import APPROVE, agent
from tests.support.strict import StrictModel

USAGE = Usage(100, 0, 0, 10, 0, True)


def test_a_tool_stands_still_while_its_agent_waits_at_its_gate() -> None:
    """N3: all the child does is wait for a decision."""
    kin = Family(child(calls_while_on("found"), Bench().tool(), max_tool_iterations=1, continuation=remote()))

    async def act(run: Run) -> None:
        await decide_later(run, ContinuationRequired, type(APPROVE)("decline"), 300)

    played = kin.play(act)

    assert ({"p": ("ok", "found")}, 300.0, "root done") == (results(played), played.seconds, played.result.text)


@pytest.mark.parametrize("kind", ["gate function", "approval", "pause"])
def test_a_tool_stands_still_whatever_its_agent_waits_for(kind: str) -> None:
    """N3, B5: a gate's function, an approval, and a pause are waits for a decision or a caller."""
    pay, _ = payer(kind == "approval")
    script = [reply("", call("pay", {"n": 1}, id="c1")), reply("", call("pay", {"n": 2}, id="c2")), "found"]
    use: Any = None
    spec: AgentSpec
    if kind == "gate function":

        async def gate(_request: ContinuationRequest) -> Any:
            await trio.sleep(300)
            return APPROVE

        spec = child(script, pay, max_tool_iterations=1, continuation=gate)
    elif kind == "approval":

        async def provider(_request: Any) -> Any:
            await trio.sleep(150)
            return approve()

        spec = child(script, pay, approval=provider)
    else:
        own = external_tool("pay", "Pay.", {"type": "object", "properties": {"n": {"type": "integer"}}})
        spec = child(script, own)

        async def use(run: Run) -> RunResult:
            result = await run.result()
            while result.stopped_by == "pending_tools":
                await trio.sleep(150)
                run.submit({pending.id: "paid" for pending in run.pending})
                result = await run.result()
            return result

    played = Family(spec, use=use).play()

    assert ({"p": ("ok", "found")}, 300.0) == (results(played), played.seconds)


@pytest.mark.parametrize("where", ["model", "tool", "hook"])
def test_a_tool_is_timed_while_its_agent_works(where: str) -> None:
    """N3: model calls, tools and hooks of the child are work; the child is cancelled with its tool."""
    bench = Bench()
    options: dict[str, Any] = {}
    script: Any = [reply("", call("t", {}, id="c1")), "found"]
    if where == "model":
        script = thinks(9, "found")
    if where == "hook":

        async def slow(_state: Any) -> None:
            await trio.sleep(9)

        options["prepare_step"] = slow
    kin = Family(child(script, bench.tool(seconds=9 if where == "tool" else 0), **options))
    played = kin.play()

    assert ({"p": ("timed_out", TIMED_OUT)}, 5.0, []) == (results(played), played.seconds, kin.ends)
    assert "root done" == played.result.text


@pytest.mark.parametrize(
    ("thought", "seconds", "result"),
    [(1.5, 304.5, ("ok", "found")), (2.0, 305.0, ("timed_out", TIMED_OUT))],
    ids=["4.5 s of work", "6 s of work"],
)
def test_only_the_work_before_and_after_a_wait_is_counted(
    thought: float, seconds: float, result: tuple[str, str]
) -> None:
    """N3: of a tool's 5 seconds, the child's model calls use some, and the 300 s at its gate none."""
    script = thinks(thought, reply("", call("t", {}, id="c1")), reply("", call("t", {}, id="c2")), "found")
    kin = Family(child(script, Bench().tool(), max_tool_iterations=1, continuation=remote()))

    async def act(run: Run) -> None:
        await decide_later(run, ContinuationRequired, APPROVE, 300)

    played = kin.play(act)

    assert ({"p": result}, seconds) == (results(played), played.seconds)


def test_a_sibling_that_works_is_timed_while_another_waits() -> None:
    """N3: each call of a turn has its own time."""
    kin = Family(child(calls_while_on("found"), Bench().tool(), max_tool_iterations=1, continuation=remote()))
    asking = kin.root_spec.tools[0]
    turn = reply("", call("ask", {}, id="p"), call("slow", {}, id="s"))
    kin.root_spec = agent([turn, "root done"], asking, Bench().tool("slow", seconds=60), tool_timeout_seconds=10)

    async def act(run: Run) -> None:
        await decide_later(run, ContinuationRequired, type(APPROVE)("decline"), 300)

    played = kin.play(act)

    assert {"p": "ok", "s": "timed_out"} == {call: status for call, (status, _) in results(played).items()}
    assert 300.0 == played.seconds


def test_a_tool_with_two_agents_is_timed_while_one_of_them_works() -> None:
    """N3: it stands still only while all that any child does is wait."""
    waiting = child(calls_while_on("found"), Bench().tool(), max_tool_iterations=1, continuation=remote())
    working = agent(thinks(9, "worked"), name="worker")

    async def scene(stage: Stage) -> Played:
        first, second = await stage.spawn(waiting), await stage.spawn(working)

        async def one(which: Agent) -> None:
            async with which.run("go") as run:
                await run.result()

        async def both() -> str:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(one, first)
                nursery.start_soon(one, second)
            return "both"

        asking = tool(both, name="ask", description="Ask.", timeout_seconds=SECONDS)
        root = await stage.spawn(agent([reply("", call("ask", {}, id="p")), "root done"], asking))
        return await stage.play(root)

    played = perform(scene)

    assert ({"p": ("timed_out", TIMED_OUT)}, 5.0) == (results(played), played.seconds)


def test_a_tool_is_timed_again_once_its_agent_is_gone() -> None:
    """N3: what the body does itself, before and after its agent, is its own work."""
    kin = Family(child(calls_while_on("found"), Bench().tool(), max_tool_iterations=1, continuation=remote()))

    async def ask() -> str:
        await trio.sleep(2)
        text = await kin.ask()
        await trio.sleep(4)
        return text

    asking = tool(ask, description="Ask.", timeout_seconds=SECONDS)
    kin.root_spec = agent([reply("", call("ask", {}, id="p")), "root done"], asking)

    async def act(run: Run) -> None:
        await decide_later(run, ContinuationRequired, type(APPROVE)("decline"), 300)

    played = kin.play(act)

    assert ({"p": ("timed_out", TIMED_OUT)}, 305.0) == (results(played), played.seconds)


def test_a_grandchild_that_waits_stops_the_time_of_all_above() -> None:
    """N3: up to the root."""
    grandchild = child(calls_while_on("deep"), Bench().tool(), max_tool_iterations=1, continuation=remote())
    inner = Family(grandchild, name="middle")
    outer = Family(inner.root_spec)

    async def scene(stage: Stage) -> Played:
        inner.child = await stage.spawn(grandchild)
        outer.child = await stage.spawn(inner.root_spec)

        async def act(run: Run) -> None:
            await decide_later(run, ContinuationRequired, type(APPROVE)("decline"), 300)

        return await stage.play(await stage.spawn(outer.root_spec), act=act)

    played = perform(scene)

    assert ("root done", 300.0, {"p": ("ok", "root done")}) == (played.result.text, played.seconds, results(played))
    assert ["deep"] == [end.text for end in inner.ends]


@pytest.mark.parametrize("hooked", [False, True])
def test_a_child_whose_end_is_decided_is_not_timed_out(hooked: bool) -> None:  # noqa: FBT001
    """TRI-10, N2: it answered at 4.999 s; its last bookkeeping takes a second more; its tokens are counted."""
    told: list[str] = []

    async def keep_books(result: RunResult) -> None:
        await trio.sleep(1)
        told.append(result.text)

    async def model(_request: ModelRequest) -> Turn:
        await trio.sleep(4.999)
        return reply("answer ready", usage=USAGE)

    async def through(_call: Any, proceed: Any) -> Any:
        return await proceed()

    kin = Family(child(model, on_run_end=keep_books), around_tool=through if hooked else None)
    played = kin.play()

    assert ({"p": ("ok", "answer ready")}, ["answer ready"]) == (results(played), told)
    assert ("root done", 110) == (played.result.text, played.result.usage.total_tokens)


def test_a_child_that_is_cut_with_its_tool_ends_before_the_tool_does() -> None:
    """N2, N3: the terminal event of the child stands before the `tool_finished` of its caller's call."""
    kin = Family(child(thinks(9, "found")))

    async def scene(stage: Stage) -> list[str]:
        kin.child = await stage.spawn(kin.child_spec)
        root = await stage.spawn(kin.root_spec)
        async with stage.run(root) as run:
            await run.result()
            ends = [event async for event in run if isinstance(event, (RunCancelled, ToolFinished, RunFinished))]
        return [f"{event.type} {'/'.join(event.agent_path)}".strip() for event in ends]

    assert ["run_cancelled child", "tool_finished", "run_finished"] == perform(scene)


def test_time_in_a_child_counts_on_the_callers_wall_clock() -> None:
    """B5: the caller's clock stands still while all its child does is wait, and runs while the child works."""
    script = thinks(2, reply("", call("t", {}, id="c1")), reply("", call("t", {}, id="c2")), "found")
    spec = child(script, Bench().tool(), max_tool_iterations=1, continuation=remote())

    async def act(run: Run) -> None:
        await decide_later(run, ContinuationRequired, APPROVE, 300)

    whole = Family(spec, seconds=None, wall_clock_seconds=7).play(act)
    script = thinks(2, reply("", call("t", {}, id="c1")), reply("", call("t", {}, id="c2")), "found")
    spec = child(script, Bench().tool(), max_tool_iterations=1, continuation=remote())
    cut = Family(spec, seconds=None, wall_clock_seconds=5).play(act)

    assert ("root done", 306.0) == (whole.result.text, whole.seconds)
    assert ("wall_clock", 305.0) == (cut.result.stopped_by, cut.seconds)
    assert {"p": "timed_out"} == {call: status for call, (status, _) in results(cut).items()}


def test_a_cancelled_caller_closes_its_childs_request() -> None:
    """N3: cancel goes down; the child's open gate is resolved `cancelled`, before the ends of both."""
    kin = Family(child(calls_while_on("found"), Bench().tool(), max_tool_iterations=1, continuation=remote()))

    async def act(run: Run) -> None:
        async for event in run:
            if isinstance(event, ContinuationRequired):
                run.cancel()

    played = kin.play(act)

    assert [] == kin.ends
    assert {"p": "interrupted"} == {event.call: event.status for event in played.all(ToolFinished)}
    assert [] == played.all(RunFinished)


def test_the_callers_counters_hold_the_calls_of_a_child_that_was_cut() -> None:
    """B1: a call that was sent is counted, also where nobody waited for its answer."""
    kin = Family(child(thinks(9, "found")))
    played = kin.play()
    models = [spec.model for spec in (kin.child_spec, kin.root_spec)]

    assert [1, 2] == [len(model.asked) for model in models if isinstance(model, StrictModel)]
    assert 3 == played.result.counters.llm_calls
