"""What is wrong with a host file, or odd: gathered while it is read, and told with line and key."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs

from protocol.errors import SpecError

from ._places import Lines, Place, written

__all__ = ("BAD", "Bad", "Fault", "HostFileError", "Reading", "quoted", "told")

T = TypeVar("T")
_MOST_CHARS = 60


class Bad(enum.Enum):
    """What stands for a value that was wrong: its fault has been noted."""

    BAD = "bad"


BAD: Final = Bad.BAD
"""The one value of `Bad`."""


@attrs.frozen
class Fault:
    """One thing that is wrong, or odd."""

    line: int
    """0: the file as a whole."""
    key: str
    """As it is written in the file: `agents[0].limits.max_llm_calls`."""
    text: str


class HostFileError(SpecError):
    """A host file that cannot be served: `faults` are all that were found, and the text has a line for each."""

    def __init__(self, path: Path, faults: tuple[Fault, ...]) -> None:
        super().__init__("\n".join([told(path, fault) for fault in faults]))
        self.faults = faults


def told(path: Path, fault: Fault) -> str:
    """A fault as a line: file, line, key, and what is wrong."""
    if not fault.line:
        return f"{path} {fault.text}"
    return f"{path}, line {fault.line}: {fault.key}: {fault.text}"


def quoted(value: object) -> str:
    """A value as a file has it, short: what was wrong."""
    match value:
        case bool():
            return "true" if value else "false"
        case dict():
            return "a table"
        case list():
            return "a list"
        case str() | int() | float():
            text = repr(value)
            return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}..."
        case _:
            return "a date or a time"


@attrs.define(eq=False)
class Reading:
    """A host file while it is read."""

    folder: Path
    """Paths are seen from here."""
    imports: bool
    """Whether the modules that it names are imported."""
    faults: list[tuple[Place, str]] = attrs.field(factory=list[tuple[Place, str]])
    notes: list[tuple[Place, str]] = attrs.field(factory=list[tuple[Place, str]])
    refused: set[Place] = attrs.field(factory=set[Place])
    """Places that need no second word."""

    def fault(self, place: Place, text: str) -> Bad:
        """Something is wrong."""
        self.faults.append((place, text))
        return BAD

    def note(self, place: Place, text: str) -> None:
        """Something is odd."""
        self.notes.append((place, text))

    def is_faulty(self, place: Place) -> bool:
        """Whether something is wrong there, or below: what is missing then may be what was wrong."""
        return any(at[: len(place)] == place for at, _ in self.faults)

    def path(self, name: str) -> Path:
        """A path as the file means it."""
        try:
            return self.folder / Path(name).expanduser()
        except RuntimeError:  # a user whom nobody knows
            return self.folder / name

    def make(
        self, make: Callable[..., T], fields: Mapping[str, Any], places: Mapping[str, Place], place: Place
    ) -> T | Bad:
        """Call `make` with the fields. What it refuses is a fault at the place of the field that its text begins with.

        It is asked again without that field, so that the next fault shows as well.
        """
        left = dict(fields)
        is_right = True
        while True:
            try:
                made = make(**left)
            except SpecError as error:
                word = re.match(r"\w*", str(error))
                name = word[0] if word else ""
                if name in places or is_right:  # else it may be for want of the field
                    self.fault(places.get(name, place), str(error).removeprefix(f"{name}: "))
                if name not in left or name not in places:
                    return BAD
                is_right = False
                del left[name]
            else:
                return made if is_right else BAD

    def told(self, found: list[tuple[Place, str]], lines: Lines) -> tuple[Fault, ...]:
        """With their lines, in the order of the file, each once."""
        unique = dict.fromkeys(found)
        return tuple(
            sorted(
                [Fault(lines.line_of(place), written(place), text) for place, text in unique],
                key=lambda fault: fault.line,
            )
        )
