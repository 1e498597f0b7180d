"""100 streams at once through one model: CPU time per call, and memory above the imported process."""

from __future__ import annotations

import gc
import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import trio

from benchmarks.harness.http_clients import CLIENTS, FLOOR
from benchmarks.harness.http_server import serving
from benchmarks.harness.measure import Sample, goal, options, report, stopwatch, take_turns
from benchmarks.harness.memory import memory_mb, reset_peak

ROOT = Path(__file__).resolve().parent.parent
PAUSE_SECONDS = 0.02
"""Between two events of a stream: long enough that all streams are under way at the same time."""


async def _streams(name: str, base_url: str, streams: int) -> Sample:
    async with CLIENTS[name](base_url, streams) as call:
        await call()
        gc.collect()
        elapsed = stopwatch()
        async with trio.open_nursery() as nursery:
            for _ in range(streams):
                nursery.start_soon(call)
        return elapsed()


def _case(name: str, base_url: str, streams: int) -> Callable[[], Sample]:
    return lambda: trio.run(_streams, name, base_url, streams)


def _peak(name: str, base_url: str, streams: int) -> None:
    """Print how far one case rises above the process that has made its first call."""
    _case(name, base_url, 1)()
    gc.collect()
    before = memory_mb()
    reset_peak()
    _case(name, base_url, streams)()
    print(json.dumps(memory_mb().peak - before.now))


def _peak_in_new_process(name: str, base_url: str, streams: int) -> float:
    command = [sys.executable, "-m", "benchmarks.http_many", "--peak", name, base_url, str(streams)]
    told = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return float(json.loads(told))


def main() -> None:
    opts = options(__doc__, rounds=9)
    streams = 20 if opts.quick else 100
    with serving(pause_seconds=PAUSE_SECONDS) as base_url:
        series = take_turns({name: _case(name, base_url, streams) for name in CLIENTS}, opts.rounds)
        peaks = {
            name: round(statistics.median(_peak_in_new_process(name, base_url, streams) for _ in range(3)), 1)
            for name in (FLOOR, "ours")
        }
    ratio = series["ours"].ratio_to(series[FLOOR])
    report(
        "http_many",
        opts,
        [
            goal(f"ratio to {FLOOR}", ratio["cpu"], at_most=1.3),
            goal("peak MB above the process after its first call", peaks["ours"], at_most=15),
        ],
        streams=streams,
        pause_ms=PAUSE_SECONDS * 1e3,
        ms_per_call={name: one.per(streams, unit=1e-3) for name, one in series.items()},
        ratio_to_lines_json=ratio,
        peak_mb_above_first_call=peaks,
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peak"]:
        _peak(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        main()
