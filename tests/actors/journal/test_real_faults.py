"""Faults of real files: no room, no right to write, removed or torn under us, held by another process that is killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from actors import AgentSpec, open_runtime
from actors.journal import SQLiteJournal
from actors.journal._sqlite import SQLiteStore
from actors.models.scripted import Scripted
from protocol.codec import decode_event
from protocol.errors import JournalError
from protocol.history import first_fault
from protocol.turns import UserMessage
from tests.support.disk import events_of
from tests.support.unmeasured import unmeasured

ROOT = Path(__file__).resolve().parents[3]
BEGIN = """
import os, resource, sys, trio
from actors import AgentSpec, open_runtime
from actors.models.scripted import Scripted
from protocol.errors import JournalError
path = sys.argv[1]
async def main(most=100_000):
    try:
        async with open_runtime(journal=path) as runtime:
            agent = await runtime.spawn(AgentSpec(name="auditor", model=Scripted(["word " * 2000] * most)))
            for number in range(most):
                async with agent.run(f"prompt {number}") as run:
                    await run.result()
                print(number, flush=True)
            await trio.sleep_forever()
    except* JournalError as group:
        print("JournalError", *group.exceptions, flush=True)
"""
NO_ROOM = """
import actors.journal._sqlite
resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))
trio.run(main)
"""
NO_RIGHT = """
import actors.journal._sqlite
os.chmod(os.path.dirname(path), 0o555)
if os.getuid() == 0:
    os.setuid(65534)
trio.run(main)
"""
HOLD = "trio.run(main, 3)"


def program(what: str, path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", BEGIN + what, str(path)],
        cwd=ROOT,
        env=unmeasured(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said_by(process: subprocess.Popen[str]) -> list[str]:
    out, errors = process.communicate(timeout=120)

    assert (0, "") == (process.returncode, errors)
    return out.splitlines()


async def prompts_in(path: Path) -> list[str]:
    """The prompts of whole runs, in an agent that is brought back."""
    async with open_runtime(journal=path) as runtime:
        agent = await runtime.spawn(AgentSpec(name="auditor", model=Scripted(["made again"])))
        if agent.brought_back is not None:
            await agent.brought_back.wait_ended()
        messages = list(agent.messages)

    assert first_fault(messages) is None
    return [message.text for message in messages if isinstance(message, UserMessage)]


@pytest.mark.slow
@pytest.mark.peer
async def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    """Where the system refuses to write any more, the runtime ends with an error, and all that was acknowledged is there."""
    path = tmp_path / "a.db"
    *done, failure = await trio.to_thread.run_sync(lambda: said_by(program(NO_ROOM, path)))
    prompts = await prompts_in(path)

    assert len(done) > 3
    assert failure.startswith("JournalError")
    assert str(path) in failure
    assert "cannot be written" in failure
    assert [f"prompt {number}" for number in done] == prompts[: len(done)]
    assert len(prompts) <= len(done) + 1


@pytest.mark.peer
async def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    """It is said before anything begins."""
    folder = tmp_path / "mine"
    folder.mkdir()
    try:
        said = await trio.to_thread.run_sync(lambda: said_by(program(NO_RIGHT, folder / "a.db")))
    finally:
        folder.chmod(0o700)

    assert 1 == len(said)
    assert "may this user write to the file and its folder" in said[0]


@pytest.mark.slow
@pytest.mark.peer
async def test_another_process_that_is_killed_lets_go(tmp_path: Path) -> None:
    """While it lives it keeps others out, and what it wrote is not harmed; when it is killed, the next one goes on."""
    path = tmp_path / "a.db"
    holder = program(HOLD, path)
    assert holder.stdout is not None
    lines = [await trio.to_thread.run_sync(holder.stdout.readline) for _ in range(3)]
    refused = ""
    try:
        async with open_runtime(journal=path):
            raise AssertionError("two at a time")
    except JournalError as error:
        refused = str(error)
    holder.send_signal(signal.SIGKILL)
    await trio.to_thread.run_sync(holder.communicate)

    assert ["0\n", "1\n", "2\n"] == lines
    assert "in use by another process" in refused
    assert ["prompt 0", "prompt 1", "prompt 2"] == await prompts_in(path)


def remove_file(path: Path) -> None:
    path.unlink()


def remove_log(path: Path) -> None:
    path.with_name("a.db-wal").unlink()


def remove_folder(path: Path) -> None:
    shutil.rmtree(path.parent)


def replace(path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").replace(path)


@pytest.mark.parametrize("harm", [remove_file, remove_log, remove_folder, replace])
async def test_files_that_go_while_they_are_in_use(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    """Nothing more is acknowledged that nobody would find again."""
    path = tmp_path / "folder" / "a.db"
    path.parent.mkdir()
    answers: list[str] = []
    with pytest.raises(JournalError, match="removed or replaced while it was in use") as caught:
        async with open_runtime(journal=path) as runtime:
            agent = await runtime.spawn(AgentSpec(model=Scripted(["one", "two"])))
            for prompt in ("first", "second"):
                async with agent.run(prompt) as run:
                    answers.append((await run.result()).text)
                if prompt == "first":
                    harm(path)

    assert ["one"] == answers
    assert str(path) in str(caught.value)


async def _written(folder: Path) -> Path:
    """The files of a journal as they are while it is being written, and a process would die."""
    path = folder / "a.db"
    copy = folder / "copy"
    copy.mkdir()
    async with open_runtime(journal=path) as runtime:
        agent = await runtime.spawn(AgentSpec(name="auditor", model=Scripted([f"answer {n}" for n in range(6)])))
        for number in range(6):
            async with agent.run(f"prompt {number}") as run:
                await run.result()
        for name in ("a.db", "a.db-wal"):
            shutil.copy(folder / name, copy / name)
    return copy / "a.db"


@pytest.mark.slow
@pytest.mark.parametrize("harm", ["cut", "zeros", "noise"])
async def test_a_log_whose_end_was_lost(tmp_path: Path, harm: str) -> None:
    """A loss of power may tear what was written last: the agent is as it was at a commit before, whichever that is."""
    written = await _written(tmp_path)
    log = written.with_name("a.db-wal").read_bytes()
    found: set[int] = set()
    for number, at in enumerate(range(0, len(log), len(log) // 17)):
        place = tmp_path / f"torn-{number}"
        place.mkdir()
        shutil.copy(written, place / "a.db")
        rest = {"cut": b"", "zeros": bytes(len(log) - at), "noise": os.urandom(len(log) - at)}[harm]
        (place / "a.db-wal").write_bytes(log[:at] + rest)
        store = SQLiteStore(place / "a.db")
        known = store.open()
        events = [decode_event(line) for one in known for line in events_of(store.all_of(one.id))]
        store.close()
        prompts = await prompts_in(place / "a.db")
        found.add(len(prompts))

        assert [f"prompt {n}" for n in range(len(prompts))] == prompts
        assert len(known) == bool(events)

    assert {0, 6} <= found
    assert len(found) > 3


async def test_a_record_that_was_changed(tmp_path: Path) -> None:
    """A file that is sound, with a record in it that is not: the agent is not brought back as what it never was."""
    path = tmp_path / "a.db"
    async with open_runtime(journal=path) as runtime:
        agent = await runtime.spawn(AgentSpec(name="auditor", model=Scripted(["one"])))
        async with agent.run("first") as run:
            await run.result()
    store = SQLiteStore(path, keep_seconds=60, max_bytes=1 << 30)
    store.open()
    store._db.execute(
        """UPDATE log SET facts = CAST('{"messages": 5}' AS BLOB) WHERE NOT whole AND length(facts) > 2"""
    )
    store.close()
    async with open_runtime(journal=SQLiteJournal(path)) as runtime:
        with pytest.raises(JournalError, match="record of agent .* that cannot be read"):
            await runtime.spawn(AgentSpec(name="auditor", model=Scripted(["two"])))
        other = await runtime.spawn(AgentSpec(name="other", model=Scripted(["fine"])))
        async with other.run("go") as run:
            text = (await run.result()).text

    assert "fine" == text
