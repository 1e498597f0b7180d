"""What calls have used, as an account books it."""

from __future__ import annotations

from functools import reduce
from operator import add
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from protocol.codec import decode, encode
from protocol.spending import Books, Spending
from protocol.usage import NO_USAGE, Usage

from .drawn import usages

cents = st.integers(0, 1000).map(lambda eighths: eighths / 8)
spendings = st.builds(Spending, usages, st.none() | cents, st.integers(0, 99), cents)


USAGE = Usage(1, 2, 3, 4, 5, True)


def booked(spendings_: list[Spending]) -> Books:
    books = Books()
    for spending in spendings_:
        books.add(spending, spending.tokens)
    return books


def shape_of(books: Books) -> dict[str, object]:
    """Every sum in the books."""
    return {name: getattr(books, name) for name in Books.__slots__ if name != "tally"} | {"usage": books.tally.total()}


@given(st.lists(spendings, max_size=8))
def test_the_books_are_the_sums_of_what_was_booked(spendings_: list[Spending]) -> None:
    """Each sum is that of its calls: reported and estimated tokens apart, an estimate of the cost only where none is known."""
    books = booked(spendings_)
    known = [spending.cost for spending in spendings_ if spending.cost is not None]

    assert reduce(add, [spending.usage for spending in spendings_], NO_USAGE) == books.tally.total()
    assert books.charged_tokens == books.tally.total().total_tokens + books.estimated_tokens
    assert books.estimated_tokens == sum(spending.estimated_tokens for spending in spendings_)
    assert books.estimated_cost == sum(spending.estimated_cost for spending in spendings_ if spending.cost is None)
    assert books.charged_cost == sum(known) + books.estimated_cost
    assert (sum(known) if len(known) == len(spendings_) else None) == books.cost
    assert (0, 0.0) == (books.held_tokens, books.held_cost)


@given(st.lists(spendings, max_size=6), st.randoms(use_true_random=False))
def test_the_order_of_booking_does_not_matter(spendings_: list[Spending], random: Random) -> None:
    """Whichever call of parallel ones is settled first, the books are the same."""
    shuffled = list(spendings_)
    random.shuffle(shuffled)

    assert shape_of(booked(spendings_)) == shape_of(booked(shuffled))


@given(spendings, st.lists(st.tuples(st.integers(0, 10**6), cents), max_size=8), st.randoms(use_true_random=False))
def test_giving_back_restores_the_books(spending: Spending, amounts: list[tuple[int, float]], random: Random) -> None:
    """Held amounts are a sum of their own: given back in any order, nothing of them is left, and nothing else was moved."""
    books = booked([spending])
    before = shape_of(books)
    for tokens, cost in amounts:
        books.hold(tokens, cost)
    held = books.held_tokens, books.held_cost
    random.shuffle(amounts)
    for tokens, cost in amounts:
        books.hold(-tokens, -cost)

    assert (sum(tokens for tokens, _ in amounts), sum(cost for _, cost in amounts)) == held
    assert before == shape_of(books)


def test_no_call_costs_nothing() -> None:
    """An account that nothing was booked on knows its cost: it is 0."""
    books = Books()

    assert (0.0, NO_USAGE, 0) == (books.cost, books.tally.total(), books.charged_tokens)


def test_a_spending_survives_being_written_down() -> None:
    """A state that is taken up again settles what the call before the crash used."""
    spending = Spending(Usage(1, None, 3, 4, None, False), None, 7, 0.125)

    assert spending == decode(encode(spending), Spending)


def test_what_two_calls_used_together() -> None:
    """Class by class; the cost is known where both are."""
    one = Spending(USAGE, 0.5, 7, 0.25)
    both, unknown = one + Spending(USAGE, 0.25, 3, 0.5), one + Spending(USAGE, None, 3, 0.5)

    assert Spending(USAGE + USAGE, 0.75, 10, 0.75) == both
    assert Spending(USAGE + USAGE, None, 10, 0.75) == unknown == Spending(USAGE, None, 3, 0.5) + one
