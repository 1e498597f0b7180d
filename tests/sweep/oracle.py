"""Says what is wrong with the record of a played scenario. Knows the rules from the documents, not from the code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from protocol.events import (
    ContentDelta,
    RunCancelled,
    RunEvent,
    RunFailed,
    RunFinished,
    RunStarted,
    ToolFinished,
    ToolStarted,
)
from protocol.turns import AssistantMessage, TextPart
from tests.support.conversation import history_faults
from tests.support.oracle import event_faults

from .play import Record
from .world import PROMPTS, TOKENS

TERMINAL = (RunFinished, RunFailed, RunCancelled)
NOT_ENTERED = {"denied", "discarded", "not_run"}


def faults_of(record: Record) -> list[str]:
    """Every rule that the record breaks, in words; none is what a sweep asks for."""
    if record.hung:
        return ["it hung"]
    runs = [event for event in record.events if isinstance(event, RunEvent)]
    return [
        *event_faults(list(enumerate(record.events, start=1))),
        *history_faults(record.messages, runs),
        *_shown(record),
        *_ledger(record),
        *_rest(record),
        *_against_truth(record),
    ]


def _shown(record: Record) -> Iterator[str]:
    """What was shown is what is stored, whole or partial."""
    texts: dict[str, str] = {}
    for event in record.events:
        if isinstance(event, ContentDelta):
            texts[event.message] = texts.get(event.message, "") + event.text
    shown = [text for text in texts.values() if text.strip()]
    kept = [
        "".join(part.text for part in message.parts if isinstance(part, TextPart))
        for message in record.messages
        if isinstance(message, AssistantMessage)
    ]
    if shown != kept:
        yield f"shown was {shown}, stored is {kept}"


def _ledger(record: Record) -> Iterator[str]:
    """Calls are those that left; tokens are never double, and at most those of the disturbed call are unknown."""
    world, total = record.world, record.total
    for account in (*record.accounts, total):
        if account.open_reservations:
            yield f"{account.name}: open reservations {account.open_reservations}"
    if total.llm_calls != world.sent:
        yield f"{total.llm_calls} calls counted, {world.sent} sent"
    tokens = total.usage.total_tokens
    if tokens != TOKENS * world.whole:
        yield f"{tokens} tokens counted, {TOKENS * world.whole} used"
    if total.usage.complete and world.whole != world.sent:
        yield "usage says that it is complete, but a reply was lost"
    for result, account in zip(record.results, record.accounts, strict=True):
        if result.counters.llm_calls != account.llm_calls or result.usage != account.usage:
            yield "a run's result differs from its account"


def _against_truth(record: Record) -> Iterator[str]:
    """What the events say of a tool is what the tool knows."""
    world = record.world
    entered = {event.call for event in record.events if isinstance(event, ToolStarted)}
    if entered != world.entered:
        yield f"started: {sorted(entered)}, really entered: {sorted(world.entered)}"
    for event in record.events:
        if isinstance(event, ToolFinished):
            done = event.call in world.completed
            if event.status == "ok" and not done:
                yield f"{event.call} is ok, but its effect never happened"
            if done and event.status in NOT_ENTERED:
                yield f"{event.call} is {event.status}, but its effect happened"


def _rest(record: Record) -> Iterator[str]:
    if record.pending:
        yield f"{record.pending} requests are still open"
    if record.open_asks:
        yield f"mailboxes with open asks, or not closed: {record.open_asks}"
    if record.tasks_left:
        yield f"tasks left: {record.tasks_left}"
    if record.inside_at_end:
        yield f"still running at the end: {sorted(record.inside_at_end)}"
    if record.refused:
        yield f"{record.refused} events were refused"


def second_run_works(record: Record) -> list[str]:
    """The run after the disturbed one must come to what it would have come to alone."""
    begun = [event.prompt for event in record.events if isinstance(event, RunStarted)]
    if len(record.results) != len(begun) or begun[-1] != PROMPTS[1]:
        return [f"the runs {begun} left {len(record.results)} results"]
    result: Any = record.results[-1]
    limited = record.scenario.gate == "off" and not record.scenario.finalize
    expected = (not limited, "let me see" if limited else "done")
    actual = (result.answered, result.text.rsplit("\n\n", maxsplit=1)[-1])
    return [] if actual == expected else [f"the second run came to {actual}, not {expected}"]


def ending(record: Record) -> str:
    """The type of the first run's terminal event; `""` if it never began."""
    ends = [event.type for event in record.events if isinstance(event, TERMINAL)]
    return ends[0] if ends else ""


def was_too_late(record: Record) -> bool:
    """Whether the first run's last reply was there, whole, when it was disturbed: it may end as if it had not been."""
    return record.sent_after_act == 0 and record.whole_at_act == record.sent_at_act
