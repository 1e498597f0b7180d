"""Runs a scenario in processes that are killed with SIGKILL, each at another moment, and prints what came of each.

`python -m tests.crash.killed SCENARIO FOLDER EVERY CLOCK DURABILITY`: a process for each life, forked from this one. The
first life dies at a step of its scheduler (so at an await: of any task, and of the journal's own), or just before or after
a commit; so may the second one; the last one lives to the end. What the world sees, and what a client gets to see, is
written to files as it happens, as the process does not live to tell of it. With a `virtual` clock the file is written
between two steps, with a `real` one by the journal's own thread.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import trio
import trio.testing

from actors import Agent, Run, open_runtime
from actors.journal import SQLiteJournal
from actors.journal._sqlite import SQLiteStore
from protocol.codec import decode_event
from protocol.errors import JournalError, RunCancelledError
from protocol.history import first_fault
from protocol.records import Record
from tests.support.disk import events_of

from .lives import SCENARIOS, Scenario, World, answer_all, faults_of_events

CANCELLED_AFTER = 3
"""Bodies that have been entered when the run of that scenario is cancelled."""


@attrs.frozen
class Way:
    """How lives are lived."""

    scenario: Scenario
    virtual: bool
    durability: Any


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

    def __init__(self, path: Path, way: Way, death: Death) -> None:
        super().__init__(path, durability=way.durability)
        self._threaded = not way.virtual
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
    """A world that tells at once, and for good, of what happens in it."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._descriptor = os.open(file, os.O_CREAT | os.O_APPEND | os.O_RDWR)
        self.entered = [line for line in file.read_text().split("\n") if line.startswith("entered")]

    def enter(self, task: str) -> None:
        super().enter(task)
        self._tell(f"entered {task}\n")

    def send(self) -> None:
        self._tell("sent\n")

    def _tell(self, line: str) -> None:
        os.write(self._descriptor, line.encode())
        os.fsync(self._descriptor)


class Client:
    """Follows the agent's events as a client may, from where the one of the life before stood."""

    def __init__(self, file: Path) -> None:
        self._descriptor = os.open(file, os.O_CREAT | os.O_APPEND | os.O_RDWR)
        self.seq = len(file.read_bytes().splitlines())

    async def follow(self, agent: Agent) -> None:
        stream = agent.stream
        while True:
            woken = trio.Event()
            stream.arm(woken.set)
            if stream.visible > self.seq:
                first, entries = stream.read(self.seq, stream.visible - self.seq)
                for number, (_, data) in enumerate(entries, first):
                    os.write(self._descriptor, f"{stream.epoch} {number} ".encode() + data + b"\n")
                    self.seq = number
            await woken.wait()


async def _life(way: Way, folder: Path, death: Death) -> dict[str, Any]:
    world, client = ToldWorld(folder / "world"), Client(folder / "client")
    async with open_runtime(journal=Mortal(folder / "onward.db", way, death)) as runtime:
        agent = await runtime.spawn(way.scenario.make(world))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.follow, agent)
            run = agent.brought_back
            over = run is None and bool(agent.messages)
            if run is None and not over:
                run = await agent.start("go")
            told = {"over": True} if over or run is None else await _see(way.scenario, run, world)
            await runtime.flushed()
            await trio.sleep(0.01)
            fault = first_fault(agent.messages)
            behind = agent.stream.end - client.seq
            nursery.cancel_scope.cancel("all has been said")
    return told | {"counts": death.counts, "fault": fault, "behind": behind}


async def _see(scenario: Scenario, run: Run, world: World) -> dict[str, Any]:
    """See a run to its end."""
    if (
        scenario.steer
        and not any(getattr(m, "text", "") == "left" for m in run.messages)
        and not run._core.state.steering
    ):
        run.steer("left")  # it was never acknowledged: whoever said it says it again
    async with trio.open_nursery() as nursery:
        nursery.start_soon(answer_all, run, 0.005)
        if scenario.cancels:
            nursery.start_soon(_cancel, run, world)
        await run.wait_ended()
        nursery.cancel_scope.cancel("the run is over")
    try:
        result = await run.result()
    except RunCancelledError as error:
        result = error.partial
    return {
        "text": result.text.split("\n\n")[-1],
        "finish": [result.finish_reason, result.stopped_by],
        "rounds": result.counters.tool_iterations,
        "bodies": result.counters.tool_calls,
        "messages": [type(message).__name__ for message in result.messages],
        "llm_calls": result.counters.llm_calls,
        "refused": run.statistics().refused_events,
        "held": run.statistics().account.open_reservations,
        "open": len(run.open_requests),
    }


async def _cancel(run: Run, world: World) -> None:
    while len(world.entered) < CANCELLED_AFTER:  # noqa: ASYNC110  it comes from outside
        await trio.sleep(0.005)
    run.cancel("enough")


def _in_a_process(way: Way, folder: Path, death: Death) -> dict[str, Any] | None:
    """One life in a process of its own; `None` if it was killed."""
    child = os.fork()
    if not child:
        status = 1
        try:
            clock = trio.testing.MockClock(autojump_threshold=0) if way.virtual else None
            came = trio.run(_life, way, folder, death, instruments=[Steps(death)], clock=clock)
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
    """What the world saw, and whether the events on the disk, and those that a client got, are in order."""
    seen = (folder / "world").read_text().split("\n") if (folder / "world").exists() else []
    got = (folder / "client").read_bytes().splitlines() if (folder / "client").exists() else []
    store = SQLiteStore(folder / "onward.db", read_only=True)
    faults: list[str] = []
    try:
        (known,) = store.open()
        lines = events_of(store.all_of(known.id))
        faults += faults_of_events(map(decode_event, lines))
        epochs = {line.split(b" ")[0] for line in got}
        if len(epochs) > 1 or [line.split(b" ", 1)[1] for line in got] != [
            b"%d %b" % (number, line) for number, line in enumerate(lines, 1)
        ]:
            faults.append(
                f"a client got {len(got)} events, of {len(epochs)} epochs, that are not the {len(lines)} there are"
            )
    except (JournalError, ValueError) as error:
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


def _lives(way: Way, folder: Path, *deaths: Death) -> dict[str, Any]:
    """Die as often as that, and live to the end then."""
    folder.mkdir()
    died = 0
    told: dict[str, Any] | None = None
    for death in (*deaths, Death()):
        told = _in_a_process(way, folder, death)
        if told is not None:
            break
        died += 1
    where = [(death.kind, death.number) for death in deaths]
    return {"where": where, "died": died, "told": told, **_look(folder)}


def main() -> None:
    """Play all moments."""
    name, place, every, clock, durability = sys.argv[1:]
    way = Way(next(one for one in SCENARIOS if one.name == name), clock == "virtual", durability)
    folder = Path(place)
    first = _lives(way, folder / "undisturbed")
    print(json.dumps(first), flush=True)
    counts: dict[str, int] = first["told"]["counts"]
    for kind in ("before", "after", "step"):
        stride = int(every) if kind == "step" else max(1, int(every) // 12)
        for number in range(1, counts[kind] + 1, stride):
            print(json.dumps(_lives(way, folder / f"{kind}-{number}", Death(kind, number))), flush=True)
    for number in range(1, counts["step"] + 1, int(every) * 3):
        deaths = Death("step", number), Death("step", 1 + number * 7 % 90)
        print(json.dumps(_lives(way, folder / f"twice-{number}", *deaths)), flush=True)


if __name__ == "__main__":
    main()
