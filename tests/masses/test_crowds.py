"""Hundreds of agents in one runtime, each of which meets something else: nothing is lost, and nobody is stranded.

`ONWARD_SWEEP=full` plays a hundred crowds of five hundred agents.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from protocol.ledger import Account
from tests.properties.test_worlds import CALL
from tests.properties.world import World

from .crowd import Member, Shape, held_by, play
from .drawn import drawn_worlds

FULL = os.environ.get("ONWARD_SWEEP") == "full"
AGENTS = 500 if FULL else 40
SEEDS = range(100) if FULL else range(2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_crowd(seed: int) -> None:
    """Every run comes to one end and tells the truth of it; what all share adds up; whoever looks on, late or slowly, gets all."""
    crowd = play(drawn_worlds(seed, AGENTS), Shape(seed, journal=seed % 2 == 1))

    assert [] == crowd.faults
    assert crowd.runs > 1.5 * AGENTS
    assert crowd.steps > 5 * AGENTS
    assert (crowd.commits > 0) == (seed % 2 == 1)


def untrue_status(member: Member) -> None:
    member.truth.entered[0].how = "raised"


def secret_request(member: Member) -> None:
    member.truth.asked.append(member.truth.asked[0])


def gap(member: Member) -> None:
    member.read[:] = [1, 3]


@pytest.mark.parametrize("spoil", [untrue_status, secret_request, gap])
def test_a_crowd_is_judged(spoil: Callable[[Member], None]) -> None:
    """The judge is no rubber stamp: what is spoilt of one member is a fault of the crowd."""
    worlds = [World(turns=(CALL,))] * 3
    shape = Shape(0, budgets=0, watchers=1)

    assert [] == play(worlds, shape).faults
    assert [] != play(worlds, shape, spoil=spoil).faults


def test_what_is_held_is_a_fault() -> None:
    """An account that is not settled is seen."""
    account = Account("mine")
    before = held_by(account)
    account.reserve()

    assert [] == before
    assert 1 == len(held_by(account))
