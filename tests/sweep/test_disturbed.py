"""Runs that are cancelled or stopped, from inside and outside, at every step of the scheduler."""

from __future__ import annotations

import os

import attrs
import pytest

from .oracle import ending, faults_of, second_run_works, was_too_late
from .play import Action, Gate, Record, Scenario, play

FULL = os.environ.get("ONWARD_SWEEP") == "full"
"""All scenarios at every step; else two of them so, and the others at every eleventh."""

MAIN = (Scenario(gate="remote"), Scenario(gate="provider", finalize=True, slow=True))
OTHERS = tuple(
    scenario
    for gate in ("remote", "provider", "nobody", "off")
    for finalize in (False, True)
    for slow in (False, True)
    if (scenario := Scenario(gate=gate, finalize=finalize, slow=slow)) not in MAIN
)
PROMPT_SECONDS = 0.1
"""How long a disturbed run may take to end: its tools clean up for 0.01 s; one step takes 0.05 s at most."""


def named(scenario: Scenario) -> str:
    return f"{scenario.gate}-{'final' if scenario.finalize else 'plain'}-{'slow' if scenario.slow else 'fast'}"


def swept(scenario: Scenario, action: Action) -> list[Record]:
    """The scenario, disturbed by `action` after each of its scheduler steps in turn."""
    steps = play(scenario).steps
    stride = 1 if FULL or scenario in MAIN else 11
    return [play(attrs.evolve(scenario, action=action, at=at)) for at in range(1, steps + 1, stride)]


def late(record: Record) -> list[str]:
    if record.acted_at is None or record.ended_at is None or not record.cut:
        return []
    seconds = record.ended_at - record.acted_at
    return [f"it ended {seconds:.3f} s after it was told to"] if seconds > PROMPT_SECONDS else []


def report(records: list[Record], *, twice: bool = True) -> list[tuple[Scenario, list[str]]]:
    found = []
    for record in records:
        faults = faults_of(record)
        if not record.hung:
            faults += late(record) + (second_run_works(record) if twice else [])
        if faults:
            found.append((record.scenario, faults))
    return found


def cut_short(records: list[Record]) -> set[str]:
    """How the runs ended that were disturbed before they had all they needed."""
    return {
        end
        for record in records
        if record.cut and not ((end := ending(record)) == "run_finished" and was_too_late(record))
    }


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [*MAIN, *OTHERS], ids=named)
class TestEveryStep:
    def test_the_undisturbed_run_is_without_fault(self, scenario: Scenario) -> None:
        """What the sweeps disturb is right when it is left alone: both runs come to their end."""
        record = play(scenario)

        assert [] == report([record])
        assert [None, None] == record.errors

    def test_leaving_the_run_at_any_step(self, scenario: Scenario) -> None:
        """A caller whose own scope is cancelled leaves a settled run behind, and an agent that takes the next one."""
        records = swept(scenario, "scope")

        assert [] == report(records)
        assert {"run_cancelled"} == cut_short(records)

    def test_cancelling_the_run_at_any_step(self, scenario: Scenario) -> None:
        """`run.cancel()` ends the run as cancelled, whatever it was doing."""
        records = swept(scenario, "cancel")

        assert [] == report(records)
        assert {"run_cancelled"} == cut_short(records)

    def test_stopping_the_run_at_any_step(self, scenario: Scenario) -> None:
        """`run.stop()` ends the run at its next boundary with a result; a wait for a decision is cut at once."""
        records = swept(scenario, "stop")
        stopped = [record.results[0].stopped_by for record in records if record.cut]

        assert [] == report(records)
        assert {"run_finished"} == {ending(record) for record in records if record.acted_at is not None}
        assert "caller" in stopped

    def test_cancelling_the_runtime_at_any_step(self, scenario: Scenario) -> None:
        """A cancel of everything, services and host too, leaves history, events and ledger as whole as any other."""
        assert [] == report(swept(scenario, "runtime"), twice=False)


def test_a_stop_asks_nothing_more() -> None:
    """After `run.stop()` no model call begins and no question is asked."""
    steps = play(Scenario()).steps
    gates: list[Gate] = ["remote", "nobody"]
    records = [
        play(Scenario(gate=gate, slow=True, action="stop", at=at)) for gate in gates for at in range(2, steps, 4)
    ]
    extra = [record.sent_after_act for record in records if record.cut]

    assert {0, 1} == set(extra)  # 1: the call that was reserved and about to leave
