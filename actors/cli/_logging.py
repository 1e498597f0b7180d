"""Where log lines of a server go: to one descriptor, whoever logs them, and by one format.

Other packages are heard from `warning` on: what they say below that may hold addresses, headers and bodies. A line is
written at once or not at all: a reader that pauses holds up nobody, and is told how many lines it did not get.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Generator, MutableMapping
from typing import Any

import structlog

from ..logs import FIELDS, ROOT, add_ids
from ._logging_options import Logging
from ._now import write_now
from ._style import harmless, style_for

__all__ = ("logs_to",)


@contextlib.contextmanager
def logs_to(descriptor: int, options: Logging) -> Generator[None]:
    """Inside the block, write log lines there: those of the house, of other packages, and of tools that use structlog."""
    root, own = logging.getLogger(), logging.getLogger(ROOT)
    before = root.level, own.level
    for_people = options.format == "human" or (options.format == "auto" and os.isatty(descriptor))
    handler = _LineHandler(descriptor)
    handler.setFormatter(_formatter(descriptor, for_people=for_people))
    level = logging.getLevelNamesMapping()[options.level.upper()]
    root.addHandler(handler)
    root.setLevel(max(level, logging.WARNING))
    own.setLevel(level)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before[0])
        own.setLevel(before[1])
        structlog.reset_defaults()


def _formatter(descriptor: int, *, for_people: bool) -> logging.Formatter:
    """No variables of a traceback's frames are written: they may hold anything."""
    renderers: list[Any] = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    if for_people:
        colours = style_for(is_terminal=os.isatty(descriptor)).colours
        plain = structlog.dev.plain_traceback
        renderers = [_tamed, structlog.dev.ConsoleRenderer(colors=colours, exception_formatter=plain)]
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[_from_record],
        processors=[
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            add_ids,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            *renderers,
        ],
    )


def _from_record(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Take the fields of a line of the house out of its record: its text holds them too."""
    event.update(getattr(event["_record"], FIELDS, {}))
    return event


def _tamed(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """What came from elsewhere may not drive the terminal."""
    return {key: harmless(value) if isinstance(value, str) else value for key, value in event.items()}


class _LineHandler(logging.Handler):
    """Writes a line if it can be written now. It is called from the threads of tools too."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._lost = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        try:
            line = f"{self.format(record)}\n"
        except Exception:  # noqa: BLE001  what was logged cannot be shown: that is no reason to end the program
            line = f"a log line of {record.name} cannot be shown\n"
        if self._lost:
            line = f"{self._lost} log lines were lost: nobody read them\n{line}"
        if write_now(self._descriptor, line):
            self._lost = 0
        else:
            self._lost += 1
