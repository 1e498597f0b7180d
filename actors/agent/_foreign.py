"""Errors of code that is not ours: models, tools, providers, conditions, callbacks.

Whatever they raise is their failure, an exit too; a cancel and an interrupt are not, and pass. Groups count by what is
in them.
"""

from __future__ import annotations

from typing import Any, cast

__all__ = ("FOREIGN", "as_failure", "leaves_of")

FOREIGN = (Exception, SystemExit, BaseExceptionGroup)
"""What to catch around foreign code; `as_failure` says whether it may be kept."""


def as_failure(error: BaseException) -> Exception | None:
    """The failure that a foreign error is, or `None` if it must be raised again: it holds a cancel or an interrupt."""
    kept: BaseException = error
    while isinstance(kept, BaseExceptionGroup):
        inner: list[BaseException] = list(cast("BaseExceptionGroup[Any]", kept).exceptions)
        if len(inner) > 1:
            break
        kept = inner[0]
    leaves = leaves_of(cast("BaseExceptionGroup[Any]", kept)) if isinstance(kept, BaseExceptionGroup) else [kept]
    if not all(isinstance(leaf, (Exception, SystemExit)) for leaf in leaves):
        return None
    return _kept(cast("BaseException", kept))


def leaves_of(group: BaseExceptionGroup[Any]) -> list[BaseException]:
    """The errors in a group, those of its groups included."""
    found: list[BaseException] = []
    waiting: list[BaseException] = [group]
    while waiting:
        error = waiting.pop()
        if isinstance(error, BaseExceptionGroup):
            waiting.extend(reversed(cast("BaseExceptionGroup[Any]", error).exceptions))
        else:
            found.append(error)
    return found


def _kept(error: BaseException) -> Exception:
    if isinstance(error, Exception):
        return error
    failure = RuntimeError(f"{type(error).__name__}: {error}")
    failure.__cause__ = error
    return failure
