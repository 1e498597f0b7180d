"""Commands that are done once, however often they are sent: what was accepted, under the clients' own keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import attrs
import msgspec

from .codec import digest_of

__all__ = ("Answered", "IdemConflict", "IdempotencyStore")


class IdemConflict(ValueError):
    """Another command was accepted under this key."""


class Answered(msgspec.Struct, frozen=True):
    """A command that was accepted, as it is written down."""

    principal: str
    """Who gave it."""
    method: str
    idem: str
    """The key that it was given under."""
    digest: str
    """Of its content."""
    reply: msgspec.Raw
    """What it was answered with."""


@attrs.frozen
class _Stored:
    digest: str
    value: Any


def _nothing(_answered: Answered) -> None:
    return


@attrs.define(eq=False)
class IdempotencyStore:
    """Accepted commands by (principal, method, `idem`): one store for each agent, which lives as long as it does.

    A refusal is not stored: the key stays free. Of each principal the oldest go when there are more than `keep`.
    """

    keep: int = 4096
    on_answer: Callable[[Answered], object] = _nothing
    """Called with each answer: whoever writes it down."""
    _stored: dict[str, dict[tuple[str, str], _Stored]] = attrs.field(factory=dict[str, dict[tuple[str, str], _Stored]])

    def find(self, principal: str, method: str, idem: str, content: Any) -> Any:
        """What the same command came to: its encoded reply (`msgspec.Raw`), or what it is under way as; `None`: it is new.

        Raises `IdemConflict` if it was another command.
        """
        stored = self._stored.get(principal, {}).get((method, idem))
        if stored is None:
            return None
        if stored.digest != _digest(content):
            raise IdemConflict(f"{method}: another command was accepted under this idem: use a new one")
        return stored.value

    def begin(self, principal: str, method: str, idem: str, content: Any, value: object) -> None:
        """Store what stands for a command that is under way, until it is answered or has come to nothing."""
        self._put(principal, method, idem, _Stored(_digest(content), value))

    def answer(self, principal: str, method: str, idem: str, content: Any, reply: bytes) -> Answered:
        """Store the encoded reply of a command that was accepted."""
        answered = Answered(principal, method, idem, _digest(content), msgspec.Raw(reply))
        self._put(principal, method, idem, _Stored(answered.digest, answered.reply))
        self.on_answer(answered)
        return answered

    def drop(self, principal: str, method: str, idem: str) -> None:
        """Free a key again: what was stored has come to nothing."""
        self._stored.get(principal, {}).pop((method, idem), None)

    def answers(self) -> Iterator[Answered]:
        """All that were answered, of each principal the oldest first."""
        for principal, stored in self._stored.items():
            for (method, idem), one in stored.items():
                if isinstance(one.value, msgspec.Raw):
                    yield Answered(principal, method, idem, one.digest, one.value)

    def take_up(self, answers: Iterable[Answered]) -> None:
        """Know of commands that were answered before the process began."""
        for one in answers:
            self._put(one.principal, one.method, one.idem, _Stored(one.digest, one.reply))

    def _put(self, principal: str, method: str, idem: str, one: _Stored) -> None:
        stored = self._stored.setdefault(principal, {})
        stored[method, idem] = one
        while len(stored) > self.keep:
            del stored[next(iter(stored))]


def _digest(content: Any) -> str:
    """Equal for what is equal as JSON: 1 and 1.0 are one number, the order of keys says nothing."""
    return digest_of(_plain(content))


def _plain(value: Any) -> Any:
    match value:
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {key: _plain(item) for key, item in cast("dict[str, Any]", value).items()}
        case list():
            return [_plain(item) for item in cast("list[Any]", value)]
        case _:
            return value
