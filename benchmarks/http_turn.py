"""What one model call over HTTP costs: 50 deltas and a tool call, against httpx reading the same stream."""

from __future__ import annotations

import gc
from collections.abc import Callable

import trio

from benchmarks.harness.http_clients import CLIENTS, FLOOR
from benchmarks.harness.http_server import serving
from benchmarks.harness.measure import Sample, Series, goal, options, report, stopwatch, take_turns

PAUSE_SECONDS = 0.0005
"""Between two events: each is read on its own, as it is from a model. All at once is measured too."""


async def _calls(name: str, base_url: str, turns: int) -> Sample:
    async with CLIENTS[name](base_url, 4) as call:
        await call()  # the connection, and what is imported on first use
        gc.collect()
        elapsed = stopwatch()
        for _ in range(turns):
            await call()
        return elapsed()


def _case(name: str, base_url: str, turns: int) -> Callable[[], Sample]:
    return lambda: trio.run(_calls, name, base_url, turns)


def _measure(pause_seconds: float, turns: int, rounds: int) -> dict[str, Series]:
    with serving(pause_seconds=pause_seconds) as base_url:
        return take_turns({name: _case(name, base_url, turns) for name in CLIENTS}, rounds)


def main() -> None:
    opts = options(__doc__, rounds=15)
    turns = 5 if opts.quick else 30
    spread = _measure(PAUSE_SECONDS, turns, opts.rounds)
    at_once = _measure(0, turns, opts.rounds)
    ratio = spread["ours"].ratio_to(spread[FLOOR])
    report(
        "http_turn",
        opts,
        [goal(f"ratio to {FLOOR}", ratio["cpu"], at_most=1.3)],
        turns=turns,
        pause_ms=PAUSE_SECONDS * 1e3,
        ms_per_turn={name: one.per(turns, unit=1e-3) for name, one in spread.items()},
        ratio_to_lines_json=ratio,
        ratio_to_bytes=spread["ours"].ratio_to(spread["floor: httpx, bytes"]),
        ms_per_turn_at_once={name: one.per(turns, unit=1e-3) for name, one in at_once.items()},
        ratio_to_lines_json_at_once=at_once["ours"].ratio_to(at_once[FLOOR]),
    )


if __name__ == "__main__":
    main()
