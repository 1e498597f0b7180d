"""Commands that are done once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from protocol.codec import decode, encode
from protocol.idem import Answered, IdemConflict, IdempotencyStore

CONTENT = {"agent": "a", "limits": {"x": 1, "y": [1, 2.5]}, "idem": "i"}
DONE = msgspec.Raw(b'"done"')


def store(keep: int = 100) -> IdempotencyStore:
    one = IdempotencyStore(keep)
    one.answer("ada", "run.start", "i", CONTENT, b'"done"')
    return one


def test_the_same_command() -> None:
    """What it came to, however its keys are ordered and its numbers written."""
    same = {"idem": "i", "limits": {"y": [1.0, 2.5], "x": 1.0}, "agent": "a"}

    assert DONE == store().find("ada", "run.start", "i", CONTENT) == store().find("ada", "run.start", "i", same)


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
    with pytest.raises(IdemConflict, match=r"run\.start: another command was accepted under this idem"):
        one.find("ada", "run.start", "i", content)

    assert DONE == one.find("ada", "run.start", "i", CONTENT)


@pytest.mark.parametrize("key", [("bob", "run.start", "i"), ("ada", "run.steer", "i"), ("ada", "run.start", "j")])
def test_another_key(key: tuple[str, str, str]) -> None:
    """A key is of one principal, one method and one name."""
    assert store().find(*key, {}) is None


def test_what_is_under_way() -> None:
    """It is found as what stands for it; then as its answer, or not at all where it has come to nothing."""
    one = IdempotencyStore()
    promises = object(), object()
    for name, promise in zip("ij", promises, strict=True):
        one.begin("ada", "run.start", name, CONTENT, promise)
    under_way = [one.find("ada", "run.start", name, CONTENT) for name in "ij"]
    written = list(one.answers())
    one.answer("ada", "run.start", "i", CONTENT, b'"done"')
    one.drop("ada", "run.start", "j")
    one.drop("bob", "run.start", "i")

    assert ([*promises], []) == (under_way, written)
    assert DONE == one.find("ada", "run.start", "i", CONTENT)
    assert one.find("ada", "run.start", "j", {}) is None


def test_it_is_bounded_for_each() -> None:
    """The oldest of a principal go, and nobody else's."""
    one = store(keep=3)
    for number in range(4):
        one.answer("bob", "m", f"i{number}", number, encode(number))
    left = [one.find("bob", "m", f"i{number}", number) for number in range(4)]

    assert [None, msgspec.Raw(b"1"), msgspec.Raw(b"2"), msgspec.Raw(b"3")] == left
    assert DONE == one.find("ada", "run.start", "i", CONTENT)


def test_what_was_written_down_is_known_again() -> None:
    """Each answer is told once, when it is given; a store that takes them up knows them, and conflicts with others."""
    told: list[Answered] = []
    one = IdempotencyStore(on_answer=told.append)
    one.answer("ada", "run.start", "i", CONTENT, b'"done"')
    other = IdempotencyStore(on_answer=told.append)
    other.take_up([decode(encode(answered), Answered) for answered in told])

    assert told == list(one.answers()) == list(other.answers())
    assert DONE == other.find("ada", "run.start", "i", CONTENT)
    with pytest.raises(IdemConflict):
        other.find("ada", "run.start", "i", {})
