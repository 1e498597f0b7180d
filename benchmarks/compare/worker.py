"""One process: does one job with one library, in that library's environment, checks it, and tells what it took.

Started by `rounds`. Needs the standard library and the driver's own alone.
"""

from __future__ import annotations

import gc
import importlib
import json
import sys
from typing import Any

from benchmarks.harness.clock import stopwatch
from benchmarks.harness.memory import memory_mb, reset_peak
from benchmarks.harness.work import ANSWER, DELTAS, REPLY_TEXT, calls_made

from .job import Done, Job

__all__ = ("checked", "main")


def main(name: str, job: str) -> None:
    """Do the job with the driver of that name; the last line of stdout says what it took."""
    module, _, part = name.partition(":")
    driver = importlib.import_module(f"benchmarks.compare.drivers.{module}").Driver(*filter(None, [part]))
    done: Done = driver.start(_work, driver, Job(**json.loads(job)))
    sys.stdout.write(f"\n{done.encode()}\n")


async def _work(driver: Any, job: Job) -> Done:
    imported = memory_mb().now
    reset_peak()
    if job.base_url:
        await driver.connect(job.base_url)
    await checked(driver, job.small)
    gc.collect()
    elapsed = stopwatch()
    for _ in range(job.times):
        await checked(driver, job)
    wall, cpu = elapsed()
    if job.base_url:
        await driver.close()
    return Done(wall, cpu, memory_mb().peak - imported)


async def checked(driver: Any, job: Job) -> None:
    """Raises `AssertionError` unless all tools ran, all text was streamed, and the answers hold the tool's result."""
    before = calls_made()
    answers, wanted = await _answers(driver, job)
    made = calls_made() - before
    assert made == job.agents * job.iterations * job.width, f"{made} tool calls were made"
    assert answers == [wanted] * job.agents, f"wrong answers: {answers[:3]!r}"


async def _answers(driver: Any, job: Job) -> tuple[list[str], str]:
    if job.kind == "many":
        return await driver.many(job.agents, job.iterations), ANSWER
    if job.kind == "runs":
        return [await driver.run(job.iterations, job.width)], ANSWER
    answer, heard = await driver.stream(job.iterations)
    assert heard == DELTAS * (job.iterations + 1), f"{heard} pieces of text were heard"
    return [answer], REPLY_TEXT
