"""What a whole call may take: how often it is repeated, what becomes of a reply that breaks off, how long it lasts."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal, TypeAlias

import attrs

from protocol.errors import SpecError

__all__ = ("CallPolicy", "Delivery")

Delivery: TypeAlias = Literal["strict", "replay"]
"""What becomes of a reply that breaks off after some of it was reported: `strict` raises, `replay` starts over."""


def _count(_: object, _field: object, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise SpecError(f"retries must be a number from 0 up; it is {value!r}")


def _known(_: object, _field: object, value: object) -> None:
    if value not in {"strict", "replay"}:
        raise SpecError(f'delivery must be "strict" or "replay"; it is {value!r}')


def _positive(_: object, _field: object, value: float) -> None:
    if not value > 0:
        raise SpecError(f"call_timeout_seconds must be more than 0; it is {value!r}")


@attrs.frozen(kw_only=True)
class CallPolicy:
    """What a call may take. Raises `SpecError` for what cannot be right."""

    retries: int = attrs.field(default=2, validator=_count)
    """How often a request is sent again."""
    delivery: Delivery = attrs.field(default="strict", validator=_known)
    call_seconds: float = attrs.field(default=3600.0, validator=_positive)
    """For the whole call: requests, replies, waits, and the wait for a connection."""
    draw: Callable[[], float] = attrs.field(default=random.random, eq=False)  # noqa: S311  it spreads callers out
    """Random numbers from 0 to 1, for the waits."""
