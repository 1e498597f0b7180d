"""How far a decode is continued, and how patiently."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from ..errors import SpecError
from ..limits import above_zero, at_least_one

__all__ = ("Policy",)


def _at_least(least: int) -> Callable[[object, attrs.Attribute[Any], object], None]:
    def check(_instance: object, field: attrs.Attribute[Any], value: object) -> None:
        if type(value) is not int or value < least:
            raise SpecError(f"{field.name} must be an integer >= {least}; it is {value!r}")

    return check


def _seconds(instance: object, field: attrs.Attribute[Any], value: object) -> None:
    if value is None:
        raise SpecError(f"{field.name} must be a number above 0; it is None")
    above_zero(instance, field, value)


@attrs.frozen(kw_only=True)
class Policy:
    """Bounds of one decode (D4). Raises `SpecError` for what cannot be a bound."""

    max_hops: int = attrs.field(default=32, validator=_at_least(0))
    """Continuations: requests that get further than the one before. 0: the first request is all."""
    max_reconnects: int = attrs.field(default=3, validator=_at_least(0))
    """Requests in a row that may repeat the same token because the one before broke off."""
    max_barren_hops: int = attrs.field(default=2, validator=_at_least(1))
    """Hops in a row without any output, after which the decode is given up."""
    max_output_tokens: int | None = attrs.field(default=None, validator=at_least_one)
    """Output of all hops together, thoughts included, after which no further hop is begun."""
    reconnect_base_seconds: float = attrs.field(default=0.2, validator=_seconds)
    """The longest wait before the first reconnect; it doubles with each further one."""
    reconnect_cap_seconds: float = attrs.field(default=5.0, validator=_seconds)
    """The longest wait before any reconnect."""

    def reconnect_seconds(self, attempt: int, fraction: float) -> float:
        """How long to wait before reconnect `attempt` (0, 1, ...): `fraction`, from 0 to 1, of the longest wait."""
        # 2**64 seconds is beyond every cap, and beyond it a float would overflow.
        return fraction * min(self.reconnect_cap_seconds, self.reconnect_base_seconds * 2.0 ** min(attempt, 64))
