"""`Interactions.create()`: the assertions on times that the provider's own client ships with.

A number in brackets is that of the assertion in docs/decisions/0012.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from protocol.errors import ContinuationInterrupted, ModelTimeout, SpecError
from tests.actors.models._line import ASK, Line, after, line_to, whole
from tests.protocol.decode.speech import usage


@pytest.fixture
async def line(nursery: trio.Nursery) -> Line:
    return line_to(nursery)


@pytest.mark.parametrize("seconds", [0, -1, math.nan, True])
async def test_a_time_is_more_than_nothing(line: Line, seconds: Any) -> None:
    """[31] Anything else is refused before anything is sent."""
    with pytest.raises(SpecError, match="timeout_seconds must be a number above 0"):
        await line.client.create(**ASK, timeout_seconds=seconds)

    assert 0 == line.count


async def test_the_time_is_that_of_the_whole_call(line: Line, autojump_clock: MockClock) -> None:
    """[32] What one hop takes, the next ones do not have."""
    line.answers(*[after(10, whole(f"i{n}", "A", token=f"t{n}")) for n in (1, 2)], after(45, whole("i3")))
    with pytest.raises(ContinuationInterrupted) as caught:
        await line.client.create(**ASK, timeout_seconds=60.0)

    assert "deadline" == caught.value.reason
    assert 60.0 == pytest.approx(trio.current_time(), abs=0.5)


async def test_what_came_in_time_is_in_the_error(line: Line, autojump_clock: MockClock) -> None:
    """[33] The merged beginning and its usage; the cause is the timeout."""
    line.answers(
        whole("i1", "A ", token="t1", usage=usage(10, 20)),
        whole("i2", "B ", token="t2", usage=usage(20, 20)),
        after(99, whole("i9")),
    )
    with pytest.raises(ContinuationInterrupted) as caught:
        await line.client.create(**ASK, timeout_seconds=5)

    error = caught.value

    assert ("deadline", "t2", "A B ") == (error.reason, error.token, (error.interaction or {})["output_text"])
    assert 70 == (error.usage or {})["total_tokens"]
    assert isinstance(error.__cause__, ModelTimeout)


async def test_in_the_first_request_the_timeout_is_plain(line: Line, autojump_clock: MockClock) -> None:
    """[33] Nothing was gained."""
    line.answers(after(99, whole("i9")))
    with pytest.raises(ModelTimeout, match="longer than 5 s"):
        await line.client.create(**ASK, timeout_seconds=5)


async def test_times_of_the_connection_are_per_hop(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    """[34] They begin anew with each."""
    line = line_to(nursery, first_byte_timeout_seconds=15.0)
    line.answers(after(10, whole("i1", "A", token="t")), after(10, whole("i2", "B")))

    assert ["i1", "i2"] == (await line.client.create(**ASK))["continuation_ids"]
    assert 20 == trio.current_time()


async def test_a_hop_may_take_its_time(line: Line, autojump_clock: MockClock) -> None:
    """A whole reply begins when all of it is there: that takes minutes."""
    line.answers(after(500, whole("i1", "A")))

    assert "A" == (await line.client.create(**ASK))["output_text"]
