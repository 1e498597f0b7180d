"""The ledger: no path makes one call more than a limit allows, and no number counts twice."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from protocol.ledger import RESERVATION_TRANSITIONS, Account, AccountStatistics, Grant, ReservationState
from protocol.limits import LimitName, Limits, LimitState
from protocol.spending import Spending
from protocol.usage import NO_USAGE, UNKNOWN_USAGE, Usage

USAGE = Usage(10, 0, 0, 5, 0, True)
SOME = Spending(USAGE, 0.25)


def account(name: str, *parents: Account, holds_final_call: bool = False, **limits: Any) -> Account:
    return Account(name, Limits(**limits), parents, clock=lambda: 0.0, holds_final_call=holds_final_call)


def books_of(*accounts: Account) -> list[tuple[Any, ...]]:
    """Everything that accounts count: equal before and after where nothing may have changed."""
    return [
        (one.llm_calls, one.tool_calls, one.usage, one.cost, one.books.charged_tokens, one.books.charged_cost)
        + (one.books.held_tokens, one.books.held_cost, one.open_reservations)
        for one in accounts
    ]


def test_a_call_is_counted_on_every_account_up_to_the_root() -> None:
    """The run, its budget and the runtime all know of a call from the moment it is reserved."""
    root = account("runtime")
    budget = account("budget", root, max_llm_calls=5)
    run = account("run", budget, max_llm_calls=3)
    grant = run.reserve()

    assert Grant(1) == grant
    assert [1, 1, 1] == [one.llm_calls for one in (run, budget, root)]
    assert (1,) == run.open_reservations
    assert () == budget.open_reservations


def test_a_refused_call_is_counted_nowhere() -> None:
    """Where one account refuses, no account is touched; the answer names the limit with its own numbers."""
    root = account("runtime", max_llm_calls=1)
    first, second = account("first", root, max_llm_calls=5), account("second", root, max_llm_calls=5)
    first.reserve()
    refused = second.reserve()

    assert Grant(0, LimitState("llm_calls", 1, 1)) == refused
    assert LimitState("llm_calls", 1, 1) == second.refusal()
    assert [1, 1, 0] == [one.llm_calls for one in (root, first, second)]
    assert () == second.open_reservations


def test_an_account_that_is_reached_on_two_ways_counts_once() -> None:
    """A budget over a run and over the run that started it is one account: a call takes one of its calls, not two."""
    root = account("runtime", max_llm_calls=2, max_tool_calls=1, max_total_tokens=20)
    left, right = account("left", root), account("right", root)
    run = account("run", left, right, left)
    number = run.reserve().number
    lacking = run.hold(number, 20, 0.0)
    run.settle(number, SOME)

    assert None is lacking
    assert (run, left, right, root) == run.chain
    assert (1, 15, 0) == (root.llm_calls, root.books.charged_tokens, root.books.held_tokens)
    assert (1, None) == run.enter_tools(1)
    assert 1 == root.tool_calls
    assert LimitState("llm_calls", 2, 2) == run.reserve().spent


def test_the_chain_is_nearest_first() -> None:
    """Where several limits refuse, the one is named that is nearest to the run."""
    root = account("runtime", max_llm_calls=1)
    starter = account("starter", account("agent", root))
    budget = account("budget", max_llm_calls=1)
    run = account("run", starter, budget)
    run.reserve()

    assert ["run", "starter", "budget", "agent", "runtime"] == [one.name for one in run.chain]
    assert run.refusal() is not None
    assert ["budget", "runtime"] == [one.name for one in run.chain if one.refuses(for_child=True) is not None]
    budget.extend("llm_calls", 1)
    root.extend("llm_calls", 2)
    assert LimitState("llm_calls", 2, 2) == run.reserve().spent


def test_a_chain_of_many_diamonds_is_made_in_no_time() -> None:
    """What is reached on 2 to the 40th ways is looked at once."""
    top = account("0")
    for number in range(40):
        top = account("top", account(f"left {number}", top), account(f"right {number}", top))

    assert 1 + 40 * 3 == len(top.chain) == len(set(top.chain))


def test_the_last_call_is_known_as_such() -> None:
    """A call that takes the last one over all accounts says which limit it spends."""
    root = account("runtime", max_llm_calls=2)
    run = account("run", root, max_llm_calls=5)

    assert None is run.reserve().spent
    assert LimitState("llm_calls", 2, 2) == run.reserve().spent
    assert LimitState("llm_calls", 2, 2) == run.reserve().refused


def test_without_a_limit_no_call_is_the_last() -> None:
    """No limit is no limit, however many calls there are."""
    run = account("run", account("runtime"))

    assert {None} == {run.reserve().spent for _ in range(100)}
    assert None is run.refusal()
    assert None is run.lacks(10**9, 1e9)
    assert (10**6, None) == run.enter_tools(10**6)


def test_settling_twice_is_once() -> None:
    """A number is settled or released once; what comes after changes nothing."""
    root = account("runtime")
    run = account("run", root)
    number = run.reserve().number
    run.settle(number, SOME)
    once = books_of(run, root)
    run.settle(number, SOME)
    run.release(number)
    run.hold(number, 5, 5.0)

    assert once == books_of(run, root)
    assert USAGE == run.usage == root.usage
    assert 1 == run.llm_calls == root.llm_calls
    assert () == run.open_reservations


def test_releasing_twice_is_once() -> None:
    """A call that never left is given back to every account, once, and cannot be settled after."""
    root = account("runtime", max_llm_calls=1)
    run = account("run", root)
    before = books_of(run, root)
    number = run.reserve().number
    run.release(number)
    run.release(number)
    run.settle(number, SOME)
    run.hold(number, 5, 5.0)

    assert before == books_of(run, root)
    assert NO_USAGE == run.usage == root.usage
    assert None is run.refusal()


@pytest.mark.parametrize("number", [0, -1, 7])
def test_unknown_numbers_do_nothing(number: int) -> None:
    """The number of a refused call, or one that never was, settles nothing."""
    run = account("run", max_total_tokens=1)
    before = books_of(run)
    run.settle(number, SOME)
    run.release(number)
    lacking = run.hold(number, 100, 100.0)

    assert None is lacking
    assert before == books_of(run)


def test_a_number_is_not_used_again() -> None:
    """A late settle of an old call cannot hit a new one."""
    run = account("run")
    first = run.reserve().number
    run.release(first)
    second = run.reserve().number
    run.settle(first, SOME)

    assert first != second
    assert (second,) == run.open_reservations


def test_a_number_is_its_own_accounts() -> None:
    """The account above, and another run, have numbers of their own: theirs do not reach this run's."""
    root = account("runtime")
    run, other = account("run", root), account("other", root)
    number = run.reserve().number
    for stranger in (root, other):
        stranger.settle(number, SOME)
        stranger.release(number)

    assert (number,) == run.open_reservations
    assert [1, 1, 0] == [one.llm_calls for one in (root, run, other)]
    assert NO_USAGE == root.usage


# ------------------------------------------------------------ the table


def reservation_in(state: ReservationState, run: Account) -> int:
    """A reservation of `run` in this state."""
    number = run.reserve().number
    way: dict[ReservationState, list[str]] = {
        "open": [],
        "held": ["hold"],
        "settled": ["hold", "settle"],
        "released": ["hold", "release"],
    }
    for action in way[state]:
        act(run, number, action)
    return number


def act(run: Account, number: int, action: str) -> None:
    match action:
        case "hold":
            run.hold(number, 7, 0.5)
        case "settle":
            run.settle(number, SOME)
        case "release":
            run.release(number)


def shape_of(run: Account, number: int) -> tuple[bool, int, float, int, int]:
    """By what a reservation that is the only one of its account can be told apart."""
    books = run.books
    return number in run.open_reservations, books.held_tokens, books.held_cost, run.llm_calls, books.charged_tokens


SHAPES: dict[ReservationState, tuple[bool, int, float, int, int]] = {
    "open": (True, 0, 0.0, 1, 0),
    "held": (True, 7, 0.5, 1, 0),
    "settled": (False, 0, 0.0, 1, 15),
    "released": (False, 0, 0.0, 0, 0),
}


@pytest.mark.parametrize("action", ["hold", "settle", "release"])
@pytest.mark.parametrize("state", get_args(ReservationState))
def test_a_reservation_goes_where_the_table_says(state: ReservationState, action: str) -> None:
    """Each action in each state leads to the state in the table, on all accounts; what is not in it changes nothing."""
    root = account("runtime")
    run = account("run", root)
    number = reservation_in(state, run)
    before = shape_of(run, number)
    act(run, number, action)
    target = RESERVATION_TRANSITIONS[state].get(action, state)

    assert SHAPES[state] == before
    assert SHAPES[target] == shape_of(run, number)
    assert SHAPES[target][1:] == shape_of(root, number)[1:]


def test_the_table_is_what_the_accounts_go_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a way out of the table, and no reservation goes it any more."""
    monkeypatch.setitem(RESERVATION_TRANSITIONS, "open", {})
    run = account("run")
    number = run.reserve().number
    for action in ("hold", "settle", "release"):
        act(run, number, action)

    assert SHAPES["open"] == shape_of(run, number)


def test_the_table_names_all_states() -> None:
    """Every state has its row; the ends are those that lead nowhere."""
    states = set(get_args(ReservationState))

    assert states == set(RESERVATION_TRANSITIONS)
    assert states == {"open", *(target for row in RESERVATION_TRANSITIONS.values() for target in row.values())}
    assert {"settled", "released"} == {state for state, row in RESERVATION_TRANSITIONS.items() if not row}


# ------------------------------------------------------------ the final call


def test_a_held_final_call_is_hidden_from_children() -> None:
    """While the last call is held for its own final call, those below see one less, and the account itself does not."""
    run = account("run", max_llm_calls=2, holds_final_call=True)
    child = account("child", run)

    assert LimitState("llm_calls", 2, 1) == child.reserve().spent
    assert LimitState("llm_calls", 2, 1) == child.reserve().refused
    assert LimitState("llm_calls", 2, 2) == run.reserve().spent


def test_a_final_call_that_is_no_longer_held_is_free() -> None:
    """Once the final call is reserved, or given up, there is nothing to hold."""
    run = account("run", max_llm_calls=1, holds_final_call=True)
    child = account("child", run)
    held = child.refusal()
    run.holds_final_call = False

    assert LimitState("llm_calls", 1, 0) == held
    assert None is child.refusal()


def test_a_final_call_is_held_from_grandchildren_too() -> None:
    """Everything below sees one less, however deep; each account on the way holds its own."""
    run = account("run", max_llm_calls=3, holds_final_call=True)
    child = account("child", run, max_llm_calls=2, holds_final_call=True)
    grandchild = account("grandchild", child)

    assert LimitState("llm_calls", 2, 1) == grandchild.reserve().spent
    assert LimitState("llm_calls", 2, 1) == grandchild.reserve().refused
    assert LimitState("llm_calls", 2, 2) == child.reserve().spent
    assert LimitState("llm_calls", 3, 2) == account("another", run).reserve().refused
    assert LimitState("llm_calls", 3, 3) == run.reserve().spent


# ------------------------------------------------------------ tokens, cost, time


@pytest.mark.parametrize(
    ("limits", "fits", "too_much", "expected"),
    [
        ({"max_total_tokens": 100}, (60, 9.0), (41, 0.0), LimitState("total_tokens", 100, 0)),
        ({"max_cost": 1.0}, (10**9, 0.6), (0, 0.5), LimitState("cost", 1.0, 0.0)),
        ({"max_total_tokens": 100, "max_cost": 1.0}, (60, 0.6), (41, 0.5), LimitState("total_tokens", 100, 0)),
    ],
)
def test_what_is_held_is_not_there_for_others(
    limits: dict[str, Any], fits: tuple[int, float], too_much: tuple[int, float], expected: LimitState
) -> None:
    """Parallel calls cannot promise the same tokens, or the same money, to two requests (B1)."""
    root = account("budget", **limits)
    first, second = account("first", root), account("second", root)
    held = first.reserve().number
    asked = second.reserve().number
    taken = first.hold(held, *fits)
    lacking = second.hold(asked, *too_much)

    assert None is taken
    assert expected == lacking == second.lacks(*too_much) == root.lacks_itself(*too_much)
    assert (fits[0], fits[1]) == (root.books.held_tokens, root.books.held_cost)
    first.release(held)
    assert None is second.hold(asked, *too_much)
    assert (0, 0.0) == (first.books.held_tokens, first.books.held_cost)


def test_a_refused_hold_leaves_the_reservation_as_it_was() -> None:
    """Nothing is held anywhere; it may be held for less, or given back."""
    root = account("budget", max_total_tokens=10)
    run = account("run", root)
    number = run.reserve().number
    before = books_of(run, root)
    refused = run.hold(number, 11, 0.0)

    assert LimitState("total_tokens", 10, 0) == refused
    assert before == books_of(run, root)
    assert None is run.hold(number, 10, 0.0)
    assert (10, 10) == (run.books.held_tokens, root.books.held_tokens)


def test_a_share_that_fits_exactly_fits() -> None:
    """Three times ten cents are thirty, although they are not in binary; a cent more is too much."""
    run = account("run", max_cost=0.3)
    lacking = []
    for _ in range(3):
        number = run.reserve().number
        lacking.append(run.hold(number, 0, 0.1))
        run.settle(number, Spending(USAGE, 0.1))

    assert [None] * 3 == lacking
    refused = run.refusal()
    assert refused is not None
    assert ("cost", 0.3) == (refused.name, refused.max)
    assert pytest.approx(0.3) == refused.used
    assert account("other", max_cost=0.3).lacks(0, 0.31) == LimitState("cost", 0.3, 0.0)


def test_a_share_that_is_used_up_is_used_up() -> None:
    """Ten times ten cents fall short of a dollar in binary; there is nothing left all the same."""
    run = account("run", max_cost=1.0)
    for _ in range(10):
        run.settle(run.reserve().number, Spending(USAGE, 0.1))
    refused = run.refusal()

    assert run.books.charged_cost < 1.0
    assert refused is not None
    assert "cost" == refused.name


def test_holding_and_giving_back_a_hundred_thousand_times_loses_no_cent() -> None:
    """What binary fractions leave behind does not add up to anything a limit would notice."""
    run = account("run", max_cost=1.0)
    kept = run.reserve().number
    run.hold(kept, 0, 0.3)
    for turn in range(100_000):
        number = run.reserve().number
        run.hold(number, 1, 0.1 + turn % 7 / 10)
        run.release(number)

    assert None is run.lacks(0, 0.7)
    assert LimitState("cost", 1.0, 0.0) == run.lacks(0, 0.7001)
    assert (1, 0) == (run.llm_calls, run.books.held_tokens)


@pytest.mark.parametrize(
    ("spending", "tokens", "cost", "charged_cost", "estimated"),
    [
        (Spending(USAGE, 0.5), 15, 0.5, 0.5, (0, 0.0)),
        (Spending(USAGE), 15, None, 0.0, (0, 0.0)),
        (Spending(UNKNOWN_USAGE, None, 40, 0.75), 40, None, 0.75, (40, 0.75)),
        (Spending(Usage(10, complete=False), 0.25, 30), 40, 0.25, 0.25, (30, 0.0)),
        (Spending(Usage(0, 0, 0, 0, 0, True), 0.0), 0, 0.0, 0.0, (0, 0.0)),
    ],
    ids=["reported", "no price", "nothing reported", "input alone reported", "zero reported"],
)
def test_what_a_call_is_charged(
    spending: Spending, tokens: int, cost: float | None, charged_cost: float, estimated: tuple[int, float]
) -> None:
    """What was not reported is charged as an estimate, and shown as one; it is never part of the usage or cost (B3)."""
    root = account("runtime", max_total_tokens=10**6)
    run = account("run", root)
    run.settle(run.reserve().number, spending)

    for one in (run, root):
        assert (tokens, charged_cost) == (one.books.charged_tokens, one.books.charged_cost)
        assert estimated == (one.statistics().estimated_tokens, one.statistics().estimated_cost)
        assert (spending.usage, cost) == (one.usage, one.cost)
    assert tokens == root.used_of("total_tokens")


def test_one_unknown_cost_makes_the_sum_unknown() -> None:
    """Unknown is not 0: what is known goes on being charged to limits, and is not shown as the cost."""
    run = account("run", max_cost=1.0)
    for spending in (Spending(USAGE, 0.5), Spending(USAGE, None, 0, 0.25), Spending(USAGE, 0.125)):
        run.settle(run.reserve().number, spending)

    assert None is run.cost
    assert (0.875, 0.25) == (run.used_of("cost"), run.statistics().estimated_cost)


def test_what_was_not_reported_is_unknown_and_incomplete() -> None:
    """The sum says that it is not all (B3)."""
    run = account("run")
    run.settle(run.reserve().number, SOME)
    run.settle(run.reserve().number, Spending(UNKNOWN_USAGE, None, 7, 0.125))

    assert Usage(10, 0, 0, 5, 0, False) == run.usage
    assert AccountStatistics("run", Limits(), 2, 0, run.usage, None, 7, 0.125, 0, None) == run.statistics()


@pytest.mark.parametrize(
    ("limits", "spent", "expected"),
    [
        ({"max_total_tokens": 15}, SOME, LimitState("total_tokens", 15, 15)),
        ({"max_total_tokens": 16}, SOME, None),
        ({"max_cost": 0.25}, SOME, LimitState("cost", 0.25, 0.25)),
        ({"max_cost": 0.2501}, SOME, None),
        ({"max_total_tokens": 15, "max_llm_calls": 1}, SOME, LimitState("llm_calls", 1, 1)),
        ({"max_tool_calls": 1}, SOME, None),
        ({"max_tool_iterations": 1}, SOME, None),
    ],
)
@pytest.mark.parametrize("above", [False, True])
def test_a_used_up_limit_refuses_the_next_call(
    limits: dict[str, Any], spent: Spending, expected: LimitState | None, above: bool
) -> None:
    """Calls, tokens and cost, on the run's own account or above it; tools are no business of a model call."""
    holder = account("holder", **limits)
    run = account("run", holder) if above else holder
    run.settle(run.reserve().number, spent)

    assert expected == run.refusal()
    assert expected == run.reserve().refused


def test_time_that_is_used_up_refuses_the_next_call() -> None:
    """Only time in which somebody worked counts."""
    now = [0.0]
    run = Account("run", Limits(wall_clock_seconds=5), clock=lambda: now[0])
    watch = run.stopwatch
    assert watch is not None
    now[0] = 100.0
    waited = run.refusal()
    watch.begin()
    now[0] = 104.0
    worked = run.refusal()
    now[0] = 105.0

    assert (None, None) == (waited, worked)
    assert LimitState("wall_clock", 5, 5.0) == run.refusal() == run.reserve().refused
    assert 5.0 == run.statistics().work_seconds


def test_a_limit_of_time_needs_a_clock() -> None:
    """Whoever forgets it hears of it where the account is made, by its name."""
    with pytest.raises(ValueError, match="account run: wall_clock_seconds needs a clock"):
        Account("run", Limits(wall_clock_seconds=5))


def test_whether_anything_is_held_is_known_beforehand() -> None:
    """An account knows whether tokens or cost are limited anywhere above it: without that nobody estimates."""
    plain = account("plain", max_llm_calls=1, max_tool_calls=1)
    tokens, cost = account("tokens", max_total_tokens=1), account("cost", max_cost=1.0)

    seen = [(one.holds_amounts, one.limits_cost) for one in (plain, account("a", tokens), account("b", plain, cost))]
    assert [(False, False), (True, False), (True, True)] == seen


# ------------------------------------------------------------ tool bodies


@pytest.mark.parametrize(
    ("own", "above", "wanted", "expected"),
    [
        (None, None, 9, (9, None)),
        (3, None, 3, (3, None)),
        (3, None, 5, (3, LimitState("tool_calls", 3, 3))),
        (5, 2, 4, (2, LimitState("tool_calls", 2, 2))),
        (2, 5, 4, (2, LimitState("tool_calls", 2, 2))),
        (2, 2, 4, (2, LimitState("tool_calls", 2, 2))),
        (1, 1, 0, (0, None)),
    ],
)
def test_no_body_more_than_a_limit_allows(
    own: int | None, above: int | None, wanted: int, expected: tuple[int, LimitState | None]
) -> None:
    """The first so many of a turn's calls are let in; the limit that has no room for the rest is named (B4)."""
    root = account("budget", max_tool_calls=above)
    run = account("run", root, max_tool_calls=own)

    assert expected == run.enter_tools(wanted)
    assert [expected[0]] * 2 == [run.tool_calls, root.tool_calls]


def test_a_body_that_was_never_entered_is_given_back() -> None:
    """On every account; the one who comes after may have it."""
    root = account("budget", max_tool_calls=3)
    run, other = account("run", root), account("other", root)
    run.enter_tools(3)
    spent = other.spent_tools()
    run.leave_tools(2)

    assert LimitState("tool_calls", 3, 3) == spent
    assert None is other.spent_tools()
    assert (2, LimitState("tool_calls", 3, 3)) == other.enter_tools(5)
    assert [1, 2, 3] == [run.tool_calls, other.tool_calls, root.tool_calls]


# ------------------------------------------------------------ what a decision grants

GRANTED: list[tuple[LimitName, str, float, float]] = [
    ("llm_calls", "max_llm_calls", 5, 7),
    ("tool_calls", "max_tool_calls", 5, 7),
    ("total_tokens", "max_total_tokens", 5, 7),
    ("cost", "max_cost", 0.5, 2.5),
    ("wall_clock", "wall_clock_seconds", 5, 7),
]


@pytest.mark.parametrize(("name", "field", "before", "after"), GRANTED)
def test_a_grant_raises_its_own_limit_and_no_other(name: LimitName, field: str, before: float, after: float) -> None:
    """By as much as was granted, on the run's account alone."""
    lots: dict[str, Any] = {field: 50}
    own: dict[str, Any] = {field: before}
    raised: dict[str, Any] = {field: after}
    root = account("budget", **lots)
    run = account("run", root, **own)
    run.extend(name, 2)

    assert Limits(**raised) == run.limits
    assert after == run.state_of(name).max
    assert Limits(**lots) == root.limits
    if run.stopwatch is not None:
        assert after == run.stopwatch.limit


@pytest.mark.parametrize("name", get_args(LimitName))
@pytest.mark.parametrize("limited", [False, True])
def test_a_grant_that_fits_nothing_changes_nothing(name: LimitName, limited: bool) -> None:
    """No limit is not made one; and a grant below nothing, where the room went while somebody decided, takes nothing."""
    limits: dict[str, Any] = dict.fromkeys([field for _, field, _, _ in GRANTED], 2) if limited else {}
    run = account("run", **limits)
    run.extend(name, -5 if limited else 5)

    assert Limits(**limits) == run.limits


def test_a_call_is_there_again_after_a_grant() -> None:
    """The limit that refused lets as many calls through as were granted, and refuses again with its new numbers."""
    run = account("run", max_llm_calls=1)
    run.reserve()
    run.extend("llm_calls", 2)

    assert [None, LimitState("llm_calls", 3, 3)] == [run.reserve().spent, run.reserve().spent]
    assert LimitState("llm_calls", 3, 3) == run.reserve().refused


@pytest.mark.parametrize(
    ("name", "limits", "expected"),
    [
        ("llm_calls", {}, None),
        ("llm_calls", {"max_llm_calls": 9}, 8),
        ("tool_calls", {"max_tool_calls": 9}, 7),
        ("total_tokens", {"max_total_tokens": 90}, 75),
        ("cost", {"max_cost": 2.0}, 1.75),
        ("wall_clock", {"wall_clock_seconds": 60}, 60.0),
        ("tool_iterations", {"max_tool_iterations": 3}, None),
    ],
)
def test_the_ceiling_is_what_those_above_have_left(
    name: LimitName, limits: dict[str, Any], expected: float | None
) -> None:
    """The tightest of them, whatever the account's own limit is; a window has none, since it is never shared."""
    root = account("runtime", **limits)
    budget = account("budget", root, **{field: value * 10 for field, value in limits.items()})
    tight: dict[str, Any] = dict.fromkeys(limits, 1)
    run = account("run", budget, **tight)
    run.settle(run.reserve().number, SOME)
    run.enter_tools(1)
    account("other", root).enter_tools(1)

    assert expected == run.ceiling(name)
    assert None is root.ceiling(name)


def test_the_ceiling_leaves_the_final_call_that_is_held_above() -> None:
    """Nobody is asked to grant what the account above keeps for itself."""
    parent = account("parent", max_llm_calls=3, holds_final_call=True)
    child = account("child", parent, max_llm_calls=1)
    before = child.ceiling("llm_calls")
    child.reserve()
    child.extend("llm_calls", child.ceiling("llm_calls") or 0)

    assert 2 == before
    assert LimitState("llm_calls", 2, 2) == child.reserve().spent
    assert 0 == child.ceiling("llm_calls")
    assert LimitState("llm_calls", 3, 3) == parent.reserve().spent


def test_statistics_are_of_their_moment() -> None:
    """What happens after does not change them."""
    run = account("run", max_llm_calls=3)
    before = run.statistics()
    run.settle(run.reserve().number, SOME)
    run.extend("llm_calls", 4)

    assert AccountStatistics("run", Limits(max_llm_calls=3), 0, 0, NO_USAGE, 0.0, 0, 0.0, 0, None) == before
    assert AccountStatistics("run", Limits(max_llm_calls=7), 1, 0, USAGE, 0.25, 0, 0.0, 0, None) == run.statistics()
