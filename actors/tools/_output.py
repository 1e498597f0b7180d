"""A tool's return value, or what it raised, as the text that a model reads.

Such text enters the history, every later request and every event. So it is bounded, and encodes as UTF-8, whatever
the tool does: a bad value spoils one result, never the session.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import msgspec

from protocol.errors import OnwardError, ToolError
from protocol.text import clean, cut_middle

from ._bound import ArgumentsInvalid
from ._plain import Unfit, bytes_text, plain

__all__ = ("NO_OUTPUT", "OutputUnfit", "render_error", "render_output")

NO_OUTPUT = "(no output)"
"""What stands for `None` and for empty text: providers refuse a result without content."""

_MOST_ERROR_CHARS = 2000
_MARKER_CHARS = 100  # what `cut_middle` adds
_MOST_LEAVES = 10
_FOREIGN = (Exception, SystemExit)
"""What a value's own code may raise: an exit that it asks for is no more than a failure to be read."""
_name_of = type.__dict__["__name__"].__get__
"""A class's own name, whatever its metaclass makes of it."""


class OutputUnfit(OnwardError):
    """A tool returned what no text can stand for. The text names the tool and the type; the session is unharmed."""


def render_output(value: object, *, tool_name: str, max_chars: int) -> str:
    """Return `value` as text: a string as it is, `None` and `""` as `(no output)`, anything else as JSON.

    Dates, Decimals, UUIDs, paths and enums are written as text, sets as sorted lists, attrs and dataclass values as
    objects, bytes as their UTF-8 text or as `base64:...`, NaN and the infinities by name; lone surrogates become
    U+FFFD. More than `max_chars` characters are cut in the middle, with a marker that states the full length.

    Raises `OutputUnfit` for what has no such form (a class, a generator, a value that contains itself, that nests more
    than 100 levels or that would take more than about 100 million characters), and nothing else.
    """
    try:
        return _rendered(value, max_chars)
    except Unfit as error:
        raise OutputUnfit(clean(f"Tool {tool_name!r} returned {error}; it must return text or JSON values")) from error
    except _FOREIGN as error:  # the value's own code failed while it was read
        text = f"Tool {tool_name!r} returned a value of type {_name_of(type(value))} that cannot be read: "
        raise OutputUnfit(clean(text + render_error(error))) from error


def render_error(error: BaseException) -> str:
    """Return what a model is told of an exception that a tool raised, in at most 2000 characters.

    A `ToolError` speaks for itself; another exception is `TypeName: message`, a group is its leaves.
    """
    leaves = _leaves(error)
    lines = [_error_line(leaf) for leaf in itertools.islice(leaves, _MOST_LEAVES)]
    more = sum(1 for _ in leaves)
    if len(lines) > 1:
        lines.insert(0, f"{len(lines) + more} errors:")
    if more:
        lines.append(f"and {more} more")
    return clean(cut_middle("\n".join(lines), _MOST_ERROR_CHARS - _MARKER_CHARS))


def _rendered(value: object, max_chars: int) -> str:
    if type(value) is str:
        return _text(value, max_chars)
    if value is None:
        return NO_OUTPUT
    if type(value) is int and -(2**53) < value < 2**53:
        return _text(str(value), max_chars)
    if isinstance(value, bytes | bytearray | memoryview):
        return _text(bytes_text(value), max_chars)  # pyright: ignore[reportUnknownArgumentType]
    made = plain(value)
    if made is None:
        return NO_OUTPUT
    return _text(made if isinstance(made, str) else msgspec.json.encode(made).decode(), max_chars)


def _text(text: str, max_chars: int) -> str:
    # Cut first: to clean a long text would cost more than all the rest. What a cut leaves of a pair is replaced.
    return clean(cut_middle(text, max_chars)) if text else NO_OUTPUT


def _leaves(error: BaseException) -> Iterator[BaseException]:
    waiting = [error]
    while waiting:
        leaf = waiting.pop()
        if isinstance(leaf, BaseExceptionGroup):
            waiting.extend(reversed(leaf.exceptions))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
        else:
            yield leaf


def _error_line(error: BaseException) -> str:
    name = _name_of(type(error))
    try:
        # Each line is cut before they are joined: a message may be megabytes, and of a class that misleads about it.
        message = cut_middle(str.__str__(str(error)), _MOST_ERROR_CHARS)  # noqa: PLC2801
    except _FOREIGN:  # an exception whose text cannot be made still has a name
        message = ""
    # These three are written for the model.
    if message and isinstance(error, ToolError | ArgumentsInvalid | OutputUnfit):
        return message
    return f"{name}: {message}" if message else name
