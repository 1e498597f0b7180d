"""Says what is wrong with the record of a played scenario. Knows the rules from the documents, not from the code."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from protocol.events import (
    ContentDelta,
    ContinuationRequired,
    ContinuationResolved,
    Event,
    Finalizing,
    LimitReached,
    MessageDelivered,
    MessageDropped,
    MessageQueued,
    RunCancelled,
    RunEvent,
    RunFailed,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
    ToolFinished,
    ToolRequested,
    ToolStarted,
)
from protocol.turns import AssistantMessage, TextPart, ToolCall, ToolMessage, ToolResult, UserMessage

from .play import Record
from .world import PROMPTS, TOKENS

TERMINAL = (RunFinished, RunFailed, RunCancelled)
NOT_ENTERED = {"denied", "discarded", "not_run"}


def faults_of(record: Record) -> list[str]:
    """Every rule that the record breaks, in words; none is what a sweep asks for."""
    if record.hung:
        return ["it hung"]
    found = [*_history(record), *_ledger(record), *_rest(record), *_against_truth(record)]
    for _, events in _by_run(record.events):
        found += _run_events(events)
    found += _agreement(record)
    return found


def _by_run(events: list[Event]) -> list[tuple[str, list[RunEvent]]]:
    runs: dict[str, list[RunEvent]] = {}
    for event in events:
        if isinstance(event, RunEvent):
            runs.setdefault(event.run, []).append(event)
    return list(runs.items())


def _history(record: Record) -> Iterator[str]:
    """R2 and R3: every call has its one result directly after its turn, in order; ids are new; nothing is empty."""
    messages = record.messages
    seen: set[str] = set()
    for index, message in enumerate(messages):
        after = messages[index + 1] if index + 1 < len(messages) else None
        match message:
            case AssistantMessage(parts=parts):
                calls = [part.id for part in parts if isinstance(part, ToolCall)]
                text = "".join(part.text for part in parts if isinstance(part, TextPart))
                answered = [result.call for result in after.results] if isinstance(after, ToolMessage) else []
                if calls != answered:
                    yield f"message {index}: calls {calls}, results {answered}"
                if seen & set(calls) or len(set(calls)) != len(calls) or "" in calls:
                    yield f"message {index}: call ids used before: {calls}"
                if not calls and not text.strip():
                    yield f"message {index} is empty"
                seen |= set(calls)
            case ToolMessage():
                before = messages[index - 1] if index else None
                if not isinstance(before, AssistantMessage):
                    yield f"message {index}: results without their turn"
            case UserMessage(text=text):
                if not text.strip():
                    yield f"message {index} is empty"


def _run_events(events: list[RunEvent]) -> Iterator[str]:
    """R4, G9 and B6 on the events of one run."""
    ends = [index for index, event in enumerate(events) if isinstance(event, TERMINAL)]
    if len(ends) != 1:
        yield f"{len(ends)} terminal events"
    elif ends[0] != len(events) - 1:
        yield f"after the terminal event: {[event.type for event in events[ends[0] + 1 :]]}"
    if not isinstance(events[0], RunStarted):
        yield f"the first event is {events[0].type}"
    yield from _calls(events)
    yield from _requests(events)
    yield from _steering(events)
    for event, following in itertools.pairwise(events):
        if isinstance(event, LimitReached) and not isinstance(following, (ContinuationRequired, Finalizing, *TERMINAL)):
            yield f"limit_reached before {following.type}"
    started = [event.step for event in events if isinstance(event, StepStarted)]
    finished = [event.step for event in events if isinstance(event, StepFinished)]
    if started != list(range(len(started))) or finished != started[: len(finished)]:
        yield f"steps started {started}, finished {finished}"
    last = events[-1]
    if isinstance(last, RunFinished) and started != finished:
        yield f"the run finished, its steps did not: {started}, {finished}"
    if isinstance(last, TERMINAL):
        counters = last.summary.counters
        entered = sum(isinstance(event, ToolStarted) for event in events)
        if counters.tool_calls != entered:
            yield f"{entered} bodies entered, the summary says {counters.tool_calls}"
        if counters.steps != len(finished):
            yield f"{len(finished)} steps finished, the summary says {counters.steps}"


def _calls(events: list[RunEvent]) -> Iterator[str]:
    state: dict[str, str] = {}
    for event in events:
        match event:
            case ToolRequested(call=call):
                if call in state:
                    yield f"{call} requested twice"
                state[call] = "requested"
            case ToolStarted(call=call):
                if state.get(call) != "requested":
                    yield f"{call} started when {state.get(call)}"
                state[call] = "started"
            case ToolFinished(call=call, started=started, status=status):
                if state.get(call) not in {"requested", "started"}:
                    yield f"{call} finished when {state.get(call)}"
                if started != (state.get(call) == "started"):
                    yield f"{call} finished with started={started} when {state.get(call)}"
                if started and status in NOT_ENTERED:
                    yield f"{call} was started and is {status}"
                if not started and status in {"ok", "timed_out", "interrupted"}:
                    yield f"{call} was not started and is {status}"
                state[call] = "finished"
    open_calls = [call for call, where in state.items() if where != "finished"]
    if open_calls:
        yield f"calls without an end: {open_calls}"


def _requests(events: list[RunEvent]) -> Iterator[str]:
    asked = [event.request for event in events if isinstance(event, ContinuationRequired)]
    resolved = [event.request for event in events if isinstance(event, ContinuationResolved)]
    if asked != resolved:
        yield f"asked {asked}, resolved {resolved}"


def _steering(events: list[RunEvent]) -> Iterator[str]:
    queued = [event.message for event in events if isinstance(event, MessageQueued)]
    ended = [event.message for event in events if isinstance(event, (MessageDelivered, MessageDropped))]
    if queued != ended:
        yield f"messages queued {queued}, delivered or dropped {ended}"


def _agreement(record: Record) -> Iterator[str]:
    """History and events were settled from one record."""
    said = {
        event.call: ToolResult(event.call, event.name, event.status, event.text, event.started)
        for event in record.events
        if isinstance(event, ToolFinished)
    }
    stored = {
        result.call: result
        for message in record.messages
        if isinstance(message, ToolMessage)
        for result in message.results
    }
    if said != stored:
        differing = sorted(call for call in said.keys() | stored.keys() if said.get(call) != stored.get(call))
        yield f"events and history differ about {differing}"
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
