"""Runs in which one thing crashes: every service at every message, the model, a tool, and what the user wrote."""

from __future__ import annotations

import pytest

from .oracle import ending, faults_of, second_run_works
from .play import Scenario, play
from .test_disturbed import MAIN, OTHERS, named

EXPECTED = {
    "budget": "run_failed",
    "session": "run_failed",
    "toolbox": "run_failed",
    "arbiter": "run_failed",
    "model": "run_failed",
    "tool": "run_finished",  # a tool's error is its result
    "provider": "run_failed",
    "condition": "run_failed",
    "instruction": "run_finished",  # that finalization is off from there
    "decision": "run_cancelled",  # the caller crashed, and left its run
}
POINTS = {
    "budget/received",
    "budget/handled",
    "session/received",
    "session/handled",
    "toolbox/received",
    "toolbox/handled",
    "arbiter/received",
    "arbiter/handled",
    "model/before sending",
    "model/sent",
    "model/streaming",
    "tool/before the effect",
    "tool/after the effect",
    "condition/before",
    "condition/after",
    "provider/before",
    "provider/after",
    "instruction/before",
    "instruction/after",
    "decision/before",
    "decision/after",
}


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [*MAIN, *OTHERS], ids=named)
def test_a_crash_at_any_point(scenario: Scenario) -> None:
    """A crash ends its own run with the truth told, and the agent takes the next one."""
    faults = []
    points = len(play(scenario).world.points.passed)
    for number in range(1, points + 1):
        record = play(crashing(scenario, number))
        crashed = record.world.points.crashed or ""
        found = faults_of(record) + second_run_works(record)
        expected = {EXPECTED[crashed.split("/")[0]]}
        if number == points:
            expected.add("run_finished")  # a service that had no more to do: the answer is there, and stands
        if ending(record) not in expected:
            found.append(f"the run ended with {ending(record)}")
        if found:
            faults.append((number, crashed, found))

    assert [] == faults


def test_every_kind_of_point_is_passed() -> None:
    """The sweep crashes where it says that it does."""
    passed = {label for scenario in (*MAIN, *OTHERS) for label in play(scenario).world.points.passed}

    assert POINTS == passed


@pytest.mark.parametrize(
    ("gate", "label", "code"),
    [
        ("provider", "provider/after", "continuation_provider_error"),
        ("remote", "condition/after", "stop_condition_error"),
        ("remote", "model/streaming", "model_error"),
        ("remote", "toolbox/received", "actor_crashed"),
    ],
)
def test_the_failure_says_what_crashed(gate: str, label: str, code: str) -> None:
    """`run_failed` carries a stable word for whose fault it was, and the caller's error has the cause."""
    scenario = Scenario(gate=gate)  # type: ignore[arg-type]
    number = play(scenario).world.points.passed.index(label) + 1
    record = play(crashing(scenario, number))
    failed = next(event for event in record.events if event.type == "run_failed")
    error = record.errors[0]

    assert code == failed.error.code  # type: ignore[attr-defined]
    assert error is not None
    assert label == str(error.__cause__)


def crashing(scenario: Scenario, number: int) -> Scenario:
    return Scenario(gate=scenario.gate, finalize=scenario.finalize, slow=scenario.slow, crash_at=number)
