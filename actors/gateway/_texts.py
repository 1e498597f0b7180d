"""Bounds of what a person may write."""

from __future__ import annotations

from protocol.wire import WireError

from ._session import Session

__all__ = ("check_text",)


def check_text(session: Session, field: str, text: str | None) -> None:
    """Raise `WireError` (`too_large`) for a text that is longer than a person's may be."""
    most = session.limits.text_bytes
    if text is not None and len(text) > most // 4 and len(text.encode()) > most:
        raise WireError(
            "too_large", f"{field} is longer than {most} bytes: say it in fewer words, or in several messages"
        )
