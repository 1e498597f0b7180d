"""Whether a request that failed is sent again, and when. Pure: no clock, no dice, no I/O.

The server's word goes first: how long it wants to be left alone (`retry-after-ms`, `Retry-After`, or Google's
`RetryInfo` in the error's body), and whether to come back at all (`x-should-retry`). Where it says nothing, the wait
doubles from half a second to eight, less a random part, so that callers that failed together do not return together.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from protocol.errors import ModelError

from ._json import items, mapping, string

__all__ = ("asked_seconds", "retry_wait", "should_retry", "wait_in_body")

_BASE_SECONDS = 0.5
_MOST_SECONDS = 8.0
_RANDOM_PART = 0.25
_DURATION = re.compile(r"(\d+(?:\.\d+)?)s")


def retry_wait(error: ModelError, *, failures: int, retries: int, left_seconds: float, draw: float) -> float | None:
    """How many seconds to wait before the request is sent again; `None` if it is not.

    Args:
        error: What the request failed with. Only one that is `retryable` is worth a second try.
        failures: How often it has failed, this time included.
        retries: How often it may be sent again.
        left_seconds: What is left of the whole call: a wait that would not end within it is not begun.
        draw: A random number from 0 to 1.
    """
    if not error.retryable or failures > retries:
        return None
    seconds = error.retry_after_seconds
    if seconds is None:
        seconds = min(_BASE_SECONDS * 2.0 ** min(failures - 1, 10), _MOST_SECONDS) * (1 - _RANDOM_PART * draw)
    return seconds if seconds < left_seconds else None


def asked_seconds(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """How long a server asks to be left alone, by its headers (names in lower case); `None` if it does not.

    A date is read against the server's own `Date`, since its clock may differ from this machine's.
    """
    milliseconds = _seconds(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after", "").strip()
    seconds = _seconds(text)
    if seconds is not None:
        return seconds
    until = _date(text)
    if until is None:
        return None
    since = _date(headers.get("date", "")) or now or datetime.now(UTC)
    return max(0.0, (until - since).total_seconds())


def wait_in_body(error: Mapping[str, Any]) -> float | None:
    """How long a server asks to be left alone, by the `RetryInfo` among the details of its error."""
    for entry in items(error.get("details")):
        detail = mapping(entry)
        if string(detail.get("@type")).endswith("google.rpc.RetryInfo"):
            duration = _DURATION.fullmatch(string(detail.get("retryDelay")))
            return _seconds(duration[1]) if duration else None
    return None


def should_retry(headers: Mapping[str, str]) -> bool | None:
    """Whether the server itself says that another try is worth it; `None` if it does not say."""
    return {"true": True, "false": False}.get(headers.get("x-should-retry", "").strip().lower())


def _seconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return date if date.tzinfo is not None else date.replace(tzinfo=UTC)
