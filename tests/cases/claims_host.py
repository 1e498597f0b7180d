"""What must hold of the cases about the host of the runs, beyond their checks."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import attrs
import trio
import trio.testing

from actors import Run
from actors.models.scripted import call, reply
from actors.tools import tool
from protocol.errors import AgentBusy
from protocol.events import ContentDelta, RunEvent
from protocol.model import ModelRequest
from protocol.turns import Turn
from tests.support.play import Stage, numbered_events, perform
from tests.support.specs import agent
from tests.support.strict import StrictModel

from .claims import claim, said
from .model import CaseModel, rule_of
from .program import CALL_SECONDS, CASES
from .runner import run_case


@attrs.frozen
class Left:
    """What a caller who leaves early leaves behind."""

    raised: Enough | None
    """What came out of the run's block; anything else would come out of the scene."""
    ended_as: str
    tasks: tuple[str, ...]
    """Tasks of the run that are still alive."""


class Enough(ValueError):
    """What a caller raises in the body of its loop."""


async def breaks(run: Run) -> None:
    """Look at the first piece of the answer, and no further."""
    async for event in run.events():
        if isinstance(event, ContentDelta):
            break


async def breaks_and_waits(run: Run) -> None:
    await breaks(run)
    await run.result()


async def raises(run: Run) -> None:
    async for event in run.events():
        if isinstance(event, ContentDelta):
            raise Enough("enough")


async def never_looks(run: Run) -> None:
    """Wait for the result alone."""
    await run.result()


async def makes_a_reader_only(run: Run) -> None:
    """Make a reader, and never start to iterate."""
    run.events()


@functools.cache
def leave(caller: Any) -> Left:
    """TRI-03: play it with one of these callers."""

    async def scene(stage: Stage) -> Left:
        model = CaseModel(rule_of(CASES["TRI-03"]["input"]["turns"]), seconds=CALL_SECONDS)
        one = await stage.spawn(agent(model))
        raised: Enough | None = None
        run: Run | None = None
        try:
            async with stage.run(one) as run:
                await caller(run)
        except Enough as error:
            raised = error
        assert run is not None
        await trio.testing.wait_all_tasks_blocked()
        events = [event for _, event in await numbered_events(one) if isinstance(event, RunEvent)]
        return Left(raised, events[-1].type, tuple(name for name in task_names() if run.id in name))

    return perform(scene)


def task_names() -> list[str]:
    """Names of all tasks that are alive."""
    root = trio.lowlevel.current_root_task()
    assert root is not None
    waiting, names = [root], list[str]()
    while waiting:
        task = waiting.pop()
        names.append(task.name)
        waiting += [child for nursery in task.child_nurseries for child in nursery.child_tasks]
    return names


@claim("TRI-03", "no RuntimeError/TrioInternalError; the run is cancelled or goes on as documented")
def who_leaves_early_breaks_nothing() -> None:
    """Leaving the run's block cancels the run; leaving only the iteration does not."""
    callers = (breaks, breaks_and_waits, raises, never_looks, makes_a_reader_only)

    assert [
        (False, "run_cancelled"),
        (False, "run_finished"),
        (True, "run_cancelled"),
        (False, "run_finished"),
        (False, "run_cancelled"),
    ] == [(left.raised is not None, left.ended_as) for left in map(leave, callers)]


@claim("TRI-03", "after the caller's scope ends no task of the run is alive")
def no_task_stays_behind() -> None:
    alive = {caller.__name__: leave(caller).tasks for caller in (breaks, breaks_and_waits, raises, never_looks)}

    assert dict.fromkeys(alive, ()) == alive


@claim("TRI-07", "the second start is refused with a clear 'busy' error or queued; never interleaved")
def a_session_has_one_run_at_a_time() -> None:
    (refused,) = run_case("TRI-07")
    (queued,) = run_case("TRI-07", "remote", ("if_busy", "queue"))

    assert [AgentBusy] == [type(error) for error in refused.refused]
    assert "has a run going on" in str(refused.refused[0])
    assert (["go", "third"], ["one", "two"]) == (said(refused.messages), [p.result.text for p in refused.played])
    assert [] == list(queued.refused)
    assert (["go", "another", "third"], ["one", "two", "three"]) == (
        said(queued.messages),
        [played.result.text for played in queued.played],
    )
    for came in (refused, queued):
        runs = [run for run, _ in itertools.groupby(came.stream, key=lambda event: event.run)]

        assert [played.run for played in came.played] == runs


@claim("TRI-07", "the third message works")
def the_session_lives_on() -> None:
    (refused,) = run_case("TRI-07")
    (queued,) = run_case("TRI-07", "remote", ("if_busy", "queue"))

    assert ("two", True) == (refused.last.result.text, refused.last.result.answered)
    assert ("three", True) == (queued.last.result.text, queued.last.result.answered)
    assert () == refused.faults == queued.faults


@attrs.frozen
class Crowd:
    """TRI-08: what came of all its runs."""

    models: dict[str, StrictModel]
    """By the agent's name."""
    streams: dict[str, tuple[RunEvent, ...]]
    """By the run's prompt, what its own agent's stream told."""
    calls: dict[str, int]
    """Model calls counted against each run, by its prompt."""
    ran: dict[str, set[str]]
    """By the run's prompt, the tools that ran."""


@functools.cache
def crowd() -> Crowd:
    """100 runs of each agent, all started at once: each run has a session, both share nothing but what they are."""
    told = CASES["TRI-08"]["input"]["agents"]
    came = Crowd({}, {}, {}, {})

    async def scene(stage: Stage) -> None:
        def spec(name: str) -> Any:
            def answers(request: ModelRequest) -> Turn:
                if len(request.messages) > 1:
                    return reply(f"{name} is done")
                return reply("", call(request.tools[0].name, {"who": said(request.messages)[0]}))

            async def body(who: str) -> str:
                await trio.sleep(1)
                came.ran.setdefault(who, set()).add(told[name]["tools"][0])
                return who

            (its_tool,) = told[name]["tools"]
            return agent(answers, tool(body, name=its_tool), name=name, system=told[name]["system"], max_llm_calls=2)

        specs = {name: spec(name) for name in told}

        async def one(name: str, number: int) -> None:
            prompt = f"{name} {number}"
            served = await stage.spawn(specs[name])
            played = await stage.play(served, prompt)
            came.calls[prompt] = played.result.counters.llm_calls
            came.streams[prompt] = tuple(
                event for _, event in await numbered_events(served) if isinstance(event, RunEvent)
            )

        async with trio.open_nursery() as nursery:
            for number, name in itertools.product(range(100), told):
                nursery.start_soon(one, name, number)
        came.models.update({name: spec.model for name, spec in specs.items()})

    perform(scene)
    return came


@claim("TRI-08", "each request carries the system text, tools, budget and session of its own agent only")
def no_request_carries_what_is_anothers() -> None:
    came = crowd()
    told = CASES["TRI-08"]["input"]["agents"]

    for name, model in came.models.items():
        assert {(told[name]["system"], tuple(told[name]["tools"]))} == {(a.system, a.tools) for a in model.asked}
        assert sorted([(f"{name} {n}",) for n in range(100)] * 2) == sorted(tuple(a.texts) for a in model.asked)
        assert {2} == {calls for prompt, calls in came.calls.items() if prompt.startswith(name)}
        assert {told[name]["tools"][0]} == {
            ran for prompt, tools in came.ran.items() if prompt.startswith(name) for ran in tools
        }
    assert 200 == len(came.calls) == len(came.ran)


@claim("TRI-08", "events of A never reach clients subscribed to B only")
def no_stream_tells_of_another() -> None:
    came = crowd()
    runs = {prompt: {event.run for event in events} for prompt, events in came.streams.items()}
    other = {"A": "tb", "B": "ta"}

    assert [1] * 200 == [len(found) for found in runs.values()]
    assert 200 == len(set().union(*runs.values()))
    assert [] == [
        prompt
        for prompt, events in came.streams.items()
        if f'"{other[prompt[0]]}"' in repr(events) or f"'{other[prompt[0]]}'" in repr(events)
    ]
