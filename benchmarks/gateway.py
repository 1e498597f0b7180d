"""The gateway: CPU for each event that reaches a client, latency, replays, a client that stands still, idle memory."""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any

import attrs
import trio

from actors import AgentSpec, open_runtime
from actors.gateway import Access, DoorLimits, Pace, Principal, open_gateway
from actors.models import Scripted
from benchmarks.harness.measure import Sample, goal, options, report, stopwatch, take_turns
from benchmarks.harness.memory import memory_mb
from benchmarks.harness.windowed import open_windowed
from protocol.codec import encode_event
from protocol.events import ContentDelta

ROOT = Path(__file__).resolve().parent.parent
WINDOW = 0.015
TOKEN = "the-token-of-the-benchmarks"
EVERYBODY = DoorLimits(
    connections=20_000,
    connections_per_address=20_000,
    connections_per_principal=20_000,
    handshakes_per_second=1e6,
    handshakes_burst=20_000,
)
HELLO = {"method": "hello", "params": {}}
ATTACH = {"method": "agent.attach", "params": {"agent": "*"}}
REPLAY = {"method": "agent.attach", "params": {"agent": "*", "from": "start"}}


def event(text: str) -> ContentDelta:
    """About 110 bytes on the wire."""
    return ContentDelta(run="run-00000000-1", message="m-00000000-1", text=text)


@attrs.define(eq=False)
class Server:
    """What clients connect to, and how an event is sent to all of them."""

    port: int
    emit: Callable[[ContentDelta], object]


@contextlib.asynccontextmanager
async def ours() -> AsyncGenerator[Server, None]:
    """A gateway in front of one agent."""
    access = Access.of({TOKEN: Principal("bench")})
    async with open_runtime(event_log_bytes=4_000_000) as runtime:
        agent = await runtime.spawn(AgentSpec(model=Scripted([])))
        async with open_gateway(
            runtime, port=0, tokens=access, pace=Pace(window_seconds=WINDOW), door_limits=EVERYBODY
        ) as gateway:
            yield Server(next(iter(gateway.ports)), agent.stream.append)


@contextlib.asynccontextmanager
async def floor() -> AsyncGenerator[Server, None]:
    """The library alone."""
    async with open_windowed(WINDOW) as server:
        yield Server(server.port, lambda event: server.emit(encode_event(event)))


@attrs.define(eq=False)
class Crowd:
    """The clients' process."""

    process: trio.Process
    _said: bytes = b""

    async def line(self) -> str:
        """What it prints next."""
        assert self.process.stdout is not None
        while b"\n" not in self._said:
            data = await self.process.stdout.receive_some()
            assert data, "the crowd is gone"
            self._said += data
        line, _, self._said = self._said.partition(b"\n")
        return line.decode()

    async def go(self) -> None:
        """Let it go on."""
        assert self.process.stdin is not None
        await self.process.stdin.send_all(b"\n")


@contextlib.asynccontextmanager
async def crowd(server: Server, clients: int, events: int, **given: Any) -> AsyncGenerator[Crowd, None]:
    """So many clients, connected."""
    told = {"port": server.port, "token": TOKEN, "clients": clients, "events": events, "commands": [HELLO], **given}
    command = [sys.executable, "-m", "benchmarks.harness.crowd", json.dumps(told)]
    async with trio.open_nursery() as nursery:
        process = await nursery.start(
            functools.partial(
                trio.run_process, command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, check=False
            )
        )
        one = Crowd(process)
        assert await one.line() == "ready"
        await trio.sleep(0.2)
        try:
            yield one
        finally:
            process.kill()


Open = Callable[[], contextlib.AbstractAsyncContextManager[Server]]


async def burst(open_server: Open, clients: int, events: int) -> Sample:
    """As fast as it goes: from the first event until each client has the last."""
    commands = [HELLO, ATTACH] if open_server is ours else [HELLO]
    async with open_server() as server, crowd(server, clients, events, commands=commands) as one:
        await one.go()
        gc.collect()
        elapsed = stopwatch()
        for number in range(events):
            server.emit(event(f"word {number}"))
            if number % 10 == 9:
                await trio.lowlevel.checkpoint()
        told = json.loads(await one.line())
        sample = elapsed()
        assert told["events"] == clients * events, told
        return sample


async def steady(
    open_server: Open, clients: int, per_second: int, seconds: float, stalled: int = 0
) -> dict[str, float]:
    """Events at an even pace, each with the time at which it was made."""
    events = int(per_second * seconds)
    commands = [HELLO, ATTACH] if open_server is ours else [HELLO]
    async with open_server() as server, crowd(server, clients, events, commands=commands, stalled=stalled) as one:
        await one.go()
        gc.collect()
        elapsed = stopwatch()
        began, sent = trio.current_time(), 0
        while sent < events:
            due = min(events, int((trio.current_time() - began) * per_second) + 1)
            for _ in range(due - sent):
                server.emit(event(f"t={time.monotonic():.6f}"))
            sent = due
            await trio.sleep(0.001)
        told = json.loads(await one.line())
        sample = elapsed()
        deliveries = told.pop("events")
        return {**told, "cpu_share": sample.cpu / sample.wall, "us_per_event": sample.cpu / deliveries * 1e6}


@attrs.define(eq=False)
class Watch:
    """How late a task is that would have a turn every millisecond: by the clock, and by the CPU that others took."""

    wall_ms: float = 0
    cpu_ms: float = 0

    async def run(self) -> None:
        while True:
            wall, cpu = time.perf_counter(), time.process_time()
            await trio.sleep(0.001)
            self.wall_ms = max(self.wall_ms, (time.perf_counter() - wall) * 1e3 - 1)
            self.cpu_ms = max(self.cpu_ms, (time.process_time() - cpu) * 1e3)


async def replay(clients: int, events: int) -> dict[str, float]:
    """Clients that ask for the past, all at once, and how long everybody else in the process has to wait meanwhile."""
    async with ours() as server:
        for number in range(events):
            server.emit(event(f"word {number}"))
        async with crowd(server, clients, events, commands=[HELLO], later=[REPLAY]) as one:
            gc.collect()
            await trio.sleep(0.1)
            watch = Watch()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(watch.run)
                await one.go()
                elapsed = stopwatch()
                told = json.loads(await one.line())
                sample = elapsed()
                nursery.cancel_scope.cancel("done")
    assert told["events"] == clients * events
    return {"cpu_s": sample.cpu, "wall_s": sample.wall, "stall_cpu_ms": watch.cpu_ms, "stall_wall_ms": watch.wall_ms}


async def _idle(open_server: Open, clients: int) -> None:
    commands = [HELLO, ATTACH] if open_server is ours else [HELLO]
    async with open_server() as server:
        async with crowd(server, 20, 1, commands=commands):
            pass
        await trio.sleep(0.5)
        gc.collect()
        before = memory_mb().now
        async with crowd(server, clients, 1, commands=commands):
            gc.collect()
            print(json.dumps({"kib": (memory_mb().now - before) * 1e6 / 1024 / clients}))


def idle_kib(name: str, clients: int) -> float:
    """Of one connection, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.gateway", "--idle", name, str(clients)]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout)["kib"])


def case(main: Callable[..., Awaitable[Sample]], *args: Any) -> Callable[[], Sample]:
    return lambda: trio.run(main, *args)


def main() -> None:
    opts = options(__doc__, rounds=5, quick_rounds=1)
    events = 300 if opts.quick else 2000
    few, many = (20, 100) if opts.quick else (100, 1000)
    cases = {
        f"{name}, {clients} clients": case(burst, server, clients, count)
        for clients, count in ((few, events), (many, events // 2))
        for name, server in (("floor: library and window", floor), ("ours", ours))
    }
    series = take_turns(cases, opts.rounds, warm_up=False)
    counts = {name: few * events if f" {few} clients" in name else many * (events // 2) for name in cases}
    bursts = {name: one.per(counts[name], unit=1e-6) for name, one in series.items()}
    seconds = 1.0 if opts.quick else 5.0
    even = {
        "floor: library and window": trio.run(steady, floor, few, 1000, seconds),
        "ours": trio.run(steady, ours, few, 1000, seconds),
        "ours, 10 more that stand still": trio.run(steady, ours, few + 10, 1000, seconds, 10),
    }
    past = trio.run(replay, 50 if opts.quick else 500, 2000)
    idle = {name: round(idle_kib(name, many), 1) for name in ("floor", "ours")}
    held = even["ours, 10 more that stand still"]
    report(
        "gateway",
        opts,
        [
            goal(f"us for an event to one of {few} clients", bursts[f"ours, {few} clients"]["cpu"], at_most=2),
            goal(f"us for an event to one of {many} clients", bursts[f"ours, {many} clients"]["cpu"], at_most=6),
            goal(f"ms, 99 of 100 events, {few} clients and 1000 events/s", even["ours"]["p99_ms"], at_most=100),
            goal("the same with ten more that stand still", held["p99_ms"], at_most=100),
            goal("ms of CPU, the longest stall of a replay to many at once", past["stall_cpu_ms"], at_most=50),
            goal("KiB for an idle connection", idle["ours"], at_most=27),
        ],
        window_ms=WINDOW * 1e3,
        us_per_event_as_fast_as_it_goes=bursts,
        at_1000_events_per_second=even,
        replay=past,
        kib_for_an_idle_connection=idle,
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--idle"]:
        trio.run(_idle, {"floor": floor, "ours": ours}[sys.argv[2]], int(sys.argv[3]))
    else:
        main()
