"""What is said before and after a run, on stderr: who answers, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable

from protocol.errors import RunCancelledError, RunError
from protocol.model import Model
from protocol.result import RunResult

from ._screen import Screen
from ._status import ANSWERED, status_of
from ._style import harmless
from ._words import end_line, hint_for, summary_line

__all__ = ("closing_notes", "open_notes")


async def open_notes(screen: Screen, model: Model, cautions: Iterable[str], *, prefix: str = "") -> None:
    """Say who answers, and what the limits cannot do together; `prefix` says for which agent."""
    banner = getattr(model, "banner", f"Model: {model.name}")
    await screen.note(screen.style.dim(harmless(f"{prefix}{banner}")))
    for caution in cautions:
        await screen.note(screen.style.yellow(f"{prefix}note: {caution}"))


async def closing_notes(screen: Screen, end: RunResult | RunError) -> None:
    """Say how the run ended, what to try if it failed, and what it used."""
    style = screen.style
    if isinstance(end, RunError):
        result = end.partial
        if isinstance(end, RunCancelledError):
            await screen.note(style.yellow(f"Cancelled: {harmless(str(end))}."))
        else:
            await screen.note(style.red(f"onward: {harmless(_what_failed(end))}"))
            hint = hint_for(end.__cause__)
            if hint:
                await screen.note(hint)
    else:
        result = end
        line = end_line(end)
        if line:
            await screen.note(style.dim(line) if status_of(end) == ANSWERED else style.yellow(harmless(line)))
    await screen.note(style.dim(summary_line(result)))


def _what_failed(error: RunError) -> str:
    """The run's error, and its cause if the text does not say it already."""
    text, cause = str(error), str(error.__cause__ or "")
    return text if cause in text else f"{text}: {cause}"
