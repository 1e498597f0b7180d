"""Messages from outside while a run goes on: when they enter, and what becomes of those that do not (M3, I4)."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from actors import ContinuationResponse, Run, is_step_count, remote
from actors.models.scripted import call, reply
from protocol.errors import SpecError
from protocol.events import (
    ContentDelta,
    ContinuationRequired,
    MessageDelivered,
    MessageDropped,
    MessageQueued,
    StepStarted,
    ToolStarted,
)
from protocol.model import ModelRequest
from protocol.turns import AssistantMessage, TextPart, ToolMessage, Turn, UserMessage
from tests.support.play import Played, event_of, play
from tests.support.scripts import Bench, Trickle
from tests.support.specs import agent

ROUND = reply("", call("t", {}, id="a"))


def test_a_message_during_a_tool_waits_for_the_results() -> None:
    """I4: it is appended after the results of the turn in hand, once, and cuts nothing."""
    bench = Bench()

    async def act(run: Run) -> None:
        await event_of(run, ToolStarted)
        run.steer("be brief")

    played = play(agent([ROUND, "done"], bench.tool(seconds=5)), act=act)
    second = played.asked[1].messages

    assert isinstance(second[-2], ToolMessage)
    assert UserMessage("be brief") == second[-1]
    assert (["go", "be brief"], 5.0) == (played.asked[1].texts, played.seconds)
    assert {"t": 1} == bench.runs


def test_a_message_during_a_model_call_waits_for_the_exchange() -> None:
    """I4: it never stands between a call and its result."""

    async def act(run: Run) -> None:
        await event_of(run, ContentDelta)
        run.steer("in docx")

    script = Trickle([["let me", 2.0, reply("let me", call("t", {}, id="a"))], ["done"]])
    played = play(agent(script, Bench().tool()), act=act)
    kinds = [type(message) for message in played.asked[1].messages]

    assert [UserMessage, AssistantMessage, ToolMessage, UserMessage] == kinds
    assert "in docx" == played.asked[1].texts[-1]


def test_a_message_during_the_last_answer_keeps_the_run_going() -> None:
    """Step 7: on an answer, messages that wait are appended and the loop goes on; the answer stays in the history."""

    async def act(run: Run) -> None:
        await event_of(run, ContentDelta)
        run.steer("and in French?")

    played = play(agent(Trickle([["yes", 2.0], ["oui"]])), act=act)

    assert (
        UserMessage("go"),
        AssistantMessage((TextPart("yes"),)),
        UserMessage("and in French?"),
        AssistantMessage((TextPart("oui"),)),
    ) == played.messages
    assert ("oui", True, 2) == (played.result.text, played.result.answered, played.result.counters.steps)


def test_conditions_are_asked_before_a_waiting_message_keeps_the_run_going() -> None:
    """S2: a step that a waiting message would follow with another call is one at which conditions run."""

    async def act(run: Run) -> None:
        await event_of(run, ContentDelta)
        run.steer("and in French?")

    played = play(agent(Trickle([["yes", 2.0], ["oui"]]), stop_when=[is_step_count(1)]), act=act)

    assert ("stop_condition", ("and in French?",)) == (played.result.stopped_by, played.result.undelivered)
    assert "yes" == played.result.text


def test_a_ledger_without_a_call_leaves_the_message_undelivered() -> None:
    """B6, section 3: with no call left the run ends at the limit; limit, then the end, the message dropped before."""

    async def act(run: Run) -> None:
        await event_of(run, ContentDelta)
        run.steer("and in French?")

    played = play(agent(Trickle([["yes", 2.0]]), max_llm_calls=1), act=act)

    assert ("llm_calls", ("and in French?",)) == (played.result.stopped_by, played.result.undelivered)
    assert ["message_dropped", "limit_reached", "run_finished"] == played.types[-3:]


def test_a_limit_drops_what_waits_before_it_speaks() -> None:
    """B6: `limit_reached` stands directly before the terminal event, also where messages are dropped."""

    async def act(run: Run) -> None:
        await event_of(run, StepStarted, nth=2)
        run.steer("late")

    async def model(_request: object) -> Any:
        await trio.sleep(1)
        return reply("", call("t", {}))

    played = play(agent(model, Bench().tool(), max_tool_iterations=1), act=act)

    assert ["message_dropped", "limit_reached", "run_finished"] == played.types[-3:]
    assert ("late",) == played.result.undelivered


def test_many_messages_keep_their_order() -> None:
    """Messages are delivered in the order in which they came, each once, at the same boundary."""

    async def act(run: Run) -> None:
        await event_of(run, ToolStarted)
        ids.extend(run.steer(text) for text in ("one", "two", "three"))

    ids: list[str] = []
    played = play(agent([ROUND, "done"], Bench().tool(seconds=1)), act=act)

    assert ["go", "one", "two", "three"] == played.asked[1].texts
    assert ids == [event.message for event in played.all(MessageQueued)]
    assert ids == [event.message for event in played.all(MessageDelivered)]
    assert 3 == len(set(ids))


@pytest.mark.parametrize("when", ["before", "at", "after"])
@pytest.mark.parametrize("decision", ["approve", "discard", "decline"])
def test_at_a_gate_results_come_first_then_the_decision_then_what_waits(when: str, decision: str) -> None:
    """M3: results (real or synthetic), the decision's message, then waiting messages, whenever they came."""
    response = ContinuationResponse(
        "decline" if decision == "decline" else "approve",
        message="from the gate",
        discard_tool_calls=decision == "discard",
    )

    async def act(run: Run) -> None:
        await event_of(run, StepStarted, nth=2)
        if when == "before":
            run.steer("from outside")
        asked = await event_of(run, ContinuationRequired)
        if when == "at":
            run.steer("from outside")
        await run.decide(asked.request, response)
        if when == "after":
            run.steer("from outside")
        if decision != "decline":
            second = await event_of(run, ContinuationRequired, nth=2)
            await run.decide(second.request, ContinuationResponse("decline"))

    async def pause(request: ModelRequest) -> Turn | str:
        await trio.sleep(1)
        return reply("", call("t", {})) if request.tools_on else "final"

    spec = agent(pause, Bench().tool(seconds=1), max_tool_iterations=1, continuation=remote())
    played = play(spec, act=act)
    third = played.asked[2].messages
    told = "System notification: from the gate" if decision == "decline" else "from the gate"

    assert isinstance(third[-3], ToolMessage)
    assert [UserMessage(told), UserMessage("from outside")] == list(third[-2:])


def test_a_message_that_waits_when_a_run_is_cancelled_is_dropped() -> None:
    """Section 3: what still waits when a run ends is `message_dropped` and in `undelivered`."""

    async def act(run: Run) -> None:
        await event_of(run, ToolStarted)
        run.steer("one")
        run.steer("two")
        run.cancel()

    played = play(agent([ROUND], Bench().tool(seconds=60)), act=act)

    assert ("one", "two") == played.result.undelivered
    assert [event.message for event in played.all(MessageQueued)] == [
        event.message for event in played.all(MessageDropped)
    ]
    assert ["go"] == [m.text for m in played.messages if isinstance(m, UserMessage)]


def test_stop_leaves_what_waits_undelivered() -> None:
    """M2, section 3: at a stop the step in hand is finished and waiting messages are dropped."""

    async def act(run: Run) -> None:
        await event_of(run, ToolStarted)
        run.steer("one")
        run.stop()

    played = play(agent([ROUND, "never"], Bench().tool(seconds=3)), act=act)

    assert (("one",), "caller", 3.0) == (played.result.undelivered, played.result.stopped_by, played.seconds)


@pytest.mark.parametrize("text", ["", " \n", None, 5])
def test_an_empty_message_is_refused(text: Any) -> None:
    """A message without a text is the caller's mistake, and says so; nothing is queued."""

    async def act(run: Run) -> None:
        with pytest.raises(SpecError, match="steer"):
            run.steer(text)

    played = play(agent(["done"]), act=act)

    assert [] == played.all(MessageQueued)


def test_a_lone_surrogate_is_replaced() -> None:
    """R3: what enters the history encodes as UTF-8."""

    async def act(run: Run) -> None:
        await event_of(run, ToolStarted)
        run.steer("a\ud800b")

    played: Played = play(agent([ROUND, "done"], Bench().tool(seconds=1)), act=act)

    assert "a\ufffdb" == played.asked[1].texts[-1] == played.only(MessageQueued).text
