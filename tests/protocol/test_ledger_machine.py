"""The ledger under any sequence of calls: a tree of accounts against a plain list of what was really granted."""

from __future__ import annotations

from typing import Any

import attrs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from protocol.ledger import Account
from protocol.usage import NO_USAGE, Usage

from .drawn import usages

limits = st.none() | st.integers(1, 4)


@attrs.define
class Node:
    """An account, and what the model knows of it."""

    account: Account
    parent: Node | None
    own: list[int] = attrs.field(factory=list)
    """Reservations that still count: open or settled."""
    open: list[int] = attrs.field(factory=list)
    used: Usage = NO_USAGE
    children: list[Node] = attrs.field(factory=list)

    def calls(self) -> int:
        return len(self.own) + sum(child.calls() for child in self.children)

    def tokens(self) -> Usage:
        total = self.used
        for child in self.children:
            total += child.tokens()
        return total

    def line(self) -> list[Node]:
        return [self, *(self.parent.line() if self.parent else [])]

    def free(self, asker: Node) -> float:
        held = 1 if self.account.holds_final_call and asker is not self else 0
        most = self.account.max_llm_calls
        return float("inf") if most is None else most - self.calls() - held


class LedgerMachine(RuleBasedStateMachine):
    nodes: Bundle[Node] = Bundle("nodes")
    granted: Bundle[tuple[Node, int]] = Bundle("granted")

    def __init__(self) -> None:
        super().__init__()
        self.all: list[Node] = []

    @rule(target=nodes, most=limits)
    def root(self, most: int | None) -> Node:
        return self._node(None, most, held=False)

    @rule(target=nodes, parent=nodes, most=limits, held=st.booleans())
    def child(self, parent: Node, most: int | None, held: bool) -> Node:
        return self._node(parent, most, held=held)

    @rule(target=granted, node=nodes)
    def reserve(self, node: Node) -> Any:
        line = node.line()
        tightest = min(above.free(node) for above in line)
        refusal = node.account.refusal()
        grant = node.account.reserve()

        assert (grant.refused is None) == (tightest >= 1) == (refusal is None)
        if grant.refused is not None:
            blocking = next(above for above in line if above.free(node) < 1)
            assert grant.refused == refusal == blocking.account.limit_state()
            assert grant.number == 0
            return multiple()
        node.own.append(grant.number)
        node.open.append(grant.number)
        assert (grant.spent is not None) == (tightest == 1)
        return node, grant.number

    @rule(reservation=granted, usage=usages)
    def settle(self, reservation: tuple[Node, int], usage: Usage) -> None:
        """Also of a number that is settled or released already: the bundle keeps it."""
        node, number = reservation
        node.account.settle(number, usage)
        if number in node.open:
            node.open.remove(number)
            node.used += usage

    @rule(reservation=granted)
    def release(self, reservation: tuple[Node, int]) -> None:
        node, number = reservation
        node.account.release(number)
        if number in node.open:
            node.open.remove(number)
            node.own.remove(number)

    @rule(node=nodes, reservation=consumes(granted))
    def forget(self, node: Node, reservation: tuple[Node, int]) -> None:
        """A reservation that nobody settles stays open and counted."""
        assert (reservation[1] in reservation[0].open) == (reservation[1] in reservation[0].account.open_reservations)

    @rule(node=nodes)
    def let_go_of_the_final_call(self, node: Node) -> None:
        node.account.holds_final_call = False

    @invariant()
    def no_limit_is_exceeded(self) -> None:
        for node in self.all:
            most = node.account.max_llm_calls
            assert most is None or node.account.llm_calls <= most

    @invariant()
    def numbers_are_what_was_granted(self) -> None:
        for node in self.all:
            assert node.calls() == node.account.llm_calls
            assert node.tokens() == node.account.usage
            assert tuple(sorted(node.open)) == node.account.open_reservations
            assert len(node.open) == node.account.statistics().open_reservations

    def _node(self, parent: Node | None, most: int | None, *, held: bool) -> Node:
        account = Account(f"account {len(self.all)}", most, parent.account if parent else None, held)
        node = Node(account, parent)
        if parent is not None:
            parent.children.append(node)
        self.all.append(node)
        return node


TestLedger = LedgerMachine.TestCase
TestLedger.settings = settings(max_examples=150, stateful_step_count=40)
