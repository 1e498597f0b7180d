"""The ledger: no path makes one call more than a limit allows, and no number counts twice."""

from __future__ import annotations

import pytest

from protocol.ledger import Account, AccountStatistics, Grant
from protocol.limits import LimitState
from protocol.usage import NO_USAGE, UNKNOWN_USAGE, Usage

SOME = Usage(10, 0, 0, 5, 0, True)


def test_a_call_is_counted_on_every_account_up_to_the_root() -> None:
    """The run, its budget and the runtime all know of a call from the moment it is reserved."""
    root = Account("runtime")
    budget = Account("budget", 5, root)
    run = Account("run", 3, budget)
    grant = run.reserve()

    assert Grant(1) == grant
    assert [1, 1, 1] == [account.llm_calls for account in (run, budget, root)]
    assert (1,) == run.open_reservations
    assert () == budget.open_reservations


def test_a_refused_call_is_counted_nowhere() -> None:
    """Where one account refuses, no account is touched; the answer names the limit with its own numbers."""
    root = Account("runtime", 1)
    first, second = Account("first", 5, root), Account("second", 5, root)
    first.reserve()
    refused = second.reserve()

    assert Grant(0, LimitState("llm_calls", 1, 1)) == refused
    assert LimitState("llm_calls", 1, 1) == second.refusal()
    assert [1, 1, 0] == [account.llm_calls for account in (root, first, second)]
    assert () == second.open_reservations


def test_the_last_call_is_known_as_such() -> None:
    """A call that takes the last one over all accounts says which limit it spends."""
    root = Account("runtime", 2)
    run = Account("run", 5, root)

    assert None is run.reserve().spent
    assert LimitState("llm_calls", 2, 2) == run.reserve().spent
    assert LimitState("llm_calls", 2, 2) == run.reserve().refused


def test_without_a_limit_no_call_is_the_last() -> None:
    """No limit is no limit, however many calls there are."""
    run = Account("run", None, Account("runtime"))

    assert {None} == {run.reserve().spent for _ in range(100)}
    assert None is run.refusal()


def test_settling_twice_is_once() -> None:
    """A number is settled or released once; what comes after changes nothing."""
    root = Account("runtime")
    run = Account("run", None, root)
    number = run.reserve().number
    for _ in range(2):
        run.settle(number, SOME)
        run.release(number)

    assert SOME == run.usage == root.usage
    assert 1 == run.llm_calls == root.llm_calls
    assert () == run.open_reservations


def test_releasing_twice_is_once() -> None:
    """A call that never left is given back to every account, once, and cannot be settled after."""
    root = Account("runtime", 1)
    run = Account("run", None, root)
    number = run.reserve().number
    for _ in range(2):
        run.release(number)
        run.settle(number, SOME)

    assert NO_USAGE == run.usage == root.usage
    assert 0 == run.llm_calls == root.llm_calls
    assert None is run.refusal()


@pytest.mark.parametrize("number", [0, -1, 7])
def test_unknown_numbers_do_nothing(number: int) -> None:
    """The number of a refused call, or one that never was, settles nothing."""
    run = Account("run")
    run.settle(number, SOME)
    run.release(number)

    assert AccountStatistics("run", 0, None, 0, NO_USAGE) == run.statistics()


def test_a_number_is_not_used_again() -> None:
    """A late settle of an old call cannot hit a new one."""
    run = Account("run")
    first = run.reserve().number
    run.release(first)
    second = run.reserve().number
    run.settle(first, SOME)

    assert first != second
    assert (second,) == run.open_reservations


def test_a_held_final_call_is_hidden_from_children() -> None:
    """While the last call is held for its own final call, those below see one less, and the account itself does not."""
    run = Account("run", 2, holds_final_call=True)
    child = Account("child", None, run)

    assert LimitState("llm_calls", 2, 1) == child.reserve().spent
    assert LimitState("llm_calls", 2, 1) == child.reserve().refused
    assert LimitState("llm_calls", 2, 2) == run.reserve().spent


def test_a_final_call_that_is_no_longer_held_is_free() -> None:
    """Once the final call is reserved, or given up, there is nothing to hold."""
    run = Account("run", 1, holds_final_call=True)
    child = Account("child", None, run)
    held = child.refusal()
    run.holds_final_call = False

    assert LimitState("llm_calls", 1, 0) == held
    assert None is child.refusal()


def test_what_was_not_reported_is_unknown_and_incomplete() -> None:
    """The sum says that it is not all (B3)."""
    run = Account("run")
    run.settle(run.reserve().number, SOME)
    run.settle(run.reserve().number, UNKNOWN_USAGE)

    assert Usage(10, 0, 0, 5, 0, False) == run.usage
    assert AccountStatistics("run", 2, None, 0, run.usage) == run.statistics()
