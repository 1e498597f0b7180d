"""The ledger under any sequence of calls: accounts with several parents against plain lists of what was granted.

The model adds everything up anew each time: what counts on an account is what was granted to it or to an account that
it stands above, once, on however many ways it is reached. Each reservation follows `RESERVATION_TRANSITIONS`. Amounts
are eighths of a dollar, so that sums are exact.
"""

from __future__ import annotations

from functools import reduce
from operator import add, itemgetter
from typing import Any, get_args

import attrs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from protocol.ledger import RESERVATION_TRANSITIONS, Account, ReservationState
from protocol.limits import LimitName, Limits, LimitState
from protocol.spending import Spending
from protocol.stopwatch import Activity
from protocol.usage import NO_USAGE, Usage

TOKENS = st.integers(0, 5)
EIGHTHS = st.integers(0, 5).map(lambda eighths: eighths / 8)
LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "max_tool_iterations": st.just(1),
        "max_llm_calls": st.integers(1, 4),
        "max_tool_calls": st.integers(1, 4),
        "max_total_tokens": st.integers(1, 12),
        "max_cost": st.integers(1, 12).map(lambda eighths: eighths / 8),
        "wall_clock_seconds": st.integers(1, 9),
    },
)
SPENDINGS = st.builds(
    Spending,
    st.builds(Usage, st.none() | TOKENS, st.none(), st.none(), st.none() | TOKENS, st.none(), st.booleans()),
    st.none() | EIGHTHS,
    st.integers(0, 2),
    EIGHTHS,
)
PLACES = st.tuples(st.lists(st.integers(0, 5), max_size=3), LIMITS, st.booleans())
"""Of an account: some of those before it, its limits, whether it holds its final call."""


@attrs.define(eq=False)
class Node:
    """An account, and what the model knows of it."""

    account: Account
    parents: list[Node]
    limits: dict[str, Any]
    holds_final_call: bool
    activity: Activity
    bodies: int = 0
    """Of its own, entered or about to be."""
    seconds: int = 0
    works: bool = False

    def above(self) -> dict[Node, int]:
        """It and all above it, each with the shortest way to it."""
        found = {self: 0}
        for parent in self.parents:
            for node, steps in parent.above().items():
                found[node] = min(steps + 1, found.get(node, steps + 1))
        return found


@attrs.define(eq=False)
class Reservation:
    """A call that was granted, and where the table has brought it."""

    node: Node
    number: int
    state: ReservationState = "open"
    tokens: int = 0
    cost: float = 0.0
    spending: Spending | None = None

    def act(self, action: str) -> bool:
        """Whether the table allows it; if so, it is done."""
        target = RESERVATION_TRANSITIONS[self.state].get(action)
        self.state = target or self.state
        return target is not None


class LedgerMachine(RuleBasedStateMachine):
    nodes: Bundle[Node] = Bundle("nodes")
    granted: Bundle[Reservation] = Bundle("granted")

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.all: list[Node] = []
        self.reservations: list[Reservation] = []

    # -------------------------------------------------------- what the model adds up

    def below(self, node: Node) -> list[Reservation]:
        return [one for one in self.reservations if node in one.node.above()]

    def calls(self, node: Node) -> int:
        return sum(one.state != "released" for one in self.below(node))

    def bodies(self, node: Node) -> int:
        return sum(one.bodies for one in self.all if node in one.above())

    def held(self, node: Node) -> tuple[int, float]:
        held = [one for one in self.below(node) if one.state == "held"]
        return sum(one.tokens for one in held), sum(one.cost for one in held)

    def spent(self, node: Node) -> list[Spending]:
        return [one.spending for one in self.below(node) if one.spending is not None]

    def charged(self, node: Node) -> tuple[int, float]:
        spent = self.spent(node)
        return (
            sum((one.usage.input_tokens + (one.usage.output_tokens or 0)) + one.estimated_tokens for one in spent),
            sum(one.estimated_cost if one.cost is None else one.cost for one in spent),
        )

    def used(self, node: Node, name: LimitName) -> float:
        match name:
            case "llm_calls":
                return self.calls(node)
            case "tool_calls":
                return self.bodies(node)
            case "total_tokens":
                return self.charged(node)[0]
            case "cost":
                return self.charged(node)[1]
            case "wall_clock":
                return node.seconds
            case "tool_iterations" | "history_bytes":
                return 0

    def state_of(self, node: Node, name: LimitName) -> LimitState:
        return LimitState(name, node.limits[FIELDS[name]], self.used(node, name))

    def free(self, node: Node, asker: Node) -> float:
        most: float = node.limits.get("max_llm_calls", float("inf"))
        return most - self.calls(node) - (1 if node.holds_final_call and node is not asker else 0)

    def room(self, node: Node) -> tuple[float, float]:
        held, charged = self.held(node), self.charged(node)
        tokens: float = node.limits.get("max_total_tokens", float("inf"))
        cost: float = node.limits.get("max_cost", float("inf"))
        return tokens - charged[0] - held[0], cost - charged[1] - held[1]

    def refusal(self, node: Node, asker: Node) -> LimitState | None:
        tokens, cost = self.room(node)
        if self.free(node, asker) < 1:
            return self.state_of(node, "llm_calls")
        if tokens <= 0:
            return self.state_of(node, "total_tokens")
        if cost <= 0:
            return self.state_of(node, "cost")
        if node.seconds >= node.limits.get("wall_clock_seconds", float("inf")):
            return self.state_of(node, "wall_clock")
        return None

    def lacks(self, node: Node, tokens: int, cost: float) -> LimitState | None:
        room = self.room(node)
        if tokens > room[0]:
            return self.state_of(node, "total_tokens")
        return self.state_of(node, "cost") if cost > room[1] else None

    def line(self, node: Node) -> list[Node]:
        """In the order in which the account asks them, which `the_chain_is_nearest_first` looks at."""
        by_account = {id(one.account): one for one in self.all}
        return [by_account[id(account)] for account in node.account.chain]

    # -------------------------------------------------------- accounts

    @initialize(target=nodes, places=st.lists(PLACES, min_size=2, max_size=6))
    def accounts(self, places: list[tuple[list[int], dict[str, Any], bool]]) -> Any:
        for parents, limits, held in places:
            self._node([self.all[index % len(self.all)] for index in parents if self.all], limits, held=held)
        return multiple(*self.all)

    @rule(node=nodes)
    def let_go_of_the_final_call(self, node: Node) -> None:
        node.account.holds_final_call = node.holds_final_call = False

    @rule(node=nodes, name=st.sampled_from(get_args(LimitName)), eighths=st.integers(-8, 24))
    def grant_more(self, node: Node, name: LimitName, eighths: int) -> None:
        """What no decision grants, less than nothing, is nothing."""
        grant = eighths / 8 if name == "cost" else eighths // 8
        ceiling = node.account.ceiling(name)
        rooms = [self._left(above, name, node) for above in self.line(node)[1:] if FIELDS[name] in above.limits]

        assert (min(rooms) if rooms and name != "tool_iterations" else None) == ceiling
        node.account.extend(name, grant)
        if FIELDS[name] in node.limits and name != "tool_iterations":
            node.limits[FIELDS[name]] += max(0, grant)

    def _left(self, above: Node, name: LimitName, node: Node) -> float:
        if name == "llm_calls":
            return self.free(above, node)
        left: float = above.limits[FIELDS[name]] - self.used(above, name)
        return left

    # -------------------------------------------------------- calls

    @rule(target=granted, node=nodes, amounts=st.none() | st.tuples(TOKENS, EIGHTHS))
    def reserve(self, node: Node, amounts: tuple[int, float] | None) -> Any:
        """Count a call, and as a rule hold something for it at once."""
        line = self.line(node)
        refusals = [refused for above in line if (refused := self.refusal(above, node)) is not None]
        last = next((above for above in line if self.free(above, node) == 1), None)
        refusal, before = node.account.refusal(), self._books()
        grant = node.account.reserve()

        assert (refusals[0] if refusals else None) == grant.refused == refusal
        if grant.refused is not None:
            assert (0, None, before) == (grant.number, grant.spent, self._books())
            return multiple()
        reservation = Reservation(node, grant.number)
        self.reservations.append(reservation)
        assert (None if last is None else self.state_of(last, "llm_calls")) == grant.spent
        if amounts is not None:
            self.hold(reservation, *amounts)
        return reservation

    @rule(one=granted, amounts=st.tuples(TOKENS, EIGHTHS))
    def hold_again(self, one: Reservation, amounts: tuple[int, float]) -> None:
        self.hold(one, *amounts)

    def hold(self, one: Reservation, tokens: int, cost: float) -> None:
        lacks = [lack for above in self.line(one.node) if (lack := self.lacks(above, tokens, cost)) is not None]
        before = self._books()

        assert (lacks[0] if lacks else None) == one.node.account.lacks(tokens, cost)
        lacking = one.node.account.hold(one.number, tokens, cost)
        if "hold" not in RESERVATION_TRANSITIONS[one.state]:
            assert (None, before) == (lacking, self._books())
        elif lacks:
            assert (lacks[0], before) == (lacking, self._books())
        else:
            assert lacking is None
            assert one.act("hold")
            one.tokens, one.cost = tokens, cost

    @rule(one=granted, spending=SPENDINGS)
    def settle(self, one: Reservation, spending: Spending) -> None:
        before = self._books()
        one.node.account.settle(one.number, spending)
        if one.act("settle"):
            one.spending = spending
        else:
            assert before == self._books()

    @rule(one=granted)
    def release(self, one: Reservation) -> None:
        before = self._books()
        one.node.account.release(one.number)

        assert one.act("release") or before == self._books()

    @rule(node=nodes, tokens=TOKENS, cost=EIGHTHS)
    def change_its_mind(self, node: Node, tokens: int, cost: float) -> None:
        """A call that is given back leaves everything exactly as it was, whatever was held for it."""
        before = self._books()
        grant = node.account.reserve()
        node.account.hold(grant.number, tokens, cost)
        node.account.release(grant.number)

        assert before == self._books()

    # -------------------------------------------------------- tool bodies

    @rule(node=nodes, wanted=st.integers(0, 5), never_entered=st.integers(0, 5))
    def enter(self, node: Node, wanted: int, never_entered: int) -> None:
        rooms = [
            (most - self.bodies(above), above)
            for above in self.line(node)
            if (most := above.limits.get("max_tool_calls")) is not None
        ]
        tightest = min(rooms, key=itemgetter(0), default=None)
        full = next((above for room, above in rooms if room <= 0), None)

        assert (None if full is None else self.state_of(full, "tool_calls")) == node.account.spent_tools()
        granted, short = node.account.enter_tools(wanted)
        node.bodies += granted
        if tightest is None or tightest[0] >= wanted:
            assert (wanted, None) == (granted, short)
        else:
            assert (tightest[0], self.state_of(tightest[1], "tool_calls")) == (granted, short)
        given_back = min(granted, never_entered)
        node.account.leave_tools(given_back)
        node.bodies -= given_back

    # -------------------------------------------------------- time

    @rule(node=nodes)
    def work_or_wait(self, node: Node) -> None:
        (node.activity.wait if node.works else node.activity.resume)()
        node.works = not node.works

    @rule(seconds=st.integers(1, 3))
    def let_time_pass(self, seconds: int) -> None:
        self.now += seconds
        for node in self.all:
            node.seconds += seconds * any(one.works and node in one.above() for one in self.all)

    # -------------------------------------------------------- what always holds

    @invariant()
    def no_limit_is_overshot(self) -> None:
        """By no call and no body; and by tokens and cost only as far as calls used more than was held for them."""
        for node in self.all:
            account, below = node.account, self.below(node)
            settled = [(one, one.spending) for one in below if one.spending is not None]
            more_tokens = sum(max(0, _tokens(spending) - one.tokens) for one, spending in settled)
            more_cost = sum(max(0.0, _cost(spending) - one.cost) for one, spending in settled)
            taken = account.books.charged_tokens + account.books.held_tokens
            paid = account.books.charged_cost + account.books.held_cost

            assert account.llm_calls <= node.limits.get("max_llm_calls", float("inf"))
            assert account.tool_calls <= node.limits.get("max_tool_calls", float("inf"))
            assert taken <= node.limits.get("max_total_tokens", float("inf")) + more_tokens
            assert paid <= node.limits.get("max_cost", float("inf")) + more_cost

    @invariant()
    def sums_are_what_was_booked(self) -> None:
        for node in self.all:
            account, spent = node.account, self.spent(node)
            statistics = account.statistics()
            own = [one.number for one in self.reservations if one.node is node and RESERVATION_TRANSITIONS[one.state]]

            assert (self.calls(node), self.bodies(node)) == (account.llm_calls, account.tool_calls)
            assert self.held(node) == (account.books.held_tokens, account.books.held_cost)
            assert self.charged(node) == (account.books.charged_tokens, account.books.charged_cost)
            assert reduce(add, [one.usage for one in spent], NO_USAGE) == account.usage
            assert _sum_of([one.cost for one in spent]) == account.cost
            assert sum(one.estimated_tokens for one in spent) == statistics.estimated_tokens
            assert sum(one.estimated_cost for one in spent if one.cost is None) == statistics.estimated_cost
            assert tuple(own) == account.open_reservations
            assert (len(own), Limits(**node.limits)) == (statistics.open_reservations, statistics.limits)
            if account.stopwatch is not None:
                assert node.seconds == account.stopwatch.used == statistics.work_seconds

    @invariant()
    def the_chain_is_nearest_first(self) -> None:
        for node in self.all:
            above = node.above()
            line = self.line(node)

            assert set(above) == set(line)
            assert sorted(above.values()) == [above[one] for one in line]

    def _books(self) -> list[tuple[Any, ...]]:
        return [
            (one.llm_calls, one.tool_calls, one.usage, one.cost, one.open_reservations)
            + tuple(getattr(one.books, name) for name in type(one.books).__slots__ if name != "tally")
            for one in (node.account for node in self.all)
        ]

    def _node(self, parents: list[Node], limits: dict[str, Any], *, held: bool) -> Node:
        account = Account(
            f"account {len(self.all)}",
            Limits(**limits),
            tuple([parent.account for parent in parents]),
            clock=lambda: self.now,
            holds_final_call=held,
        )
        watches = tuple([above.stopwatch for above in account.chain if above.stopwatch is not None])
        activity = Activity(watches)
        activity.wait()
        activity.start()
        node = Node(account, parents, dict(limits), held, activity)
        self.all.append(node)
        return node


FIELDS: dict[LimitName, str] = {
    "tool_iterations": "max_tool_iterations",
    "llm_calls": "max_llm_calls",
    "tool_calls": "max_tool_calls",
    "total_tokens": "max_total_tokens",
    "cost": "max_cost",
    "wall_clock": "wall_clock_seconds",
    "history_bytes": "",  # the runtime's: no account has it
}


def _tokens(spending: Spending) -> int:
    return spending.usage.total_tokens + spending.estimated_tokens


def _cost(spending: Spending) -> float:
    return spending.estimated_cost if spending.cost is None else spending.cost


def _sum_of(costs: list[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None


TestLedger = LedgerMachine.TestCase
TestLedger.settings = settings(max_examples=200, stateful_step_count=50)
