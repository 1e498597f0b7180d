"""Commands that are done once."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.wire import WireError
from protocol.wire.idem import IdempotencyStore

CONTENT = {"agent": "a", "limits": {"x": 1, "y": [1, 2.5]}, "idem": "i"}


def store(keep: int = 100) -> IdempotencyStore[str]:
    one = IdempotencyStore[str](keep)
    one.put("ada", "run.start", "i", CONTENT, "done")
    return one


def test_the_same_command() -> None:
    """What it came to, however its keys are ordered and its numbers written."""
    same = {"idem": "i", "limits": {"y": [1.0, 2.5], "x": 1.0}, "agent": "a"}

    assert "done" == store().find("ada", "run.start", "i", CONTENT) == store().find("ada", "run.start", "i", same)


@pytest.mark.parametrize(
    "content",
    [
        {},
        {**CONTENT, "more": None},
        {**CONTENT, "limits": {"x": True, "y": [1, 2.5]}},
        {**CONTENT, "limits": {"x": 1, "y": [2.5, 1]}},
        {**CONTENT, "limits": {"x": "1", "y": [1, 2.5]}},
    ],
)
def test_another_command(content: Any) -> None:
    """It is a conflict, whatever differs; what was stored stays."""
    one = store()
    with pytest.raises(WireError) as caught:
        one.find("ada", "run.start", "i", content)

    assert "idem_conflict" == caught.value.data["code"]
    assert "done" == one.find("ada", "run.start", "i", CONTENT)


@pytest.mark.parametrize("key", [("bob", "run.start", "i"), ("ada", "run.steer", "i"), ("ada", "run.start", "j")])
def test_another_key(key: tuple[str, str, str]) -> None:
    """A key is of one principal, one method and one name."""
    assert store().find(*key, {}) is None


def test_what_came_to_nothing() -> None:
    """Its key is free again."""
    one = store()
    one.drop("ada", "run.start", "i")
    one.drop("bob", "run.start", "i")

    assert one.find("ada", "run.start", "i", {}) is None


def test_it_is_bounded_for_each() -> None:
    """The oldest of a principal go, and nobody else's."""
    one = store(keep=3)
    for number in range(4):
        one.put("bob", "m", f"i{number}", number, str(number))
    left = [one.find("bob", "m", f"i{number}", number) for number in range(4)]

    assert [None, "1", "2", "3"] == left
    assert "done" == one.find("ada", "run.start", "i", CONTENT)
