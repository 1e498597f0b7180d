"""What is logged, and how it is written: the options of the commands that serve."""

from __future__ import annotations

import argparse
from typing import Literal, TypeAlias, TypeVar, get_args

import attrs

from ._usage import UsageError, guess

__all__ = ("Logging", "add_logging", "checked_logging")

Level: TypeAlias = Literal["debug", "info", "warning", "error"]
Format: TypeAlias = Literal["auto", "human", "json"]
T = TypeVar("T", bound=str)


@attrs.frozen(kw_only=True)
class Logging:
    """What is logged, and how it is written."""

    level: Level = "info"
    format: Format = "auto"
    """`auto`: for people on a terminal, as JSON elsewhere."""


def add_logging(parser: argparse.ArgumentParser) -> None:
    """Give a command the options that say what is logged."""
    parser.add_argument(
        "--log-level", default="info", metavar="|".join(get_args(Level)), help="what is logged (default: info)"
    )
    parser.add_argument(
        "--log-format",
        default="auto",
        metavar="|".join(get_args(Format)),
        help="lines for people, or one JSON object per line (default: auto, for people on a terminal)",
    )


def checked_logging(found: argparse.Namespace) -> Logging:
    """What these options ask for. Raises `UsageError`."""
    levels: tuple[Level, ...] = get_args(Level)
    formats: tuple[Format, ...] = get_args(Format)
    return Logging(
        level=_one_of("--log-level", found.log_level, levels),
        format=_one_of("--log-format", found.log_format, formats),
    )


def _one_of(flag: str, word: str, choices: tuple[T, ...]) -> T:
    for choice in choices:
        if word == choice:
            return choice
    raise UsageError(f"{flag} {word!r} is unknown{guess(word, choices)}; there are: {', '.join(choices)}")
