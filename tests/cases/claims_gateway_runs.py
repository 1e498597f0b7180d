"""What must hold of the cases about runs that are started and followed through the gateway, beyond their checks."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import attrs
import pytest
import trio

from actors import remote
from actors.client import Attached, Received
from protocol.events import (
    TERMINAL_EVENTS,
    ApprovalRequired,
    ApprovalResolved,
    ContinuationRequired,
    ContinuationResolved,
    LimitReached,
    RunEvent,
    RunFinished,
    ToolFinished,
    ToolStarted,
)
from protocol.wire.replies import Nothing, OpenRequest
from tests.support.play import Stage

from .claims import claim
from .claims_gateway_approval import IN_A_MOMENT, a_of
from .claims_wire_stream import only
from .gateway.deeds import see_the_end
from .gateway.person import Request
from .gateway.place import Place, at_a_gateway
from .model import CaseModel, rule_of
from .program import CASES, GATEWAY_CALL_SECONDS, spec_of
from .runner import run_case
from .tools import Workshop

# ---------------------------------------------------------------- two prompts at once


@attrs.frozen
class TwoPrompts:
    """CON-03: what a client saw that came when both were open."""

    agents: dict[str, str]
    """Ids, by name."""
    asked: dict[str, tuple[float, Request]]
    """The request of each agent, by its id, as it was told in time, and when."""
    came_at: float
    attached: list[Attached]
    replies: list[Any]
    outcomes: list[str]
    ends: list[Any]
    """The terminal events."""


async def no_agent(name: str) -> str:
    raise AssertionError(f"no tool runs an agent here: {name}")


@functools.cache
def two_prompts(*order: str) -> TwoPrompts:
    """Play it; a new client answers in this order."""
    told = CASES["CON-03"]["input"]

    async def scene(stage: Stage, place: Place) -> TwoPrompts:
        tools = Workshop(no_agent)
        agents: dict[str, str] = {}
        for name, script in told["script"].items():
            model = CaseModel(rule_of(script), seconds=GATEWAY_CALL_SECONDS)
            made = tools.make(told["tools"], {})
            spec = spec_of(name, told["config"], model, made, scale=1.0, answers=remote(), approves=remote())
            agents[name] = (await stage.spawn(spec)).id
        a = place.person("A")
        await a.come()
        for agent in agents.values():
            await a.start(agent, "go", idem="m1")
        for number in range(1, len(agents) + 1):
            await a.request(number=number)
        await trio.sleep(10)

        new = place.person("new")
        await new.come(since="head")
        came_at = trio.current_time()
        await new.until(lambda: True if len(new.attached) == len(agents) else None)
        asked = {
            item.agent: (time, item.event)
            for time, item in a.timed
            if isinstance(item.event, (ContinuationRequired, ApprovalRequired))
        }
        replies = [await new.decide(asked[agents[name]][1], "approve", idem="d1") for name in order]
        await see_the_end(new, len(agents))
        return TwoPrompts(
            agents,
            asked,
            came_at,
            new.attached,
            replies,
            [new.only(ContinuationResolved).outcome, new.only(ApprovalResolved).outcome],
            new.all(RunFinished),
        )

    return at_a_gateway(scene)


@claim("CON-03", "the snapshot lists both pending requests with kind, request id, agent id and deadline")
def a_snapshot_tells_of_all_that_waits() -> None:
    came = two_prompts("A", "B")
    found: dict[str, OpenRequest] = {
        request.agent: request for attached in came.attached for request in attached.reply.open_requests
    }

    assert set(came.agents.values()) == set(found)
    assert {"A": "continuation", "B": "approval"} == {
        name: found[id].__struct_config__.tag for name, id in came.agents.items()
    }
    for id, (asked_at, asked) in came.asked.items():
        left = found[id].expires_in_seconds

        assert (asked.request, asked.run) == (found[id].request, found[id].run)
        assert 600 - (came.came_at - asked_at) == pytest.approx(left, abs=IN_A_MOMENT)
    assert ["waiting", "waiting"] == [
        attached.reply.snapshot.state for attached in came.attached if attached.reply.snapshot is not None
    ]


@claim("CON-03", "answering them in either order resolves each one")
def both_are_answered() -> None:
    for order in itertools.permutations("AB"):
        came = two_prompts(*order)

        assert ["accepted", "accepted"] == [reply.status for reply in came.replies]
        assert ["approved", "approved"] == came.outcomes
        assert {"A done", "B done"} == {end.summary.text for end in came.ends}


# ---------------------------------------------------------------- limits, and ids


@claim("CON-11", "before the terminal event there is one limit event with used and max")
def the_limit_is_told_before_the_end() -> None:
    person = a_of(only("CON-11"))
    kinds = [type(item.event) for item in person.received]

    assert ("tool_iterations", 1, 1) == (
        person.only(LimitReached).limit.name,
        person.only(LimitReached).limit.used,
        person.only(LimitReached).limit.max,
    )
    assert [LimitReached, RunFinished] == kinds[-2:]


@claim("CON-11", "the terminal event's reason is limit")
def the_end_names_the_limit() -> None:
    summary = a_of(only("CON-11")).only(RunFinished).summary

    assert ("max_iterations", "tool_iterations", False) == (
        summary.finish_reason,
        summary.stopped_by,
        summary.answered,
    )
    assert summary.limit == a_of(only("CON-11")).only(LimitReached).limit


@claim("IDS-06", "each started event has exactly one finished event, paired by an id unique within the run")
def starts_and_ends_are_paired() -> None:
    person = a_of(only("IDS-06"))
    started, finished = person.all(ToolStarted), person.all(ToolFinished)

    assert 2 == len({event.call for event in started})
    assert [event.call for event in started] == [event.call for event in finished]
    assert ["1", "2"] == [event.text for event in finished]


@claim("IDS-06", "the run ends without waiting for a timeout")
def nothing_is_waited_for() -> None:
    assert 3 * GATEWAY_CALL_SECONDS == pytest.approx(only("IDS-06").last.seconds)


# ---------------------------------------------------------------- who leaves, and how it ends


@claim("GTW-07", "the resumed client gets all missed events and the terminal event")
def nothing_is_missed() -> None:
    came = only("GTW-07")
    person = a_of(came)
    first, second = person.visits

    assert list(range(1, len(person.numbers) + 1)) == person.numbers
    assert {ToolStarted, ToolFinished, RunFinished} <= {type(item.event) for item in person.received}
    assert [] == [
        item for _, item in first.items if isinstance(item, Received) and isinstance(item.event, ToolFinished)
    ]
    assert all(time >= 60 for time, _ in second.items)
    assert came.ends == person.all(RunFinished)


@claim("GTW-07", "stopping needs an explicit cancel message")
def only_a_cancel_stops() -> None:
    left = only("GTW-07")
    cancelled = only("GTW-07", ("actions", [{"when": "tool_started:a", "do": "cancel run"}]))

    assert ("answer", {"t": 1}) == (left.outcome, left.tool_runs)
    assert 10 + 2 * GATEWAY_CALL_SECONDS == pytest.approx(left.last.seconds)
    assert ("cancelled", Nothing()) == (cancelled.outcome, a_of(cancelled).said[-1].answer)
    assert cancelled.last.seconds < 1


@claim(
    "GTW-17", "in each of the six runs: exactly one terminal event, it is the last event of the run, and its kind fits"
)
def each_run_ends_once() -> None:
    told = {
        "model request fails in the middle of a stream": ("run_failed", "failure"),
        "tool raises a fatal error": ("run_failed", "failure"),
        "cancel while streaming": ("run_cancelled", "cancel"),
        "budget stop": ("run_finished", "total_tokens"),
        "prepare-step raises": ("run_failed", "failure"),
        "normal end": ("run_finished", "model"),
    }
    ended: list[tuple[str, str]] = []
    for came in run_case("GTW-17"):
        events = [item.event for item in a_of(came).received if isinstance(item.event, RunEvent)]
        (end,) = [event for event in events if isinstance(event, TERMINAL_EVENTS)]
        ended.append((end.type, end.summary.stopped_by))

        assert events[-1] is end

    assert CASES["GTW-17"]["input"]["runs"] == list(told)
    assert list(told.values()) == ended
