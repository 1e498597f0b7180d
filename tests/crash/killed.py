"""Runs a scenario in processes that are killed with SIGKILL, each at another moment, and prints what came of each.

`python -m tests.crash.killed SCENARIO FOLDER EVERY`: a process for each life, forked from this one. The first life dies at a
step of its scheduler, or just before or after a commit; the second one lives to the end. What the world sees is written to
a file as it happens, as the process does not live to tell of it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import trio

from actors import open_runtime
from actors.journal import SQLiteJournal
from actors.journal._sqlite import SQLiteStore
from protocol.codec import decode_event
from protocol.errors import JournalError
from protocol.records import Record
from tests.support.disk import events_of

from .lives import SCENARIOS, Scenario, World, answer_all, faults_of_events


class Death:
    """When a process dies: at a step, before or after a commit; or not at all."""

    def __init__(self, kind: str = "", number: int = 0) -> None:
        self.kind, self.number = kind, number
        self.counts = {"step": 0, "before": 0, "after": 0}

    def come(self, kind: str) -> None:
        self.counts[kind] += 1
        if kind == self.kind and self.counts[kind] == self.number:
            os.kill(os.getpid(), signal.SIGKILL)


class Steps(trio.abc.Instrument):
    """Tells of every step of every task."""

    def __init__(self, death: Death) -> None:
        self._death = death

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        self._death.come("step")


class Mortal(SQLiteJournal):
    """A journal whose process may die around a commit."""

    def __init__(self, path: Path, death: Death) -> None:
        super().__init__(path)
        self._death = death

    def _make(self) -> Any:
        store, death = super()._make(), self._death
        commit = store.commit

        def mortal(records: Sequence[Record]) -> None:
            death.come("before")
            commit(records)
            death.come("after")

        store.commit = mortal  # type: ignore[method-assign]
        return store


class ToldWorld(World):
    """A world that tells at once of what happens in it."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._descriptor = os.open(file, os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def enter(self, task: str) -> None:
        os.write(self._descriptor, f"entered {task}\n".encode())

    def send(self) -> None:
        os.write(self._descriptor, b"sent\n")


async def _life(scenario: Scenario, folder: Path, death: Death) -> dict[str, Any]:
    world = ToldWorld(folder / "world")
    async with open_runtime(journal=Mortal(folder / "onward.db", death)) as runtime:
        agent = await runtime.spawn(scenario.make(world))
        run = agent.brought_back
        if run is None and agent.messages:
            return {"over": True}
        if run is None:
            run = await agent.start("go")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer_all, run, 0.005)
            await run.wait_ended()
            nursery.cancel_scope.cancel("the run is over")
        result = await run.result()
    return {
        "text": result.text.split("\n\n")[-1],
        "finish": [result.finish_reason, result.stopped_by],
        "rounds": result.counters.tool_iterations,
        "bodies": result.counters.tool_calls,
        "messages": [type(message).__name__ for message in result.messages],
        "llm_calls": result.counters.llm_calls,
        "refused": run.statistics().refused_events,
        "counts": death.counts,
    }


def _in_a_process(scenario: Scenario, folder: Path, death: Death) -> dict[str, Any] | None:
    """One life in a process of its own; `None` if it was killed."""
    child = os.fork()
    if not child:
        status = 1
        try:
            came = trio.run(_life, scenario, folder, death, instruments=[Steps(death)])
            (folder / "told").write_text(json.dumps(came))
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return None
    if os.WEXITSTATUS(status):
        return {"crashed": os.WEXITSTATUS(status)}
    told: dict[str, Any] = json.loads((folder / "told").read_text())
    return told


def _look(folder: Path) -> dict[str, Any]:
    """What the world saw, and whether the events on the disk are in order."""
    seen = (folder / "world").read_text().split("\n") if (folder / "world").exists() else []
    store = SQLiteStore(folder / "onward.db", read_only=True)
    faults: list[str] = []
    try:
        for known in store.open():
            faults += faults_of_events(decode_event(line) for line in events_of(store.all_of(known.id)))
    except JournalError as error:
        faults.append(str(error))
    finally:
        store.close()
    entered = [line for line in seen if line.startswith("entered")]
    return {
        "entered": len(entered),
        "twice": len(entered) - len(set(entered)),
        "sent": seen.count("sent"),
        "faults": faults,
    }


def _die_and_live(scenario: Scenario, folder: Path, death: Death) -> dict[str, Any]:
    folder.mkdir()
    first = _in_a_process(scenario, folder, death)
    second = _in_a_process(scenario, folder, Death()) if first is None else first
    return {"kind": death.kind, "number": death.number, "died": first is None, "told": second, **_look(folder)}


def main() -> None:
    """Play all moments."""
    name, place, every = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    scenario = next(scenario for scenario in SCENARIOS if scenario.name == name)
    first = _die_and_live(scenario, place / "undisturbed", Death())
    print(json.dumps(first), flush=True)
    counts: dict[str, int] = first["told"]["counts"]
    for kind in ("before", "after", "step"):
        for number in range(1, counts[kind] + 1, every if kind == "step" else 1):
            print(json.dumps(_die_and_live(scenario, place / f"{kind}-{number}", Death(kind, number))), flush=True)


if __name__ == "__main__":
    main()
