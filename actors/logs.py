"""What the house logs: events with fields, through structlog, to stdlib loggers that are named by module.

Where log lines go is for the host to say: nothing is configured here. A line's text is the event and its fields; the
fields stand in the record's `onward` too, for whoever writes them in a way of his own. To every line are added the ids of
what its task works for, and what the host has bound by `structlog.contextvars`.

No line holds a prompt, a reply, an argument or a key, and there is none for a piece of a reply.

structlog loads asyncio: it is imported with the first line that somebody wants.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Generator, Mapping, MutableMapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, final

from protocol.text import cut_middle

__all__ = ("FIELDS", "ROOT", "EventLogger", "add_ids", "bound", "get_logger")

ROOT = "onward"
"""The logger above all of the house."""
FIELDS = "onward"
"""The attribute of a log record that holds the event (`event`) and its fields."""
_LONGEST = 500
_PLAIN = re.compile(r"[\w./:@+-]+")
_ids: ContextVar[Mapping[str, str]] = ContextVar("log_ids", default=MappingProxyType[str, str]({}))


@final
class EventLogger:
    """Logs events of one module. Made by `get_logger()`."""

    __slots__ = ("_bound", "_logger")

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)
        self._bound: Any = None

    def info(self, event: str, **fields: object) -> None:
        """Something has happened, as it should."""
        self._log(logging.INFO, event, fields)

    def warning(self, event: str, **fields: object) -> None:
        """Something is not as it should be, and goes on all the same."""
        self._log(logging.WARNING, event, fields)

    def error(self, event: str, **fields: object) -> None:
        """Something has failed. `exc_info` is the exception, where it is not being handled."""
        self._log(logging.ERROR, event, fields)

    def exception(self, event: str, **fields: object) -> None:
        """The same, inside an `except`: with its exception."""
        self._log(logging.ERROR, event, {"exc_info": True, **fields})

    def _log(self, level: int, event: str, fields: Mapping[str, object]) -> None:
        if self._logger.isEnabledFor(level):
            if self._bound is None:
                self._bound = _bound_to(self._logger)
            self._bound.log(level, event, **fields)


def get_logger(module: str) -> EventLogger:
    """The logger of a module of the house: that of `actors.gateway._front` is `onward.gateway.front`."""
    parts = [part.lstrip("_") for part in module.split(".")[1:]]
    return EventLogger(".".join([ROOT, *parts]))


@contextlib.contextmanager
def bound(**ids: str | None) -> Generator[None]:
    """Add these ids to all that is logged inside the block, and in the tasks started there; `None` takes one away."""
    merged = {**_ids.get(), **ids}
    token = _ids.set({name: value for name, value in merged.items() if value is not None})
    try:
        yield
    finally:
        _ids.reset(token)


def add_ids(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A structlog processor: adds the ids of what the present task works for, to log lines of a host's own.

    They are `agent` and `agent_name`, `run`, `request` (while a provider is asked), and `connection` in the gateway.
    """
    for name, value in _ids.get().items():
        event.setdefault(name, value)
    return event


def _bound_to(logger: logging.Logger) -> Any:
    import structlog

    return structlog.wrap_logger(
        logger,
        processors=[structlog.contextvars.merge_contextvars, add_ids, _as_record],
        wrapper_class=structlog.stdlib.BoundLogger,
    )


def _as_record(_logger: object, _method: str, event: MutableMapping[str, Any]) -> tuple[tuple[str], dict[str, Any]]:
    """What the stdlib logger is called with."""
    exc_info = event.pop("exc_info", None)
    fields = [f"{name}={_shown(value)}" for name, value in event.items() if name != "event"]
    text = " ".join([event["event"], *fields])
    return (text,), {"exc_info": exc_info, "extra": {FIELDS: dict(event)}}


def _shown(value: object) -> str:
    """A value in a line of text: nothing in it can end the line, or be taken for another field."""
    text = cut_middle(str(value), _LONGEST)
    return text if _PLAIN.fullmatch(text) else repr(text)
