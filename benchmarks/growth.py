"""Whether an iteration costs the same late in a long run as in a short one."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable

import trio

from benchmarks.harness.cases import checked
from benchmarks.harness.floors import four_thin_tool_tasks
from benchmarks.harness.measure import Sample, goal, options, report, take_turns, timed
from benchmarks.harness.ours import Caller, run_once

SHORT = 50


def _repeat(case: Callable[[], Sample], times: int) -> Callable[[], Sample]:
    """Short runs are repeated, so that all lengths are measured over about as long."""

    def repeated() -> Sample:
        samples = [case() for _ in range(times)]
        return Sample(sum(sample.wall for sample in samples) / times, sum(sample.cpu for sample in samples) / times)

    return repeated


def _ours(iterations: int) -> Callable[[], Sample]:
    async def main() -> None:
        await run_once(iterations)

    return lambda: checked(main, calls=iterations)


def _floor(iterations: int) -> Callable[[], Sample]:
    return lambda: checked(four_thin_tool_tasks, iterations, 1, calls=iterations)


def _late_over_early(iterations: int) -> float:
    """Within one run: the median time of an iteration in the last eighth over that in the first, the start left out."""
    model = Caller(iterations, keep_times=True)

    async def main() -> None:
        await run_once(iterations, model=model)

    timed(lambda: trio.run(main))
    times = model.times
    spans = [after - before for before, after in itertools.pairwise(times)]
    part = len(spans) // 8
    early = statistics.median(spans[part // 8 : part + part // 8])
    return statistics.median(spans[-part:]) / early


def main() -> None:
    opts = options(__doc__, rounds=9)
    lengths = (SHORT, 200, 800) if opts.quick else (SHORT, 200, 800, 3200)
    cases: dict[str, Callable[[], Sample]] = {}
    for length in lengths:
        cases[f"floor {length}"] = _repeat(_floor(length), max(1, 800 // length))
        cases[f"ours {length}"] = _repeat(_ours(length), max(1, 800 // length))
    series = take_turns(cases, opts.rounds)
    growth = {
        f"{who} {length}/{SHORT}": series[f"{who} {length}"].ratio_to(series[f"{who} {SHORT}"], scale=SHORT / length)
        for who in ("floor", "ours")
        for length in lengths[1:]
    }
    late = statistics.median(_late_over_early(lengths[-1]) for _ in range(3 if opts.quick else 7))
    report(
        "growth",
        opts,
        [
            goal(f"growth per iteration, {length} / {SHORT}", growth[f"ours {length}/{SHORT}"]["cpu"], at_most=1.05)
            for length in lengths[2:]
        ]
        + [goal(f"the last eighth of {lengths[-1]} iterations / the first", round(late, 3), at_most=1.05)],
        us_per_iteration={
            name: series[name].per(length, unit=1e-6)
            for length in lengths
            for name in (f"floor {length}", f"ours {length}")
        },
        growth=growth,
    )


if __name__ == "__main__":
    main()
