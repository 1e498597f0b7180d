"""What one iteration costs: a model call that asks for one trivial tool, against loops written by hand."""

from __future__ import annotations

from benchmarks.harness.cases import floor_case, our_case
from benchmarks.harness.floors import bare_loop, four_thin, four_thin_tool_tasks, nursery_loop
from benchmarks.harness.measure import goal, options, report, take_turns

FLOOR = "floor: four thin actors, tool tasks"


def main() -> None:
    opts = options(__doc__, rounds=50)
    iterations = 50 if opts.quick else 200
    series = take_turns(
        {
            "floor: bare trio": floor_case(bare_loop, iterations),
            "floor: trio nursery": floor_case(nursery_loop, iterations),
            "floor: four thin actors": floor_case(four_thin, iterations),
            FLOOR: floor_case(four_thin_tool_tasks, iterations),
            "ours": our_case(iterations),
            "ours, its events read": our_case(iterations, read_events=True),
        },
        opts.rounds,
    )
    ratios = {name: one.ratio_to(series[FLOOR]) for name, one in series.items() if name != FLOOR}
    report(
        "iteration",
        opts,
        [goal(f"ratio to {FLOOR}", ratios["ours"]["cpu"], at_most=1.35)],
        iterations=iterations,
        us_per_iteration={name: one.per(iterations, unit=1e-6) for name, one in series.items()},
        ratio_to_four_thin_tool_tasks=ratios,
    )


if __name__ == "__main__":
    main()
