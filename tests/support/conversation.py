"""A conversation held against the events of the runs that wrote it, and a result against its terminal event."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from protocol.events import (
    ContentDelta,
    ContextCompacted,
    MessageDelivered,
    MessageQueued,
    Rollback,
    RunEvent,
    RunStarted,
    StepFinished,
    StepStarted,
    ToolFinished,
    ToolRequested,
)
from protocol.result import RunSummary, StepResult
from protocol.text import clean
from protocol.turns import AssistantMessage, Message, TextPart, ToolCall, ToolMessage, UserMessage


def history_faults(messages: Sequence[Message], events: Iterable[RunEvent], *, loaded: int = 0) -> list[str]:
    """What is wrong with a conversation, and where it differs from the events of its runs.

    The first `loaded` messages were there before the runs. Where it was compacted, only the end of it can be held to that.
    """
    faults = _shape_faults(messages)
    told = list(events)
    if any(isinstance(event, ContextCompacted) for event in told):
        return faults + _compacted_faults(messages, told)
    stored = [
        (result.call, result.name, result.status, result.text, result.entered)
        for message in messages[loaded:]
        if isinstance(message, ToolMessage)
        for result in message.results
    ]
    ended = {event.call: event for event in told if isinstance(event, ToolFinished)}
    asked = [event.call for event in told if isinstance(event, ToolRequested)]
    if [entry[0] for entry in stored] != asked:
        faults.append(f"stored are the calls {[entry[0] for entry in stored]}, requested were {asked}")
    for entry in stored:
        end = ended.get(entry[0])
        if end is None:
            faults.append(f"{entry[0]} is stored without a tool_finished")
        elif entry != (end.call, end.name, end.status, end.text, end.started):
            faults.append(f"stored is {entry}, told was {end}")
    said = [message.text for message in messages[loaded:] if isinstance(message, UserMessage)]
    queued = {event.message: event.text for event in told if isinstance(event, MessageQueued)}
    for event in told:
        # A run that continues an answer has no prompt.
        heard = event.prompt if isinstance(event, RunStarted) and event.prompt else None
        if isinstance(event, MessageDelivered):
            heard = queued[event.message]
        if heard is None:
            continue
        if heard in said:
            del said[: said.index(heard) + 1]
        else:
            faults.append(f"{heard!r} is not stored, or not in order")
    return faults


def _compacted_faults(messages: Sequence[Message], told: list[RunEvent]) -> list[str]:
    """The oldest calls went, and of the runs' prompts the last one is there."""
    kept = [r.call for message in messages if isinstance(message, ToolMessage) for r in message.results]
    asked = [event.call for event in told if isinstance(event, ToolRequested)]
    own = [call for call in kept if call in asked]
    faults = [] if own == asked[len(asked) - len(own) :] else [f"stored are the calls {kept}, requested were {asked}"]
    prompts = [event.prompt for event in told if isinstance(event, RunStarted) and event.prompt]
    if prompts and UserMessage(prompts[-1]) not in messages:
        faults.append(f"{prompts[-1]!r} is gone")
    return faults


def _shape_faults(messages: Sequence[Message]) -> list[str]:
    """Every call has its one result directly after it, ids are unique, nothing empty is stored (R2, R3)."""
    faults: list[str] = []
    ids: set[str] = set()
    open_calls: list[str] = []
    for place, message in enumerate(messages):
        results = [result.call for result in message.results] if isinstance(message, ToolMessage) else []
        if results != open_calls or (isinstance(message, ToolMessage) and not results):
            faults.append(f"message {place} holds the results {results}, due are those of {open_calls}")
        open_calls = []
        if isinstance(message, AssistantMessage):
            open_calls = [part.id for part in message.parts if isinstance(part, ToolCall)]
            text = "".join(part.text for part in message.parts if isinstance(part, TextPart))
            if not open_calls and not text.strip():
                faults.append(f"message {place} is empty")
            if message.partial and open_calls:
                faults.append(f"message {place} is partial and has calls")
            faults += [f"message {place} repeats the id {call!r}" for call in open_calls if not call or call in ids]
            ids.update(open_calls)
        elif isinstance(message, UserMessage) and not message.text.strip():
            faults.append(f"message {place} is empty")
    if open_calls:
        faults.append(f"the calls {open_calls} have no results")
    return faults


def shown_faults(events: Iterable[RunEvent], steps: Sequence[StepResult]) -> list[str]:
    """Where the text that a run has shown of a step is not the step's; a model need not show any."""
    faults: list[str] = []
    shown, continues = "", False
    for event in events:
        match event:
            case RunStarted(prompt=prompt):
                continues = not prompt
            case StepStarted():
                shown = ""
            case ContentDelta(text=text):
                shown += text
            case Rollback(to=to):
                shown = shown[:to]
            case StepFinished(step=number):
                whole, text = steps[number].text, clean(shown)
                agrees = whole.endswith(text) if continues and number == 0 else whole == text
                if text.strip() and not agrees:
                    faults.append(f"step {number} is {whole!r}, shown was {text!r}")
            case _:
                pass
    return faults


def summary_faults(told: RunSummary, result: RunSummary) -> list[str]:
    """Where the terminal event and the result that the caller got differ."""
    return [
        f"{field.name}: told was {getattr(told, field.name)!r}, returned was {getattr(result, field.name)!r}"
        for field in attrs.fields(RunSummary)
        if getattr(told, field.name) != getattr(result, field.name)
    ]
