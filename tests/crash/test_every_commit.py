"""The process dies at every commit of the journal, and with it all that the disk does not tell of."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.codec import decode_event
from protocol.events import ContextCompacted, ContinuationRequired, ToolFinished
from protocol.history import first_fault
from protocol.records import fold
from protocol.turns import UserMessage
from tests.support.disk import events_of

from .lives import SCENARIOS as ALL
from .lives import Life, Scenario, faults_of_events, live

SCENARIOS = [scenario for scenario in ALL if not scenario.cancels]
_undisturbed: dict[str, Life] = {}


def undisturbed(scenario: Scenario) -> Life:
    if scenario.name not in _undisturbed:
        _undisturbed[scenario.name] = live(scenario)
    return _undisturbed[scenario.name]


def essence(life: Life) -> dict[str, Any]:
    """What must not depend on where the process died."""
    assert life.result is not None
    result = life.result
    return {
        "text": result.text.split("\n\n")[-1],
        "answered": result.answered,
        "finish": (result.finish_reason, result.stopped_by, result.finalized),
        "rounds": result.counters.tool_iterations,
        "steps": result.counters.steps,
        "bodies": result.counters.tool_calls,
        "messages": [type(message).__name__ for message in result.messages],
    }


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_it_goes_on_from_every_commit(scenario: Scenario) -> None:
    """The run comes to the same end: nothing that was entered is entered again, nothing that was sent is lost count of."""
    first = undisturbed(scenario)
    expected = essence(first)
    assert faults_of_events(first.events) == []
    for number in range(len(first.disk.batches) + 1):
        entered, sent = (*first.snapshots, first.world.seen())[number]
        life = live(scenario, first.disk.batches[:number])
        where = f"{scenario.name}, dead after {number} of {len(first.disk.batches)} commits"
        assert faults_of_events(life.events) == [], where
        if life.result is None:
            continue  # the run was over, and the disk knew it

        assert set(entered) & set(life.world.entered) == set(), where
        assert life.refused == 0, where
        assert expected == essence(life), where
        assert first_fault(life.result.messages) is None, where
        if number:
            assert sent + life.world.sent <= life.result.counters.llm_calls, where
        (account,) = life.accounts
        assert (account.open_reservations, account.llm_calls) == (0, life.result.counters.llm_calls), where
        assert account.tool_calls >= life.result.counters.tool_calls, where
        before = events_of(first.disk.records()[: len([r for batch in first.disk.batches[:number] for r in batch])])
        assert before == events_of(life.disk.records())[: len(before)], where


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_it_goes_on_again_and_again(scenario: Scenario) -> None:
    """A process that dies again, soon after it was started, loses nothing either."""
    first = undisturbed(scenario)
    for number in range(1, len(first.disk.batches), 3):
        second = live(scenario, first.disk.batches[:number])
        for more in range(number + 1, min(len(second.disk.batches), number + 4)):
            life = live(scenario, second.disk.batches[:more])

            assert faults_of_events(life.events) == [], (number, more)
            assert life.result is None or essence(first) == essence(life), (number, more)


@pytest.mark.slow
def test_open_questions_stay_open_under_their_names() -> None:
    """What was asked and not answered is open when the agent is back, and is asked only once in the events."""
    for scenario in SCENARIOS:
        if scenario.name not in {"gate", "provider", "approval"}:
            continue
        first = undisturbed(scenario)
        for number in range(1, len(first.disk.batches)):
            life = live(scenario, first.disk.batches[:number])
            asked = [event for event in life.events if isinstance(event, ContinuationRequired)]
            open_then = open_requests(first, number)

            assert open_then == set(life.open_at_start), (scenario.name, number)
            assert len(asked) == len({event.request for event in asked}), (scenario.name, number)
            if scenario.name == "provider" and open_then:
                assert open_then <= set(life.world.asked), "a function is asked again"


def open_requests(first: Life, number: int) -> set[str]:
    """The requests that are asked and not resolved, by the events of so many commits."""
    found: set[str] = set()
    for batch in first.disk.batches[:number]:
        for line in events_of(batch):
            if b'_required"' in line:
                found.add(_request(line))
            elif b'_resolved"' in line:
                found.discard(_request(line))
    return found


def _request(line: bytes) -> str:
    return line.split(b'"request":"')[1].split(b'"')[0].decode()


@pytest.mark.slow
def test_a_body_that_may_have_been_entered_is_interrupted() -> None:
    """Wherever it died, each call has one end; `interrupted` where its effect may have happened."""
    scenario = SCENARIOS[0]
    first = undisturbed(scenario)
    seen: set[str] = set()
    for number in range(1, len(first.disk.batches)):
        entered, _ = first.snapshots[number]
        life = live(scenario, first.disk.batches[:number])
        told = {event.call: event.status for event in life.events if isinstance(event, ToolFinished)}

        assert len(told) == len([event for event in life.events if isinstance(event, ToolFinished)])
        assert {f"c{task}" for task in entered} <= set(told)
        assert all(told[f"c{task}"] in {"ok", "interrupted"} for task in entered)
        seen |= set(told.values())

    assert {"ok", "interrupted"} == seen


@pytest.mark.slow
def test_a_conversation_is_the_one_before_or_the_one_after() -> None:
    """Whatever commit is the last, what is on the disk has the summary that its events tell of, and nothing else of it."""
    scenario = next(scenario for scenario in SCENARIOS if scenario.name == "summarised")
    first = undisturbed(scenario)
    seen: set[int] = set()
    for number in range(1, len(first.disk.batches) + 1):
        records = [record for batch in first.disk.batches[:number] for record in batch]
        told = sum(isinstance(decode_event(line), ContextCompacted) for line in events_of(records))
        messages = fold(records[0].agent, records).messages
        texts = [message.text for message in messages if isinstance(message, UserMessage)]
        summaries = [text.partition("]\n")[2] for text in texts if text.startswith("[Summary")]

        assert first_fault(messages) is None
        assert ([f"summary {told}"] if told else []) == summaries, number
        assert "go" in texts or not texts
        assert len(messages) <= 10
        seen.add(told)

    assert {0, 1, 2} == seen
