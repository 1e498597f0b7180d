"""Recorded conversations still read, whichever side's they are; and a gateway of today says the same kinds of things.

The committed transcripts stand for the clients and servers out there: they are not recorded anew because they fail here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import trio.testing

from protocol.codec import decode_event
from protocol.wire import METHODS, read_frame
from protocol.wire.envelope import Asked, Fault
from protocol.wire.incoming import read_messages, read_params
from protocol.wire.notifications import Events, Heartbeat
from protocol.wire.words import ERRORS, ERRORS_OF_ALL
from tests.protocol.test_events import NAMES

from .checks import faults
from .conversations import CONVERSATIONS
from .stage import TEMPLATES
from .tape import Line, Tape, lines_of, play, transcripts

each_transcript = pytest.mark.parametrize("path", transcripts(), ids=lambda path: path.stem)
NOT_PROVOKED = {"unauthenticated", "draining"}
"""Words that need a server at its end, or a token that is revoked."""

RARE = {"context_compacted", "handed_off", "tool_progress", "warning", "usage", "agent_failed", "agent_warning"}
"""Events that no conversation is about."""


def replies_in(lines: Iterable[Line]) -> Iterable[tuple[str | None, dict[str, Any]]]:
    """Each reply with its command's method; `None` for the reply to what was no command."""
    asked: dict[tuple[int, Any], str] = {}
    for line in lines:
        if line.by == "client":
            read = read_frame(line.text)
            if isinstance(read, Asked):
                asked[line.connection, read.id] = read.method
        else:
            for message in line.messages:
                if "method" not in message:
                    yield asked.pop((line.connection, message["id"]), None), message


def events_in(lines: Iterable[Line]) -> Iterable[tuple[int, dict[str, Any]]]:
    """Each `events` notification with its connection."""
    for line in lines:
        if line.by == "server":
            for message in line.messages:
                if message.get("method") == "events":
                    yield line.connection, message["params"]


def kinds_in(lines: list[Line]) -> set[str]:
    """What a conversation shows: commands, results, refusals and events, by name."""
    found: set[str] = set()
    for method, reply in replies_in(lines):
        error = reply.get("error")
        word = "done" if error is None else error.get("data", {}).get("code", error["code"])
        found.add(f"{method}: {word}")
    for _, params in events_in(lines):
        found |= {event["type"] for event in params["events"]}
    return found


def check(lines: list[Line]) -> None:
    """Everything in a conversation reads, fits, and follows from what came before."""
    for line in lines:
        if line.by == "server":
            assert [] == [fault for message in line.messages for fault in faults(message, "ServerMessage")]
            for message in read_messages(line.text):
                assert message.method is None or isinstance(read_params(message), (Events, Heartbeat))
        elif isinstance(read_frame(line.text), Asked):
            assert [] == faults(line.messages[0], "ClientFrame")
    for method, reply in replies_in(lines):
        if "result" in reply:
            assert method is not None
            assert [] == faults(reply["result"], "Results", "properties", method)
        elif "data" in reply["error"]:
            assert method is not None
            assert reply["error"]["data"]["code"] in {*METHODS[method].errors, *ERRORS_OF_ALL}
    for _, params in events_in(lines):
        for event in params["events"]:
            assert event["type"] == "skipped" or event["type"] == decode_event(json.dumps(event)).type


@each_transcript
def test_a_recorded_conversation_still_reads(path: Path) -> None:
    """Every frame, by the readers of both sides and by the schema; every result as its command's."""
    check(list(lines_of(path)))


@each_transcript
def test_what_was_no_command_is_none_today(path: Path) -> None:
    """A frame that got an error of JSON-RPC gets the same code; a command that was known is known."""
    lines = list(lines_of(path))
    replies = [line.messages[0] for line in lines if line.by == "server"]
    codes = [reply["error"]["code"] for reply in replies if reply.get("error", {}).get("code", 0) not in {0, -32010}]
    faults_now = [read for line in lines if line.by == "client" if isinstance(read := read_frame(line.text), Fault)]
    first = [-32600] if path.stem == "misframed" else []

    assert codes == first + [fault.code for fault in faults_now]


@each_transcript
def test_numbers_go_on(path: Path) -> None:
    """On each connection, the events of an agent have neither gap nor double, from attach to attach."""
    expected: dict[tuple[int, str], int] = {}
    for line in lines_of(path):
        for message in line.messages if line.by == "server" else ():
            if "result" in message and "recovered" in message["result"]:
                expected = {key: number for key, number in expected.items() if key[0] != line.connection}
            elif message.get("method") == "events":
                params = message["params"]
                key = (line.connection, params["agent"])

                assert expected.get(key, params["seq"]) == params["seq"]
                expected[key] = params["seq"] + sum(event.get("n", 1) for event in params["events"])


def test_the_transcripts_show_the_protocol() -> None:
    """Each command done, each error provoked that can be, and all but the rarest events."""
    assert set(CONVERSATIONS) == {path.stem for path in transcripts()}
    shown = set().union(*[kinds_in(list(lines_of(path))) for path in transcripts()])
    words = {kind.rpartition(": ")[2] for kind in shown}

    assert [] == [method for method in METHODS if f"{method}: done" not in shown]
    assert set(ERRORS) - words == NOT_PROVOKED
    assert {"-32700", "-32600", "-32601", "-32602"} <= words
    assert set(NAMES) - shown == RARE
    assert "skipped" in shown


@pytest.mark.slow
@pytest.mark.parametrize("name", CONVERSATIONS)
async def test_a_gateway_of_today_says_the_same(name: str, autojump_clock: trio.testing.MockClock) -> None:
    """Had again, the conversation reads and fits just as well, and shows the same as when it was recorded."""
    tape: Tape = await play(CONVERSATIONS[name], **TEMPLATES)
    (recorded,) = [path for path in transcripts() if path.stem == name]

    check(tape.lines)
    assert kinds_in(list(lines_of(recorded))) == kinds_in(tape.lines)
