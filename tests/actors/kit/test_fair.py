"""Slots that are shared: never too many, none lost, and nobody starved."""

from __future__ import annotations

from typing import Literal

import attrs
import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.kit import FairLimiter, SlotStatistics


@attrs.define(eq=False)
class Visitor:
    """Somebody who wants a slot, and has it until it is taken from him."""

    line: str
    granted_before: int
    """Slots that had been handed out when he came."""
    ahead: int
    """Visitors of his own line who waited then."""
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    state: Literal["waits", "has", "gone"] = "waits"
    served: bool = False


@attrs.define(eq=False)
class Counter:
    """A limiter, those who came to it, and what is wrong."""

    limiter: FairLimiter
    total: int
    is_fair: bool
    """Whether whoever waits has a bound for it."""
    visitors: list[Visitor] = attrs.field(factory=list)
    granted: int = 0
    faults: list[str] = attrs.field(factory=list)

    def those(self, state: str) -> list[Visitor]:
        return [visitor for visitor in self.visitors if visitor.state == state]

    async def visit(self, line: str) -> None:
        ahead = sum(1 for other in self.those("waits") if other.line == line)
        visitor = Visitor(line, self.granted, ahead)
        self.visitors.append(visitor)
        with visitor.scope:
            await self.limiter.acquire(line)
            self.granted += 1
            visitor.state, visitor.served = "has", True
        if visitor.state == "waits":
            visitor.state = "gone"

    def look_at_turns(self) -> None:
        """Of those who wait: nobody behind them has been served before, and not too many others were."""
        lines = len({visitor.line for visitor in self.visitors})
        for number, visitor in enumerate(self.visitors):
            if visitor.state != "waits":
                continue
            if any(other.served and other.line == visitor.line for other in self.visitors[number:]):
                self.faults.append(f"{visitor.line} is not served in order")
            waited = self.granted - visitor.granted_before
            if self.is_fair and waited > (visitor.ahead + 1) * lines:
                self.faults.append(f"{visitor.line} has to wait for {waited} others, with {lines} lines")

    def leave(self, number: int) -> None:
        having = self.those("has")
        if having:
            visitor = having[number % len(having)]
            visitor.state = "gone"
            self.limiter.release(visitor.line)

    def give_up(self, number: int) -> None:
        waiting = self.those("waits")
        if waiting:
            waiting[number % len(waiting)].scope.cancel("it gives up")

    def look(self) -> None:
        having, waiting, seen = self.those("has"), self.those("waits"), self.limiter.statistics()
        if (seen.in_use, seen.waiting) != (len(having), len(waiting)) or seen.in_use > self.total:
            self.faults.append(f"{len(having)} have a slot, {len(waiting)} wait, and it says {seen}")
        free = self.total - len(having)
        holding = {visitor.line for visitor in having}
        might = [visitor for visitor in waiting if self.is_fair or free > 1 or visitor.line not in holding]
        if free > 0 and might:
            self.faults.append(f"{free} slots are free, and {might[0].line} waits")
        self.look_at_turns()


DEEDS = st.one_of(
    st.tuples(st.just("come"), st.sampled_from("abcd")),
    st.tuples(st.just("come"), st.just("a")),
    st.tuples(st.just("leave"), st.integers(0, 20)),
    st.tuples(st.just("give up"), st.integers(0, 20)),
)
AT_ONCE = st.lists(DEEDS, min_size=1, max_size=5)
"""Deeds of one step: nobody else runs between them."""


@pytest.mark.slow
@given(total=st.integers(1, 4), spares_one=st.booleans(), steps=st.lists(AT_ONCE, max_size=30))
@settings(deadline=None, derandomize=True, database=None, max_examples=300)
def test_whatever_comes(total: int, spares_one: bool, steps: list[list[tuple[str, str | int]]]) -> None:
    """Never more than there are; none free while somebody may have it, whoever gave up when; in order, within the bound."""
    limiter = FairLimiter(total, spares_one=spares_one)
    counter = Counter(limiter, total, is_fair=not spares_one or total == 1)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for deeds in steps:
                for deed, what in deeds:
                    match what:
                        case str():
                            nursery.start_soon(counter.visit, what)
                        case _ if deed == "leave":
                            counter.leave(what)
                        case _:
                            counter.give_up(what)
                await trio.testing.wait_all_tasks_blocked()
                counter.look()
            nursery.cancel_scope.cancel("that is all")
        for _ in counter.those("has"):
            counter.leave(0)

    trio.run(main)

    assert [] == counter.faults
    assert (0, 0) == (limiter.statistics().in_use, limiter.statistics().waiting)


async def visits(limiter: FairLimiter, line: str, served: list[str]) -> None:
    """Have a slot for a second."""
    async with limiter.slot(line):
        served.append(line)
        await trio.sleep(1)


async def test_lines_take_turns(autojump_clock: trio.testing.MockClock) -> None:
    """However many wait in one line, whoever comes to another has the next slot but one."""
    limiter, served = FairLimiter(1), list[str]()
    async with trio.open_nursery() as nursery:
        for line in ("many", "many", "many", "many", "one", "other", "one"):
            nursery.start_soon(visits, limiter, line, served)
            await trio.testing.wait_all_tasks_blocked()

    assert ["many", "many", "one", "other", "many", "one", "many"] == served


async def test_a_wait_that_is_cancelled_ends_at_once(autojump_clock: trio.testing.MockClock) -> None:
    """It takes no slot, holds up nobody behind it, and its time is told."""
    limiter, served = FairLimiter(1), list[str]()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(visits, limiter, "first", served)
        await trio.testing.wait_all_tasks_blocked()
        with trio.move_on_after(0.25) as scope:
            await limiter.acquire("second")
        left = (scope.cancelled_caught, trio.current_time(), limiter.statistics())

    assert (True, 0.25, SlotStatistics(1, 1, 0, 0.25)) == left
    assert SlotStatistics(0, 1, 0, 0.25) == limiter.statistics()


async def test_a_wait_in_a_cancelled_scope_takes_nothing() -> None:
    """Although a slot is free."""
    limiter = FairLimiter(1)
    with trio.CancelScope() as scope:
        scope.cancel("before it came")
        await limiter.acquire("a")

    assert (True, 0) == (scope.cancelled_caught, limiter.statistics().in_use)


async def test_a_slot_handed_over_stays_with_whoever_is_cancelled_then() -> None:
    """The cancel came too late: he has it, and gives it back."""
    limiter = FairLimiter(1)
    await limiter.acquire("a")
    outcome: list[str] = []

    async def wait(scope: trio.CancelScope) -> None:
        with scope:
            await limiter.acquire("b")
            outcome.append("has it")
            limiter.release("b")

    async with trio.open_nursery() as nursery:
        scope = trio.CancelScope()
        nursery.start_soon(wait, scope)
        await trio.testing.wait_all_tasks_blocked()
        limiter.release("a")
        scope.cancel("too late")

    assert (["has it"], 0) == (outcome, limiter.statistics().in_use)


async def test_the_last_slot_is_spared(autojump_clock: trio.testing.MockClock) -> None:
    """Of several; a line that has slots which never come back leaves one to each who has none."""
    limiter, served = FairLimiter(3, spares_one=True), list[str]()
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(limiter.acquire, "hog")
        await trio.testing.wait_all_tasks_blocked()
        held = limiter.statistics()
        for line in ("a", "b", "a"):
            nursery.start_soon(visits, limiter, line, served)
        await trio.sleep(10)
        nursery.cancel_scope.cancel("that is all")

    assert (2, 3) == (held.in_use, held.waiting)
    assert ["a", "a", "b"] == sorted(served)


async def test_one_slot_is_not_spared() -> None:
    """There would be none to use."""
    limiter = FairLimiter(1, spares_one=True)
    await limiter.acquire("a")

    assert 1 == limiter.statistics().in_use


async def test_nobody_gives_back_what_he_does_not_have() -> None:
    """A fault of the program: it is told, and nothing is counted."""
    limiter = FairLimiter(2)
    await limiter.acquire("a")
    with pytest.raises(RuntimeError, match="'b' gives back a slot that it does not have"):
        limiter.release("b")

    assert 1 == limiter.statistics().in_use
