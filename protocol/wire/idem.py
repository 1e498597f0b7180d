"""Commands that are done once, however often they are sent: what was accepted, under the clients' own keys."""

from __future__ import annotations

from typing import Any, Generic, TypeVar, cast

import attrs

from ..codec import digest_of
from .envelope import WireError

__all__ = ("IdempotencyStore",)

T = TypeVar("T")


@attrs.frozen
class _Stored(Generic[T]):
    digest: str
    value: T


@attrs.define(eq=False)
class IdempotencyStore(Generic[T]):
    """Accepted commands by (principal, method, `idem`): one store for each agent, which lives as long as it does.

    A refusal is not stored: the key stays free. Of each principal the oldest go when there are more than `keep`.
    """

    keep: int = 4096
    _stored: dict[str, dict[tuple[str, str], _Stored[T]]] = attrs.field(
        factory=dict[str, dict[tuple[str, str], _Stored[T]]]
    )

    def find(self, principal: str, method: str, idem: str, content: Any) -> T | None:
        """What the same command came to before. Raises `WireError` (`idem_conflict`) if it was another command."""
        stored = self._stored.get(principal, {}).get((method, idem))
        if stored is None:
            return None
        if stored.digest != _digest(content):
            raise WireError("idem_conflict", f"{method}: another command was accepted under this idem: use a new one")
        return stored.value

    def put(self, principal: str, method: str, idem: str, content: Any, value: T) -> None:
        """Store what a command came to that was accepted."""
        stored = self._stored.setdefault(principal, {})
        stored[method, idem] = _Stored(_digest(content), value)
        while len(stored) > self.keep:
            del stored[next(iter(stored))]

    def drop(self, principal: str, method: str, idem: str) -> None:
        """Free a key again: what was stored has come to nothing."""
        self._stored.get(principal, {}).pop((method, idem), None)


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
