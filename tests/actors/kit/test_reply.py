"""The slot for one answer."""

from __future__ import annotations

from typing import Any

import pytest

from actors.kit import Reply


def test_it_is_set_once() -> None:
    """The first answer stands; later ones are ignored and told that nobody took them."""
    reply: Reply[int] = Reply()

    assert [True, False, False] == [reply.set(1), reply.set(2), reply.fail(ValueError())]
    assert 1 == reply.result()
    assert reply.done


def test_a_failure_is_raised_at_the_asker() -> None:
    """The very error it was failed with."""
    reply: Reply[int] = Reply()
    error = ValueError("broken")
    reply.fail(error)
    with pytest.raises(ValueError, match="broken") as caught:
        reply.result()

    assert error is caught.value
    assert not reply.set(1)


def test_none_is_an_answer() -> None:
    """An ask for nothing but its being done has an answer too."""
    reply: Reply[None] = Reply()
    reply.set(None)

    assert reply.done
    assert None is reply.result()


def test_without_an_answer_there_is_no_result() -> None:
    """Reading too early is an error of the one who reads."""
    with pytest.raises(RuntimeError, match="no answer yet"):
        Reply[int]().result()


def test_the_waiter_is_told_once() -> None:
    """`on_done` calls when the answer comes, and not again for one that came too late."""
    reply: Reply[int] = Reply()
    told: list[int] = []
    reply.on_done(lambda: told.append(reply.result()))
    before = list(told)
    reply.set(1)
    reply.set(2)

    assert [] == before
    assert [1] == told


def test_a_waiter_that_comes_late_is_told_at_once() -> None:
    """An answer that was there before anybody looked is not missed."""
    reply: Reply[int] = Reply()
    reply.set(1)
    told: list[int] = []
    reply.on_done(lambda: told.append(reply.result()))

    assert [1] == told


def test_setting_says_whether_anybody_waits() -> None:
    """An answer to an asker that has left is known to be lost; it can still be looked into."""
    reply: Reply[int] = Reply()
    reply.drop()

    assert not reply.set(1)
    assert 1 == reply.result()
    assert reply.dropped


def test_leaving_stops_the_work_once() -> None:
    """`on_drop` calls when the asker leaves; leaving twice is once."""
    reply: Reply[int] = Reply()
    stops: list[str] = []
    reply.on_drop(lambda: stops.append("stop"))
    before = list(stops)
    reply.drop()
    reply.drop()

    assert [] == before
    assert ["stop"] == stops


def test_work_for_one_that_has_left_is_stopped_at_once() -> None:
    """An actor that looks after the asker left learns of it."""
    reply: Reply[int] = Reply()
    reply.drop()
    stops: list[str] = []
    reply.on_drop(lambda: stops.append("stop"))

    assert ["stop"] == stops


def test_who_keeps_it_is_told_before_who_waits() -> None:
    """A mailbox has forgotten an ask by the time its asker goes on."""
    order: list[str] = []

    class Keeper:
        title = "keeper"

        def here(self) -> None:
            return None

        def forget(self, _: Reply[Any]) -> None:
            order.append("keeper")

    reply: Reply[int] = Reply()
    reply.kept_by(Keeper())
    reply.on_done(lambda: order.append("waiter"))
    reply.set(1)

    assert ["keeper", "waiter"] == order
