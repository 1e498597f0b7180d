"""200 agents with 20 iterations each, with a journal on disk and without: throughput, CPU per event, and the time of a commit."""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec
import trio

from actors import open_runtime
from actors.journal import SQLiteJournal
from actors.journal._sqlite import SQLiteStore  # noqa: PLC2701  the file alone
from benchmarks.harness.cases import checked
from benchmarks.harness.measure import Sample, goal, options, report, summary, take_turns
from benchmarks.harness.ours import Caller, run_one, spec_for
from protocol.records import AgentFacts, Record

EVENT = b'{"type":"tool_started","run":"run-0a1b2c3d-17","call":"c1-0","name":"add","agent_path":["one","two"]}'
FACTS = msgspec.json.encode(AgentFacts(name="agent", epoch="epoch-0a1b2c3d-1"))


async def _agents(durability: Literal["process", "power"] | None, folder: Path, agents: int, iterations: int) -> None:
    spec = spec_for(Caller(iterations), iterations)
    path = folder / f"{time.monotonic_ns()}.db"
    journal = None if durability is None else SQLiteJournal(path, durability=durability)
    async with open_runtime(journal=journal) as runtime, trio.open_nursery() as nursery:
        for _ in range(agents):
            nursery.start_soon(run_one, runtime, spec)


def _clear(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()


def _records(agents: int, events: int, first: int) -> list[Record]:
    lines = b"\n".join([EVENT] * events)
    return [Record(f"agent-{number}", first, events, lines, FACTS, first == 1) for number in range(agents)]


def _store(folder: Path) -> SQLiteStore:
    store = SQLiteStore(folder / f"{time.monotonic_ns()}.db", keep_seconds=3600, max_bytes=1 << 30)
    store.open()
    return store


def _cpu_per_event(folder: Path, agents: int, events: int, commits: int) -> float:
    """Microseconds of CPU for each event, in batches of `events` for each of `agents`."""
    store = _store(folder)
    batches = [_records(agents, events, 1 + number * events) for number in range(commits)]
    began = time.process_time()
    for batch in batches:
        store.commit(batch)
    used = time.process_time() - began
    store.close()
    return used / (agents * events * commits) * 1e6


def _commit_while_busy(folder: Path, agents: int, events: int, commits: int) -> float:
    """Median milliseconds of a commit in a thread while the main thread computes."""
    store, times = _store(folder), list[float]()

    def write() -> None:
        for number in range(commits):
            batch = _records(agents, events, 1 + number * events)
            began = time.perf_counter()
            store.commit(batch)
            times.append(time.perf_counter() - began)

    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive():
        sum(range(1000))
    store.close()
    return statistics.median(times) * 1e3


def main() -> None:
    """Measure and print."""
    opts = options(__doc__, rounds=7)
    agents, iterations = (40, 10) if opts.quick else (200, 20)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def case(durability: Literal["process", "power"] | None) -> Callable[[], Sample]:
            main_of: Callable[..., Awaitable[Any]] = partial(_agents, durability, folder)

            def measured() -> Sample:
                _clear(folder)
                return checked(main_of, agents, iterations, calls=agents * iterations)

            return measured

        series = take_turns({"without": case(None), "process": case("process"), "power": case("power")}, opts.rounds)
        throughput = {name: series["without"].ratio_to(series[name]) for name in ("process", "power")}
        rounds = range(opts.rounds)
        cpu = summary([Sample(0, _cpu_per_event(folder, 100, 5, 20)) for _ in rounds])["cpu"]
        busy = statistics.median(_commit_while_busy(folder, 100, 5, 20) for _ in rounds)
    report(
        "journal",
        opts,
        [
            goal("throughput against no journal, process death", throughput["process"]["wall"], at_least=0.75),
            goal("throughput against no journal, power loss", throughput["power"]["wall"], at_least=0.65),
            goal("us of CPU per event, 5 events per agent and batch", cpu, at_most=3),
            goal("ms of a commit, median, while the main thread computes", round(busy, 2), at_most=15),
        ],
        agents=agents,
        iterations_each=iterations,
        us_per_iteration={name: one.per(agents * iterations, unit=1e-6) for name, one in series.items()},
        throughput=throughput,
    )


if __name__ == "__main__":
    main()
