"""Turns with more calls than may be, deeper arguments than may be, and ids that are no ids (R2, T2, T3)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from actors import AgentSpec, Run, approve, deny, external_tool, remote
from actors.models import Scripted
from actors.models.scripted import call, reply
from protocol.events import ApprovalRequired, RunPaused, StepFinished, ToolRequested
from protocol.model import Profile
from protocol.turns import AssistantMessage, ToolCall
from tests.support.deciders import Approver, payer, results, statuses
from tests.support.play import Played, Stage, event_of, perform, play
from tests.support.scripts import Bench
from tests.support.specs import agent
from tests.support.strict import StrictModel


def stored(played: Played) -> list[ToolCall]:
    """The calls in the conversation, in order."""
    return [
        part
        for message in played.messages
        if isinstance(message, AssistantMessage)
        for part in message.parts
        if isinstance(part, ToolCall)
    ]


@pytest.mark.parametrize(("most", "count"), [(128, 200), (128, 128), (2, 3), (128, 10_000)])
def test_calls_beyond_the_limit_of_a_turn_are_cut_off(most: int, count: int) -> None:
    """T2, PAR-07: the first ones run; the others are not stored, have no events, and are counted."""
    bench = Bench()
    turn = reply("", *[call("t", {}, id=f"c{n}") for n in range(count)])
    profile = Profile(keeps_tools_when_off=True, reports_sending=True, max_calls_per_turn=most)
    played = play(AgentSpec(model=StrictModel([turn, "ok"], profile=profile), tools=[bench.tool()]))
    kept = min(most, count)

    assert [f"c{n}" for n in range(kept)] == [part.id for part in stored(played)]
    assert [f"c{n}" for n in range(kept)] == [event.call for event in played.all(ToolRequested)]
    assert ({"t": kept}, {"ok"}) == (bench.runs, set(statuses(played).values()))
    assert [count - kept, 0] == [event.dropped_calls for event in played.all(StepFinished)]
    assert ("ok", 1) == (played.result.text, played.result.counters.tool_iterations)


@pytest.mark.slow
def test_ten_thousand_calls_in_one_turn_where_the_profile_lets_them() -> None:
    """T2: many calls are many results, in order, a few at a time."""
    bench = Bench()
    count = 10_000
    turn = reply("", *[call("t", {}, id=f"c{n}") for n in range(count)])

    async def scene(stage: Stage) -> tuple[int, list[str]]:
        profile = Profile(keeps_tools_when_off=True, reports_sending=True, max_calls_per_turn=count)
        spec = AgentSpec(
            model=Scripted([turn, "ok"], profile=profile), tools=[bench.tool(seconds=1)], max_parallel_tools=1000
        )
        one = await stage.spawn(spec)
        played = await stage.play(one)
        return int(played.seconds), list(statuses(played))

    seconds, order = perform(scene)

    assert (10, {"t": count}) == (seconds, bench.runs)
    assert [f"c{n}" for n in range(count)] == order


@pytest.mark.parametrize("opening", ['{"a":', "["], ids=["object", "array"])
@pytest.mark.parametrize("depth", [1000, 100_000])
def test_arguments_nested_too_deep_spoil_one_call(opening: str, depth: int) -> None:
    """T3: they are no arguments: the error quotes them, `{}` is stored, the siblings run."""
    closing = "}" if opening == '{"a":' else "]"
    raw = f'{{"x":{opening * depth}1{closing * depth}}}'
    pay, paid = payer()
    turn = reply("", call("pay", raw, id="a"), call("pay", {"n": 1}, id="b"))
    provider = Approver()
    played = play(agent([turn, "ok"], pay, approval=provider))
    (status, text) = results(played)["a"]

    assert ("error", True) == (status, '{"x":' in text and len(text) < 2000)
    assert ([1], ["b"]) == (paid, [request.call for request in provider.asked])
    assert "{}" == stored(played)[0].arguments


@pytest.mark.parametrize(
    "ids",
    [("", ""), ("a", "a"), ("a", "", "a", ""), ("\ud800", "\ud800")],
    ids=["empty", "repeated", "both", "no text"],
)
def test_ids_that_are_no_ids_are_made_anew(ids: tuple[str, ...]) -> None:
    """R2: call, result, events and requests use one id, which is non-empty and new in the conversation."""
    pay, paid = payer()
    turn = reply("", *[call("pay", {"n": n}, id=id) for n, id in enumerate(ids)])
    provider = Approver()
    played = play(agent([turn, "ok"], pay, approval=provider))
    used = [part.id for part in stored(played)]

    assert len(ids) == len(set(used))
    assert used == list(results(played)) == [event.call for event in played.all(ToolRequested)]
    assert Counter(used) == Counter(request.call for request in provider.asked)
    assert list(range(len(ids))) == sorted(paid)
    assert [f"paid {n}" for n in range(len(ids))] == [text for _, text in results(played).values()]


def test_an_id_that_comes_again_in_a_later_turn_or_run_is_made_anew() -> None:
    """R2: servers that number their calls from 0 in every reply do not mix up results."""
    bench = Bench()

    async def scene(stage: Stage) -> list[Played]:
        script = [reply("", call("t", {}, id="call_0"), call("t", {}, id="call_1")) for _ in range(3)]
        one = await stage.spawn(agent([*script[:2], "one", script[2], "two"], bench.tool()))
        return [await stage.play(one), await stage.play(one)]

    _, last = perform(scene)
    used = [part.id for part in stored(last)]

    assert (6, 6, {"t": 6}) == (len(used), len(set(used)), bench.runs)
    assert ["call_0", "call_1"] == used[:2]
    assert {"call_0", "call_1"} == {part.vendor_id for part in stored(last)[2:]}


def test_an_approval_of_a_repeated_id_binds_one_call() -> None:
    """R2, T8: two calls that the vendor gave one id are two requests, decided apart."""
    pay, paid = payer()
    turn = reply("", call("pay", {"n": 1}, id="x"), call("pay", {"n": 2}, id="x"))

    async def act(run: Run) -> None:
        await event_of(run, ApprovalRequired, nth=2)
        for request in run.open_requests:
            assert isinstance(request, ApprovalRequired)
            await run.decide(request.request, approve() if request.arguments == {"n": 2} else deny())

    played = play(agent([turn, "ok"], pay, approval=remote()), act=act)

    assert ([2], ["denied", "ok"]) == (paid, list(statuses(played).values()))


def test_a_pause_of_a_repeated_id_waits_for_both() -> None:
    """R2, T7: `submit` names the ids that the run uses."""
    ask = external_tool("ask", "Ask.", {"type": "object", "properties": {}})
    turn = reply("", call("ask", {}, id="x"), call("ask", {}, id="x"))
    given: dict[str, Any] = {}

    async def act(run: Run) -> None:
        await event_of(run, RunPaused)
        for place, pending in enumerate(run.pending):
            given[pending.id] = place
        run.submit(given)

    played = play(agent([turn, "ok"], ask), act=act)

    assert (2, "x") == (len(given), next(iter(given)))
    assert [("ok", "0"), ("ok", "1")] == list(results(played).values())
