"""Runs that are disturbed and crash at once, in settings drawn at random: the seed in a failure plays it again."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import pytest

from protocol.events import (
    ContinuationRequired,
    ContinuationResolved,
    Event,
    RunFinished,
    RunStarted,
    StepFinished,
    ToolFinished,
    ToolRequested,
    ToolStarted,
)
from protocol.turns import ToolMessage

from .oracle import TERMINAL, faults_of
from .play import Record, Scenario, play
from .test_disturbed import FULL, report

SEEDS = 4000 if FULL else 200


def drawn(seed: int) -> Scenario:
    draw = random.Random(seed)
    return Scenario(
        gate=draw.choice(("remote", "provider", "nobody", "off")),
        finalize=draw.random() < 0.5,
        slow=draw.random() < 0.5,
        width=draw.choice((1, 2, 3)),
        parallel=draw.choice((None, 1, 2)),
        reports_sending=draw.random() < 0.8,
        action=draw.choice(("scope", "cancel", "stop", None)),
        at=draw.randrange(1, 170),
        crash_at=draw.randrange(1, 90),
        seed=seed,
    )


@pytest.mark.slow
def test_a_cancel_and_a_crash_together() -> None:
    """No pair of a cancel or stop with a crash, at any two points, leaves a fault behind."""
    assert [] == report([play(drawn(seed)) for seed in range(SEEDS)])


def test_a_seed_plays_the_same_again() -> None:
    """A fault that a sweep finds can be looked at: the scenario alone decides what happens."""
    first, again = play(drawn(7)), play(drawn(7))

    assert [event.type for event in first.events] == [event.type for event in again.events]
    assert first.steps == again.steps


def without(record: Record, kind: type[Event]) -> None:
    """Drop the first event of a kind."""
    record.events.remove(next(event for event in record.events if isinstance(event, kind)))


def after_the_end(record: Record) -> None:
    index = next(i for i, event in enumerate(record.events) if isinstance(event, TERMINAL))
    record.events.insert(index + 1, record.events[index - 1])


def lost_result(record: Record) -> None:
    index = next(i for i, message in enumerate(record.messages) if isinstance(message, ToolMessage))
    record.messages = (*record.messages[:index], *record.messages[index + 1 :])


def lost_tokens(record: Record) -> None:
    record.world.whole += 1


def uncounted_call(record: Record) -> None:
    record.world.sent += 1


def secret_body(record: Record) -> None:
    record.world.entered.add("c99-0")


def no_effect(record: Record) -> None:
    record.world.completed.clear()


@pytest.mark.parametrize(
    "spoil",
    [
        *(partial(without, kind=kind) for kind in (RunStarted, StepFinished, ToolRequested, ToolStarted, ToolFinished)),
        *(partial(without, kind=kind) for kind in (ContinuationRequired, ContinuationResolved, RunFinished)),
        after_the_end,
        lost_result,
        lost_tokens,
        uncounted_call,
        secret_body,
        no_effect,
    ],
)
def test_the_oracle_sees_a_fault(spoil: Callable[[Record], None]) -> None:
    """The judge of the sweeps is no rubber stamp: a record that is right becomes a fault when it is spoilt."""
    record = play(Scenario(gate="remote"))
    before = faults_of(record)
    spoil(record)

    assert [] == before
    assert [] != faults_of(record)
