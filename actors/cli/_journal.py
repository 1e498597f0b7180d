"""`onward journal`: what a journal holds, read while a runtime may be writing it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
import trio

from protocol.codec import encode
from protocol.errors import JournalError
from protocol.events import RunCancelled, RunEvent, RunFailed, RunFinished, RunStarted
from protocol.records import StoredAgent
from protocol.turns import AssistantMessage, Message, ToolMessage, UserMessage, calls_of, text_of

from ..journal import JournalReader, read_journal
from ._journal_arguments import JournalArguments
from ._json import line_of
from ._live import LiveView
from ._output import Output
from ._screen import Screen
from ._status import ANSWERED, FAILED
from ._style import Style, one_line, style_for
from ._usage import UsageError

__all__ = ("journal_command",)

_WIDTH = 100


def journal_command(arguments: JournalArguments) -> int:
    """Show it; the exit status."""
    try:
        with read_journal(arguments.path) as journal:
            return trio.run(_show, arguments, journal)
    except JournalError as error:
        raise UsageError(str(error)) from error


async def _show(arguments: JournalArguments, journal: JournalReader) -> int:
    output = Output(1)
    try:
        if arguments.action == "replay" and not arguments.json:
            await _replay(journal, journal.find(arguments.agent).id, Screen(output, Output(2)))
        else:
            async for line in _lines(arguments, journal, style_for(is_terminal=output.is_terminal)):
                await output.write_bytes(line + b"\n")
    except OSError:
        return FAILED  # whoever read the output has left
    return ANSWERED


async def _lines(arguments: JournalArguments, journal: JournalReader, style: Style) -> AsyncIterator[bytes]:
    """The lines of an action, one at a time: a journal may be larger than memory."""
    lines: Iterator[bytes]
    match arguments.action:
        case "ls":
            lines = _json_list(journal) if arguments.json else _texts(_list(journal, style))
        case "show":
            agent = journal.find(arguments.agent).id
            lines = _json_agent(journal, agent) if arguments.json else _texts(_agent(journal, agent, style))
        case "replay":
            lines = _json_events(journal, journal.find(arguments.agent).id)
        case "export":
            chosen = [journal.find(arguments.agent)] if arguments.agent else journal.agents
            lines = (line for one in chosen for line in _export(journal, one.id))
    for line in lines:
        yield line
        await trio.lowlevel.checkpoint()


def _texts(lines: Iterator[str]) -> Iterator[bytes]:
    return (line.encode(errors="replace") for line in lines)


# ---------------------------------------------------------------- ls


def _state(stored: StoredAgent) -> str:
    if stored.retired:
        return "stopped"
    if stored.run is None:
        return "idle"
    return "waiting" if stored.run.asked or b'"pause":{' in bytes(stored.run.state) else "unfinished"


def _list(journal: JournalReader, style: Style) -> Iterator[str]:
    if not journal.agents:
        yield style.dim("The journal holds no agents.")
    for known in journal.agents:
        stored = journal.agent(known.id)
        state = f"{_state(stored):<10}"
        run = f"  {stored.run.run}" if stored.run is not None else ""
        told = f"{len(stored.messages)} messages, {stored.end} events"
        yield f"{known.id}  {style.bold(one_line(known.name, 40))}  {style.yellow(state) if run else state}  {told}{run}"


def _json_list(journal: JournalReader) -> Iterator[bytes]:
    for known in journal.agents:
        stored = journal.agent(known.id)
        yield encode({
            "agent": known.id,
            "name": known.name,
            "state": _state(stored),
            "run": stored.run.run if stored.run is not None else None,
            "messages": len(stored.messages),
            "epoch": stored.epoch,
            "events": stored.end,
        })


# ---------------------------------------------------------------- show


def _agent(journal: JournalReader, agent: str, style: Style) -> Iterator[str]:
    stored = journal.agent(agent)
    yield f"{style.bold(one_line(stored.name, 80))}  {stored.id}  {_state(stored)}"
    yield from _runs(journal, agent, style)
    if stored.run is not None:
        for one in stored.run.asked:
            left = "" if one.seconds_left is None else f", {one.seconds_left:.0f} s left"
            yield style.yellow(f"  open: {one.request.type} {one.request.request}{left}")
    yield ""
    for message in stored.messages:
        yield from _message(message, style)


def _runs(journal: JournalReader, agent: str, style: Style) -> Iterator[str]:
    """Its runs as the events that are still there tell of them."""
    prompts: dict[str, str] = {}
    steps = Counter[str]()
    ends: dict[str, str] = {}
    for stored in journal.events(agent):
        event = stored.event
        if not isinstance(event, RunEvent) or event.agent_path:
            continue
        match event:
            case RunStarted(prompt=prompt):
                when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(stored.at))
                prompts[event.run] = f"{when}  {one_line(prompt, 60)}"
            case RunFinished(summary=summary):
                ends[event.run] = f"{summary.finish_reason}, by {summary.stopped_by}"
            case RunFailed(error=error):
                ends[event.run] = f"failed: {error.code}"
            case RunCancelled(reason=reason):
                ends[event.run] = f"cancelled: {one_line(reason, 60)}"
            case _:
                steps[event.run] += event.type == "step_finished"
    for run in dict.fromkeys([*prompts, *ends]):
        told = prompts.get(run, "(began before the oldest event)")
        end = f"{steps[run]} steps, {ends.get(run, 'unfinished')}"
        yield f"  {run}  {told}  {style.dim(end)}"


def _message(message: Message, style: Style) -> Iterator[str]:
    match message:
        case UserMessage(text=text):
            yield f"{style.bold('user')}       {one_line(text, _WIDTH)}"
        case AssistantMessage(parts=parts, partial=partial):
            if text_of(parts) or not calls_of(parts):
                yield f"{style.bold('assistant')}  {one_line(text_of(parts), _WIDTH)}{' (cut)' if partial else ''}"
            for call in calls_of(parts):
                yield f"{style.bold('call')}       {one_line(f'{call.name} {call.arguments}', _WIDTH)}"
        case ToolMessage(results=results):
            for result in results:
                yield f"{style.bold('result')}     {one_line(f'{result.name} {result.status}: {result.text}', _WIDTH)}"


def _json_agent(journal: JournalReader, agent: str) -> Iterator[bytes]:
    stored = journal.agent(agent)
    yield encode({
        "agent": stored.id,
        "name": stored.name,
        "epoch": stored.epoch,
        "state": _state(stored),
        "events": stored.end,
        "messages": stored.messages,
        "run": stored.run,
    })


# ---------------------------------------------------------------- replay, export


def _json_events(journal: JournalReader, agent: str) -> Iterator[bytes]:
    return (line_of(stored.event, stored.seq) for stored in journal.events(agent))


async def _replay(journal: JournalReader, agent: str, screen: Screen) -> None:
    """The events as `onward run` showed them."""
    view = LiveView(screen)
    for stored in journal.events(agent):
        if isinstance(stored.event, RunStarted) and not stored.event.agent_path:
            await screen.end_text()
            await screen.note(screen.style.bold(f"> {one_line(stored.event.prompt, _WIDTH)}"))
        await view.show(stored.event, stored.seq)
    await screen.end_text()


def _export(journal: JournalReader, agent: str) -> Iterator[bytes]:
    """All that is known of an agent, one JSON object a line: itself, then its events with their times."""
    yield from _json_agent(journal, agent)
    for stored in journal.events(agent):
        fields: dict[str, Any] = msgspec.to_builtins(stored.event)
        yield encode({"stream": agent, "seq": stored.seq, "at": stored.at, **fields})
